package surface

import (
	"errors"
	"math"
	"slices"
)

// Mesh are Delaunay's triangles between places: no circle through the corners of one has a
// place inside, but for rounding.
type Mesh struct {
	x, y      []float64
	triangles []triangle
	// beside are the places that each one has an edge with; none if it is no corner, as where
	// another one is as good as there.
	beside [][]int
}

type triangle struct {
	// across is the triangle behind the edge that faces a corner, or none.
	corners, across [3]int
}

// none is where the mesh ends.
const none = -1

// NewMesh lays triangles between places.
func NewMesh(x, y []float64) (*Mesh, error) {
	for i := range x {
		if sum := x[i] + y[i]; math.IsNaN(sum) || math.IsInf(sum, 0) {
			return nil, errors.New("a place is no number")
		}
	}
	h, err := newHull(x, y)
	if err != nil {
		return nil, err
	}
	m := &Mesh{x: x, y: y, beside: make([][]int, len(x))}
	type edge struct{ a, b int }
	type side struct{ of, across int }
	open := map[edge]side{}
	for i, corners := range h.triangles() {
		m.triangles = append(m.triangles, triangle{corners, [3]int{none, none, none}})
		for k := range corners {
			a, b := corners[(k+1)%3], corners[(k+2)%3]
			e := edge{min(a, b), max(a, b)}
			if other, met := open[e]; met {
				m.triangles[i].across[k], m.triangles[other.of].across[other.across] = other.of, i
				continue
			}
			open[e] = side{i, k}
			m.beside[a], m.beside[b] = append(m.beside[a], b), append(m.beside[b], a)
		}
	}
	for _, beside := range m.beside {
		slices.Sort(beside)
	}
	return m, nil
}

// within is by how much a place may be outside of a triangle and count as in it, as a share
// of the triangle: what rounding makes of a place on an edge.
const within = 100 * 0x1p-52

// find is the triangle that a place is in, and its shares of the corners there. It begins to
// look at the triangle from, and goes over edges that the place is behind.
func (m *Mesh) find(x, y float64, from int) (at int, shares [3]float64) {
	for range m.triangles {
		shares = m.shares(from, x, y)
		least := 0
		for k := range shares {
			if shares[k] < shares[least] {
				least = k
			}
		}
		if shares[least] >= -within {
			return from, shares
		}
		if from = m.triangles[from].across[least]; from == none {
			return none, shares
		}
	}
	return none, shares
}

// shares are by which a place is a mean of a triangle's corners.
func (m *Mesh) shares(i int, x, y float64) [3]float64 {
	c := m.triangles[i].corners
	ax, ay := m.x[c[0]]-m.x[c[2]], m.y[c[0]]-m.y[c[2]]
	bx, by := m.x[c[1]]-m.x[c[2]], m.y[c[1]]-m.y[c[2]]
	x, y = x-m.x[c[2]], y-m.y[c[2]]
	area := ax*by - ay*bx
	a, b := (x*by-y*bx)/area, (ax*y-ay*x)/area
	return [3]float64{a, b, 1 - a - b}
}
