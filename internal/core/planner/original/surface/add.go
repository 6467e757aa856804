package surface

import (
	"math"
	"slices"
)

// add has the farthest point outside of a facet come.
func (h *hull) add(first *facet) {
	last := len(first.outside) - 1
	p := first.outside[last]
	first.outside = first.outside[:last]
	h.come(p)
	h.see(p, first)
	for _, f := range h.gone {
		h.remove(f)
	}
	h.made = nil
	if !h.cone(p) || !h.close() || !h.flatten() {
		h.broken = true
		return
	}
	h.rounded = false
	h.thorough = h.many() || slices.ContainsFunc(h.made, func(f *facet) bool { return f.polygon })
	for _, f := range h.gone {
		to := f
		for to != nil && to.gone {
			to = to.instead
		}
		if to == nil {
			to = h.made[0]
		}
		for _, q := range f.outside {
			h.assign(q, to)
		}
	}
	for _, f := range h.made {
		f.new = false
	}
}

// see finds the facets that a point sees, from one of them on.
func (h *hull) see(p int, first *facet) {
	h.marks++
	first.gone, first.mark = true, h.marks
	h.gone = []*facet{first}
	for i := 0; i < len(h.gone); i++ {
		for _, g := range h.gone[i].beside {
			if g.mark == h.marks {
				continue
			}
			g.mark = h.marks
			if d := h.distance(h.points[p], g); d > h.near {
				g.gone = true
				h.gone = append(h.gone, g)
			} else {
				g.level = d >= -h.near
				h.bulge = max(h.bulge, d)
			}
		}
	}
}

// cone makes a triangle between a point and each edge around what it sees. Like the other steps
// it is false where rounding leaves nothing that holds together.
func (h *hull) cone(p int) bool {
	raise := func(ends []int, beside *facet) *facet {
		f := &facet{corners: append([]int{p}, ends...), beside: []*facet{beside}, new: true}
		h.made = append(h.made, f)
		h.append(f)
		return f
	}
	// Where to look for the points outside of what is gone. Once there was an edge of a polygon,
	// that is the triangle at it, also for facets without such edges.
	var instead, ridged *facet
	for _, f := range h.gone {
		for _, g := range f.beside {
			g.seen = false
		}
		if f.ridged {
			ridged = nil
			for _, r := range f.ridges {
				g := r.other(f)
				if !g.gone {
					ridged = raise(r.ends, g)
					if g.seen { // a polygon that has several
						g.beside = append(g.beside, ridged)
					} else {
						h.replace(g.beside, f, ridged)
					}
					if g.polygon {
						ridged.adopt(r)
						r.move(f, ridged)
					} else {
						g.ridges = drop(g.ridges, r)
					}
				}
				g.seen = true
			}
		}
		if !f.polygon {
			instead = nil
			for _, g := range f.beside {
				if g.gone || g.seen {
					continue
				}
				i := slices.Index(g.beside, f)
				if i < 0 || i >= len(g.corners) {
					return false
				}
				instead = raise(slices.Delete(slices.Clone(g.corners), i, i+1), g)
				g.beside[i] = instead
			}
		}
		if ridged != nil {
			instead = ridged
		}
		f.instead = instead
	}
	return !h.broken
}

// close has new triangles know each other, and finds the planes of those that do not become
// part of what is beside them.
func (h *hull) close() bool {
	type side struct {
		of     *facet
		across int
	}
	open := map[int]side{} // by the end of an edge that is not the new point
	for _, f := range h.made {
		f.beside = append(f.beside, nil, nil)
	}
	for _, f := range h.made {
		for across := 1; across <= 2; across++ {
			end := f.corners[3-across]
			if other, found := open[end]; found {
				f.beside[across], other.of.beside[other.across] = other.of, f
				delete(open, end)
			} else {
				open[end] = side{f, across}
			}
		}
		if !f.beside[0].level {
			h.span(f)
		}
	}
	return len(open) == 0 && len(h.made) >= 3
}

// many says that there were so many merges that qhull trusts the way along facets no more.
func (h *hull) many() bool { return h.merges > 50 }

// far is when a point belongs to a facet whatever the others are.
func (h *hull) far() float64 {
	if h.many() {
		return 4 * h.outside
	}
	return 2 * h.outside
}

// assign gives a point to a facet that it is outside of, a new one if there is one. One that is
// outside of none is in the plane of some, and no corner.
func (h *hull) assign(p int, from *facet) {
	find := h.along
	if h.thorough {
		find = h.among
	}
	f, d := find(p, from)
	if f == nil {
		f, d = from, math.Inf(-1)
	}
	if d < h.outside {
		if f, d = h.beyond(p, f, d); d < h.outside {
			return
		}
	}
	if len(f.outside) == 0 {
		switch {
		case !f.new:
			h.remove(f)
			h.append(f)
			f.new, h.made = true, append(h.made, f)
		case f != h.next && h.next != nil && h.next.new:
			h.next = h.made[0]
		}
	}
	f.put(p, d)
}

// put keeps the farthest point last.
func (f *facet) put(p int, d float64) {
	if n := len(f.outside); n > 0 && d <= f.farthest {
		f.outside = slices.Insert(f.outside, n-1, p)
		return
	}
	f.outside, f.farthest = append(f.outside, p), d
}

// among is the new facet that a point is farthest from, or the first from which it is far.
func (h *hull) among(p int, from *facet) (best *facet, farthest float64) {
	start := max(0, slices.Index(h.made, from))
	for i := range h.made {
		f := h.made[(start+i)%len(h.made)]
		d := h.distance(h.points[p], f)
		if (best == nil || d > farthest) && (!f.upper || d >= h.outside) {
			if best, farthest = f, d; d >= h.far() {
				break
			}
		}
	}
	return best, farthest
}

// along goes from one new facet to a better one beside it, as long as there is one.
func (h *hull) along(p int, from *facet) (best *facet, farthest float64) {
	h.marks++
	q := h.points[p]
	if farthest = h.distance(q, from); farthest >= h.outside {
		return from, farthest
	}
	if !from.upper {
		best = from
	}
	from.mark = h.marks
	for from != nil {
		at := from
		from = nil
		for _, g := range at.beside {
			if !g.new || g.mark == h.marks {
				continue
			}
			g.mark = h.marks
			d := h.distance(q, g)
			if d <= farthest {
				continue
			}
			if d >= h.outside {
				return g, d
			}
			if !g.upper {
				best = g
			} else if best != nil {
				continue
			}
			farthest, from = d, g
			break
		}
	}
	switch {
	case best == nil:
		return h.among(p, h.made[0])
	case h.rounded || farthest >= -h.round:
	case h.sharp():
		h.thorough = true
		return h.among(p, best)
	default:
		h.rounded = true
	}
	return best, farthest
}

// beyond looks at the facets around as well that are hardly worse, new or not.
func (h *hull) beyond(p int, best *facet, farthest float64) (*facet, float64) {
	slack := h.bulge + 2*h.round + h.near
	if h.many() {
		slack *= 2
	}
	h.marks++
	best.mark = h.marks
	var around []*facet
	var last *facet
	for at := best; ; {
		for _, g := range at.beside {
			if g.mark == h.marks {
				continue
			}
			g.mark = h.marks
			d := h.distance(h.points[p], g)
			if d > farthest {
				if !g.upper || d >= h.outside {
					if d > farthest+slack {
						around = around[:0]
					}
					best, farthest = g, d
				}
			} else if d < farthest-slack {
				continue
			}
			if last != nil {
				around = append(around, last)
			}
			last = g
		}
		switch n := len(around); {
		case last != nil:
			at, last = last, nil
		case n > 0:
			at, around = around[n-1], around[:n-1]
		default:
			return best, farthest
		}
	}
}

// sharp says that new facets face different ways, so that there may be none better beside one
// that is not the best.
func (h *hull) sharp() bool {
	for _, f := range h.made {
		for k := range f.normal {
			if (f.normal[k] > 0) != (h.made[0].normal[k] > 0) {
				return true
			}
		}
	}
	return false
}
