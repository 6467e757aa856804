package surface

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestAPlaneStaysAPlane, however it is divided.
func TestAPlaneStaysAPlane(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x, y := scattered(t)
		m, err := NewMesh(x, y)
		if err != nil {
			return
		}
		wide, high := slices.Max(x), slices.Max(y)
		plane := func(u, v float64) float64 { return 3 + 5*u - 7*v }
		values := make([]float64, len(x))
		for i := range x {
			values[i] = plane(x[i], y[i])
		}
		s := m.Surface(values)
		for range 20 {
			u, v := rapid.Float64Range(0, 1).Draw(t, "x")*wide, rapid.Float64Range(0, 1).Draw(t, "y")*high
			// Slopes are not found exactly, and what they miss grows with the way.
			if is, inside := s.At(u, v); inside && math.Abs(is-plane(u, v)) > 1e-4*(wide+high) {
				t.Fatalf("%v at %v, %v, want %v", is, u, v, plane(u, v))
			}
		}
	})
}

func TestCornersKeepTheirValues(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x, y := scattered(t)
		m, err := NewMesh(x, y)
		if err != nil {
			return
		}
		values := make([]float64, len(x))
		for i := range x {
			values[i] = rapid.Float64Range(-100, 100).Draw(t, "value")
		}
		s := m.Surface(values)
		for i := range x {
			if is, inside := s.At(x[i], y[i]); inside && len(m.beside[i]) > 0 && math.Abs(is-values[i]) > 1e-6*(1+math.Abs(values[i])) {
				t.Fatalf("%v at %v, %v, want %v", is, x[i], y[i], values[i])
			}
		}
	})
}

func TestNearest(t *testing.T) {
	m, err := NewMesh([]float64{0, 1, 0, 0}, []float64{0, 0, 1000, 1000})
	if err != nil {
		t.Fatal(err)
	}
	s := m.Surface([]float64{1, 2, 3, 4})
	for _, x := range []struct {
		rule       string
		x, y, want float64
	}{
		{"one that is there", 1, 0, 2},
		{"beyond it", 7, 1, 2},
		{"of two at a place the first", 0.1, 999, 3},
		{"of two as far the first", 0.5, 0, 1},
		{"axes are not scaled", 7, 501, 3},
	} {
		if is := s.Nearest(x.x, x.y); is != x.want {
			t.Errorf("%s: %v, want %v", x.rule, is, x.want)
		}
	}
}

// TestASurfaceIsSmooth: over an edge between two triangles neither its height nor its slope jumps.
func TestASurfaceIsSmooth(t *testing.T) {
	m, err := NewMesh([]float64{0, 1, 0.2, 1.1, 0.6}, []float64{0, 0.1, 1, 1.2, 0.5})
	if err != nil {
		t.Fatal(err)
	}
	s := m.Surface([]float64{0, 3, -2, 5, 1})
	const step = 1e-5
	height := func(u float64) float64 {
		v, inside := s.At(u, 0.2+u*0.6)
		if !inside {
			t.Fatalf("%v is outside", u)
		}
		return v
	}
	last := math.NaN()
	for u := 0.15; u < 1; u += step {
		slope := (height(u+step) - height(u)) / step
		if math.Abs(slope-last) > 0.01 {
			t.Fatalf("at %v the slope goes from %v to %v", u, last, slope)
		}
		last = slope
	}
}
