package surface

import (
	"errors"
	"math"
	"slices"
)

// hull is the convex hull of places that are lifted onto a paraboloid, whose lower facets are
// Delaunay's triangles, as qhull builds it (Barber, Dobkin and Huhdanpaa, "The Quickhull
// algorithm for convex hulls", 1996). It begins with a tetrahedron:
//
//	next facet with points outside -> add      the farthest, instead of all facets that it sees
//	                                  flatten  new facets in one plane into polygons
//	                                  assign   points outside of what went to what came
//
// What rounding cannot tell apart is in one plane, as are four places on a circle, of which
// either pair may have an edge. A polygon is divided from the corner that came last. So in
// which order facets are made, looked at and kept is part of what comes out, and is qhull's
// here, as SciPy calls it ("Qbb Qc Qz Q12 Qt"): profiles of long contexts have such places, and
// what lies between them differs by more than a little.
type hull struct {
	points [][3]float64 // the last is above all others
	middle [3]float64   // is inside
	// round is what rounding may make of a distance. Who is nearer than near is in the plane of
	// a facet, and who is farther than outside is outside of it.
	round, near, outside float64

	// The facets in their order; next is the first that may have points outside.
	first, last, next *facet
	gone, made        []*facet // by the last point
	turns             []int    // in which each point came, from 1; 0 is not yet
	turn              int
	marks             int     // that were given to facets
	merges            int     // of facets
	bulge             float64 // how far a point is above the plane of its facet, at most
	// thorough has points compared with all new facets; rounded is that these do not need it.
	thorough, rounded bool
	broken            bool
}

type facet struct {
	corners []int // the one that came last is the first
	// beside are the facets around. Of a triangle each is across from its corner.
	beside []*facet
	// ridges are the edges of a polygon, and those of a triangle to polygons; ridged is that
	// there was one.
	ridges          []*ridge
	ridged, polygon bool

	known, upper bool // its plane is, and it faces up
	normal       [3]float64
	offset       float64
	middle       *[3]float64 // of its corners, in its plane

	outside  []int // points that see it, the farthest last
	farthest float64

	previous, next *facet
	instead        *facet // of one that is gone
	gone, new      bool
	level          bool // the point that is added is in its plane
	seen, tested   bool
	mark           int
}

var errFlat = errors.New("all places are on one line, or nearly")

func newHull(x, y []float64) (*hull, error) {
	if len(x) == 0 {
		return nil, errFlat
	}
	h := &hull{turns: make([]int, len(x)+1)}
	h.lift(x, y)
	if extremes, width := h.scale(); !h.begin(extremes, width) {
		return nil, errFlat
	}
	for !h.broken {
		for h.next != nil && len(h.next.outside) == 0 {
			h.next = h.next.next
		}
		if h.next == nil {
			return h, nil
		}
		h.add(h.next)
	}
	return nil, errors.New("places are too near to each other")
}

func (h *hull) lift(x, y []float64) {
	var above [3]float64
	for i := range x {
		height := times(x[i], x[i]) + times(y[i], y[i])
		h.points = append(h.points, [3]float64{x[i], y[i], height})
		above[0] += x[i]
		above[1] += y[i]
		above[2] = max(above[2], height)
	}
	n := float64(len(x))
	h.points = append(h.points, [3]float64{above[0] / n, above[1] / n, above[2] * 1.1})
}

// times is a product that is rounded before it is added, also by machines that need not.
func times(a, b float64) float64 { return float64(a * b) }

// scale makes heights as large as places are. It finds the first and the last point along each
// axis, and how far apart places are at most.
func (h *hull) scale() (extremes []int, width float64) {
	var largest, total, low, high float64
	for k := range 3 {
		from, to := 0, 0
		for i := range h.points {
			if v := h.points[i][k]; v > h.points[to][k] {
				to = i
			} else if v < h.points[from][k] {
				from = i
			}
		}
		extremes = append(extremes, from, to)
		if low, high = h.points[from][k], h.points[to][k]; k < 2 {
			most := max(high, -low)
			largest, width, total = max(largest, most), max(width, high-low), total+most
		}
	}
	factor := largest / (high - low)
	for i := range h.points {
		h.points[i][2] = times(h.points[i][2], factor) - times(low, factor)
	}
	const unit = 0x1p-52
	h.round = unit * (3*min(math.Sqrt(3)*largest, total+largest)*1.01 + largest)
	h.near, h.outside = 2*h.round, 4*h.round
	return extremes, width
}

// begin makes a tetrahedron of extremes if it is large, or else of any points.
func (h *hull) begin(extremes []int, width float64) bool {
	low, high := extremes[0], extremes[0]
	for _, p := range extremes {
		if h.points[p][0] < h.points[low][0] {
			low = p
		} else if h.points[p][0] > h.points[high][0] {
			high = p
		}
	}
	corners, size := []int{low, high}, h.points[high][0]-h.points[low][0]
	for len(corners) < 4 {
		best, largest, enough := -1, 0.0, 1e-3*size*width
		for _, p := range extremes {
			if s := h.spread(p, corners); s > largest {
				best, largest = p, s
			}
		}
		if largest < enough {
			for p := range h.points {
				if s := h.spread(p, corners); s > largest {
					if best, largest = p, s; s > 10*enough {
						break
					}
				}
			}
		}
		if best < 0 {
			return false
		}
		corners, size = append(corners, best), largest
	}
	for _, p := range corners {
		h.come(p)
	}
	slices.Reverse(corners)
	for k := range h.middle {
		for _, p := range corners {
			h.middle[k] += h.points[p][k]
		}
		h.middle[k] /= 4
	}
	return h.tetrahedron(corners)
}

// spread is how large the triangle or tetrahedron of points is, a few times.
func (h *hull) spread(p int, others []int) float64 {
	if slices.Contains(others, p) {
		return 0
	}
	var d [3][3]float64
	for i, other := range others {
		d[i] = minus(h.points[other], h.points[p])
	}
	if len(others) == 2 {
		return math.Abs(d[0][0]*d[1][1] - d[0][1]*d[1][0])
	}
	n := cross(d[1], d[2])
	return math.Abs(d[0][0]*n[0] + d[0][1]*n[1] + d[0][2]*n[2])
}

func minus(a, b [3]float64) [3]float64 { return [3]float64{a[0] - b[0], a[1] - b[1], a[2] - b[2]} }

func cross(a, b [3]float64) [3]float64 {
	return [3]float64{
		times(a[1], b[2]) - times(a[2], b[1]), times(a[2], b[0]) - times(a[0], b[2]), times(a[0], b[1]) - times(a[1], b[0]),
	}
}

func (h *hull) come(p int) {
	h.turn++
	h.turns[p] = h.turn
}

// tetrahedron has the first facets, and shares all other points among them.
func (h *hull) tetrahedron(corners []int) bool {
	for i := range corners {
		f := &facet{corners: slices.Delete(slices.Clone(corners), i, i+1), new: true}
		h.made = append(h.made, f)
		h.append(f)
	}
	for _, f := range h.made {
		for _, g := range h.made {
			if g != f {
				f.beside = append(f.beside, g)
			}
		}
		h.span(f)
		if !(h.distance(h.middle, f) < -h.round) {
			return false
		}
	}
	var left []int
	for p := range h.points {
		if h.turns[p] == 0 {
			left = append(left, p)
		}
	}
	for _, f := range h.made {
		left = slices.DeleteFunc(left, func(p int) bool {
			d := h.distance(h.points[p], f)
			if d >= h.far() {
				f.put(p, d)
			}
			return d >= h.far()
		})
	}
	h.thorough = true
	for _, p := range left {
		h.assign(p, h.first)
	}
	widest := h.first
	for _, f := range h.made {
		f.new = false
		if len(f.outside) > 0 && f.farthest > widest.farthest {
			widest = f
		}
	}
	h.remove(widest)
	widest.next, h.first.previous, h.first, h.next = h.first, widest, widest, widest
	return true
}

// span finds the plane of a new triangle. The middle is below it.
func (h *hull) span(f *facet) {
	a := h.points[f.corners[0]]
	n := cross(minus(h.points[f.corners[2]], a), minus(h.points[f.corners[1]], a))
	length := math.Sqrt(times(n[0], n[0]) + times(n[1], n[1]) + times(n[2], n[2]))
	f.normal = [3]float64{n[0] / length, n[1] / length, n[2] / length}
	f.offset = -(times(a[0], f.normal[0]) + times(a[1], f.normal[1]) + times(a[2], f.normal[2]))
	if h.distance(h.middle, f) > 0 {
		f.normal, f.offset = [3]float64{-f.normal[0], -f.normal[1], -f.normal[2]}, -f.offset
	}
	const level = 2 * 3 * 1.01 * 0x1p-52 // of a normal that neither faces up nor down
	f.known, f.upper = true, f.normal[2] > -level
}

func (h *hull) distance(q [3]float64, f *facet) float64 {
	return f.offset + times(q[0], f.normal[0]) + times(q[1], f.normal[1]) + times(q[2], f.normal[2])
}

func (h *hull) append(f *facet) {
	f.previous, f.next = h.last, nil
	if h.last == nil {
		h.first = f
	} else {
		h.last.next = f
	}
	h.last = f
	if h.next == nil {
		h.next = f
	}
}

func (h *hull) remove(f *facet) {
	if h.next == f {
		h.next = f.next
	}
	if f.previous == nil {
		h.first = f.next
	} else {
		f.previous.next = f.next
	}
	if f.next == nil {
		h.last = f.previous
	} else {
		f.next.previous = f.previous
	}
	f.previous, f.next = nil, nil
}

// triangles are the lower facets, polygons divided from the corner that came last.
func (h *hull) triangles() [][3]int {
	above := len(h.points) - 1
	var all [][3]int
	for f := h.first; f != nil; f = f.next {
		switch {
		case f.upper || slices.Contains(f.corners, above):
		case f.polygon:
			for _, r := range f.ridges {
				if !slices.Contains(r.ends, f.corners[0]) {
					all = append(all, [3]int{f.corners[0], r.ends[0], r.ends[1]})
				}
			}
		default:
			all = append(all, [3]int(f.corners))
		}
	}
	return all
}
