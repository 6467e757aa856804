package surface

import "math"

// slope is by how much a value grows along either axis.
type slope struct{ x, y float64 }

// over is how much it grows over a distance.
func (s slope) over(x, y float64) float64 { return s.x*x + s.y*y }

// When SciPy has found slopes. Along an axis of large numbers they are small, so that the
// tolerance is not: the order of rounds is part of what comes out.
const (
	rounds    = 400
	tolerance = 1e-6
)

// slopes are those at which edges bend least (Nielson 1983; Renka and Cline 1984). A cubic over
// an edge of length L, whose slopes at the ends would lift it by a and b over all of the edge
// where a straight line lifts it by r, has as the integral of its squared second derivative
//
//	4((a-r)² + (a-r)(b-r) + (b-r)²)/L³
//
// Summed over the edges e of a place, that is least for the slope s with
//
//	Σ 2e(e·s)/L³ = Σ e(3r - b)/L³
//
// which is solved for one place after the other, until none changes.
func (m *Mesh) slopes(values []float64) []slope {
	all := make([]slope, len(values))
	for range rounds {
		worst := 0.0
		for i, beside := range m.beside {
			if len(beside) == 0 { // one of several at a place
				continue
			}
			var xx, xy, yy, rx, ry float64
			for _, j := range beside {
				x, y := m.x[j]-m.x[i], m.y[j]-m.y[i]
				length := math.Sqrt(x*x + y*y)
				weight := 1 / (length * length * length)
				rise := 3*(values[j]-values[i]) - all[j].over(x, y)
				xx += 2 * x * x * weight
				xy += 2 * x * y * weight
				yy += 2 * y * y * weight
				rx += rise * x * weight
				ry += rise * y * weight
			}
			d := xx*yy - xy*xy
			s := slope{(yy*rx - xy*ry) / d, (xx*ry - xy*rx) / d}
			change := max(math.Abs(s.x-all[i].x), math.Abs(s.y-all[i].y))
			worst = max(worst, change/max(1, math.Abs(s.x), math.Abs(s.y)))
			all[i] = s
		}
		if worst < tolerance {
			break
		}
	}
	return all
}
