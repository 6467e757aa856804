package surface

import (
	"cmp"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// scattered are places as profiles have them: rows with their own distances, or grids, of which
// four each are on a circle.
func scattered(t *rapid.T) (x, y []float64) {
	rows := rapid.IntRange(2, 6).Draw(t, "rows")
	width := rapid.SampledFrom([]float64{0.2, 1, 1000}).Draw(t, "width")
	height := rapid.SampledFrom([]float64{1, 2647, 2e4}).Draw(t, "height")
	regular := rapid.Bool().Draw(t, "regular")
	for i := range rows {
		for j := range rapid.IntRange(1, 6).Draw(t, "places") {
			at := float64(j)
			if !regular {
				at = float64(rapid.IntRange(0, 600).Draw(t, "at")) / 100
			}
			x, y = append(x, at*width), append(y, (float64(i)+0.25)*height)
		}
	}
	return x, y
}

// hair moves places by so little that it is chance on which side of a line or circle they are.
func hair(t *rapid.T, v []float64) {
	for i := range v {
		v[i] *= 1 + float64(rapid.IntRange(-2, 2).Draw(t, "bits"))*0x1p-52
	}
}

// TestTrianglesCoverAllBetweenPlaces once: together they are as large as the polygon around all.
func TestTrianglesCoverAllBetweenPlaces(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x, y := scattered(t)
		hair(t, x)
		hair(t, y)
		m, err := NewMesh(x, y)
		if err != nil {
			return
		}
		turn := func(a, b, c int) float64 { return (x[b]-x[a])*(y[c]-y[a]) - (y[b]-y[a])*(x[c]-x[a]) }
		covered := 0.0
		for i, corner := range m.triangles {
			c := corner.corners
			covered += math.Abs(turn(c[0], c[1], c[2]))
			for k, other := range corner.across {
				if other != none && !slices.Contains(m.triangles[other].across[:], i) {
					t.Fatalf("triangle %d is across corner %d of %d, and not the other way", other, k, i)
				}
			}
		}
		order := make([]int, len(x))
		for i := range order {
			order[i] = i
		}
		slices.SortFunc(order, func(a, b int) int { return cmp.Or(cmp.Compare(x[a], x[b]), cmp.Compare(y[a], y[b])) })
		whole := 0.0
		for range 2 { // below, then above
			var hull []int
			for _, p := range order {
				for len(hull) > 1 && turn(hull[len(hull)-2], hull[len(hull)-1], p) <= 0 {
					hull = hull[:len(hull)-1]
				}
				hull = append(hull, p)
			}
			for i := 1; i < len(hull); i++ {
				whole += turn(order[0], hull[i-1], hull[i])
			}
			slices.Reverse(order)
		}
		if whole = math.Abs(whole); math.Abs(covered/whole-1) > 1e-6 {
			t.Fatalf("%v of %v: %v, %v", covered, whole, x, y)
		}
	})
}

// TestPlacesThatAreNotOnALineHaveTriangles: nothing that a profile may say is refused.
func TestPlacesThatAreNotOnALineHaveTriangles(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x, y := scattered(t)
		if slices.Max(x) == slices.Min(x) || slices.Max(y) == slices.Min(y) {
			return
		}
		// Three places that are clearly no line are enough.
		x, y = append(x, 0, 0, slices.Max(x)), append(y, 0, slices.Max(y), 0)
		if _, err := NewMesh(x, y); err != nil {
			t.Fatal(err)
		}
	})
}

func TestPlacesWithoutTriangles(t *testing.T) {
	for rule, x := range map[string][2][]float64{
		"none":              {},
		"one":               {{1}, {1}},
		"two":               {{1, 2}, {1, 2}},
		"one, three times":  {{1, 1, 1}, {1, 1, 1}},
		"on one line":       {{1, 2, 3, 4}, {2, 4, 6, 8}},
		"of one context":    {{0.1, 0.2, 0.3, 0.4}, {350, 350, 350, 350}},
		"of one usage":      {{0.1, 0.1, 0.1, 0.1}, {350, 700, 1050, 1400}},
		"one that is none":  {{0, 1, math.NaN()}, {0, 0, 1}},
		"one without bound": {{0, 1, math.Inf(1)}, {0, 0, 1}},
	} {
		if m, err := NewMesh(x[0], x[1]); err == nil {
			t.Errorf("%s: %d triangles", rule, len(m.triangles))
		}
	}
}

// TestWhatRoundingLeavesAtTheRimIsNoTriangle: places of one concurrency are on a line through
// 0, and of three the middle one is beside it by what the last bit of a share is.
func TestWhatRoundingLeavesAtTheRimIsNoTriangle(t *testing.T) {
	var x, y []float64
	for context := 350.0; context < 16000; context += 2647 {
		for n := 1.0; n < 300; n += 60 {
			x, y = append(x, n*context/945029), append(y, context)
		}
	}
	m, err := NewMesh(x, y)
	if err != nil {
		t.Fatal(err)
	}
	for _, corner := range m.triangles {
		c := corner.corners
		if c[0]%5 == c[1]%5 && c[1]%5 == c[2]%5 {
			t.Errorf("triangle %v is of one concurrency", c)
		}
	}
}
