// Package surface lays a smooth surface over scattered places, as SciPy's griddata does with
// method "cubic": Delaunay's triangles, slopes at their corners that bend edges least, and
// over each triangle a cubic of Clough and Tocher. It does not know what places and values
// mean, and rescales neither.
package surface

import "math"

// Surface has a value everywhere between the places of a mesh.
type Surface struct {
	mesh   *Mesh
	values []float64
	slopes []slope
	last   int // the triangle that was found last: the next place is near it
}

// Surface has these values at the places.
func (m *Mesh) Surface(values []float64) *Surface {
	return &Surface{mesh: m, values: values, slopes: m.slopes(values)}
}

// At is the value at a place; inside is false where there is none, outside of all triangles.
func (s *Surface) At(x, y float64) (v float64, inside bool) {
	at, shares := s.mesh.find(x, y, s.last)
	if at == none {
		return 0, false
	}
	s.last = at
	p := s.patch(at)
	v = p.at(shares)
	return v, !math.IsNaN(v)
}

// Nearest is the value of the place that is nearest; of several the first counts.
func (s *Surface) Nearest(x, y float64) float64 {
	best, least := 0, math.Inf(1)
	for i := range s.values {
		dx, dy := s.mesh.x[i]-x, s.mesh.y[i]-y
		if d := dx*dx + dy*dy; d < least {
			best, least = i, d
		}
	}
	return s.values[best]
}
