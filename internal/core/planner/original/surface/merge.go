package surface

import (
	"cmp"
	"math"
	"slices"
)

// ridge is an edge at which a polygon is.
type ridge struct {
	ends         []int
	sides        [2]*facet
	tested, bent bool
}

func (r *ridge) other(f *facet) *facet {
	if r.sides[0] == f {
		return r.sides[1]
	}
	return r.sides[0]
}

func (r *ridge) move(from, to *facet) {
	if r.sides[0] == from {
		r.sides[0] = to
	} else {
		r.sides[1] = to
	}
}

func (f *facet) adopt(r *ridge) { f.ridges, f.ridged = append(f.ridges, r), true }

// drop takes one out and puts the last in its place, which is the order in which qhull goes on.
func drop[T comparable](all []T, one T) []T {
	i := slices.Index(all, one)
	if i < 0 {
		return all
	}
	last := len(all) - 1
	all[i] = all[last]
	return all[:last]
}

func (h *hull) replace(all []*facet, one, by *facet) {
	if i := slices.Index(all, one); i >= 0 {
		all[i] = by
	} else {
		h.broken = true
	}
}

// toPolygon gives a triangle ridges at all its edges.
func (f *facet) toPolygon() {
	if f.polygon {
		return
	}
	f.polygon = true
	for _, g := range f.beside {
		g.seen = false
	}
	for _, r := range f.ridges {
		r.other(f).seen = true
	}
	for i, g := range f.beside {
		if !g.seen {
			r := &ridge{ends: slices.Delete(slices.Clone(f.corners), i, i+1), sides: [2]*facet{f, g}, tested: f.tested}
			f.adopt(r)
			g.adopt(r)
		}
	}
}

// newCorners is up to how many corners the centre of a polygon is found anew.
const newCorners = 8

// merge makes a facet part of another one beside it.
func (h *hull) merge(f, into *facet) {
	h.merges++
	f.toPolygon()
	into.toPolygon()
	for _, r := range f.ridges {
		r.tested = false
	}
	if into.middle != nil && len(into.corners) <= newCorners {
		into.middle = nil
		for _, r := range into.ridges {
			r.tested = false
		}
	}
	into.corners = h.latest(slices.Concat(into.corners, f.corners), none)
	h.marks++
	for _, g := range into.beside {
		g.mark = h.marks
	}
	for i := 0; i < len(f.ridges); {
		if r := f.ridges[i]; r.other(f) == into {
			into.ridges, into.beside, f.ridges = drop(into.ridges, r), drop(into.beside, f), drop(f.ridges, r)
		} else {
			h.hand(r, f, into)
			i++
		}
	}
	h.remove(into)
	h.append(into)
	h.made = append(slices.DeleteFunc(h.made, func(g *facet) bool { return g == into || g == f }), into)
	into.new, into.tested = true, false
	h.remove(f)
	h.gone = append([]*facet{f}, h.gone...)
	f.gone, f.instead, f.ridges, f.beside = true, into, nil, nil
}

// hand gives an edge of one facet to another.
func (h *hull) hand(r *ridge, f, into *facet) {
	g := r.other(f)
	into.adopt(r)
	if g.mark != h.marks {
		into.beside = append(into.beside, g)
		h.replace(g.beside, f, into)
		g.mark = h.marks
	} else {
		g.toPolygon()
		if g.beside[0] == f {
			g.beside = drop(g.beside, into)
			h.replace(g.beside, f, into)
		} else {
			g.beside = drop(g.beside, f)
		}
	}
	r.move(f, into)
}

// flatten merges new facets with what is in one plane with them.
func (h *hull) flatten() bool {
	if h.convex() {
		return true
	}
	for _, f := range slices.Clone(h.made) {
		if !f.known && !f.gone {
			h.merge(f, f.beside[0])
		}
	}
	var todo []bend
	h.marks++
	for _, f := range h.made {
		f.mark = h.marks
		for _, g := range f.beside {
			if g.mark == h.marks {
				continue
			}
			if b, bent := h.bend(f, g); bent {
				todo = append(todo, b)
				if i := slices.IndexFunc(g.ridges, func(r *ridge) bool { return r.other(g) == f }); i >= 0 {
					g.ridges[i].bent = true
				}
			}
		}
		f.tested = true
		for _, r := range f.ridges {
			r.tested = true
		}
	}
	for len(todo) > 0 && !h.broken {
		slices.SortStableFunc(todo, func(a, b bend) int { return cmp.Or(cmp.Compare(b.kind, a.kind), cmp.Compare(a.angle, b.angle)) })
		for i := len(todo) - 1; i >= 0 && !h.broken; i-- {
			h.straighten(todo[i])
		}
		todo = h.again()
	}
	for _, f := range h.made {
		if f.polygon {
			h.thin(f)
		}
	}
	return !h.broken
}

// thin takes away the corners at which a polygon has one other polygon around it alone: they
// are between the ends of an edge.
func (h *hull) thin(f *facet) {
	for _, p := range f.corners {
		var at []*ridge
		for _, r := range f.ridges {
			if slices.Contains(r.ends, p) {
				at = append(at, r)
			}
		}
		if len(at) != 2 || at[0].other(f) != at[1].other(f) {
			continue
		}
		g := at[0].other(f)
		if len(f.corners) == 3 || len(g.corners) == 3 {
			continue
		}
		f.ridges, g.ridges = drop(f.ridges, at[0]), drop(g.ridges, at[0])
		at[1].ends = h.latest(slices.Concat(at[0].ends, at[1].ends), p)
		f.corners, g.corners = h.latest(f.corners, p), h.latest(g.corners, p)
	}
}

// latest has points in the order in which they came, the last first, once each and without one.
func (h *hull) latest(points []int, without int) []int {
	all := slices.DeleteFunc(slices.Clone(points), func(p int) bool { return p == without })
	slices.SortFunc(all, func(a, b int) int { return cmp.Compare(h.turns[b], h.turns[a]) })
	return slices.Compact(all)
}

// bend is an edge over which a hull is not convex.
type bend struct {
	kind  bendKind
	angle float64
	f, g  *facet
}

type bendKind int

// Those that are merged first are the last.
const (
	flat bendKind = iota
	concave
	both
)

// bend looks at the edge between two facets.
func (h *hull) bend(f, g *facet) (bend, bool) {
	a, b := h.distance(h.centre(f), g), h.distance(h.centre(g), f)
	angle := times(f.normal[0], g.normal[0]) + times(f.normal[1], g.normal[1]) + times(f.normal[2], g.normal[2])
	switch {
	case a < -h.near && b < -h.near:
		return bend{}, false
	case a <= h.near && b <= h.near:
		return bend{flat, angle, f, g}, true
	case math.Abs(a) > h.near && math.Abs(b) > h.near:
		return bend{concave, angle, f, g}, true
	case a > b:
		return bend{both, angle, f, g}, true
	default:
		return bend{both, angle, g, f}, true
	}
}

func (h *hull) centre(f *facet) [3]float64 {
	if f.middle == nil {
		var c [3]float64
		for k := range c {
			for _, p := range f.corners {
				c[k] += h.points[p][k]
			}
			c[k] /= float64(len(f.corners))
		}
		d := h.distance(c, f)
		for k := range c {
			c[k] -= times(d, f.normal[k])
		}
		f.middle = &c
	}
	return *f.middle
}

// straighten merges one of the two facets at a bend with what is nearest to its plane: that
// which is nearer, but a new one if it is near enough.
func (h *hull) straighten(b bend) {
	f, g := b.f, b.g
	waits := func(f *facet) bool { return !f.tested && f.new }
	if f.gone || g.gone || b.kind == flat && (waits(f) || waits(g)) {
		return
	}
	if !f.new {
		f, g = g, f
	}
	one, other := h.nearest(f), h.nearest(g)
	if one.off >= other.off && (g.new || one.below < -h.near || one.above > h.bulge) {
		f, one = g, other
	}
	if one.facet == nil {
		h.broken = true
		return
	}
	h.bulge = max(h.bulge, one.above)
	h.merge(f, one.facet)
}

// fit is how far the corners of a facet are off of a plane beside it.
type fit struct {
	facet             *facet
	off, below, above float64
}

// nearest is the facet beside one whose plane its corners are nearest to.
func (h *hull) nearest(f *facet) fit {
	best := fit{off: math.Inf(1)}
	for _, g := range f.beside {
		one := fit{facet: g}
		for _, p := range f.corners {
			if !slices.Contains(g.corners, p) {
				d := h.distance(h.points[p], g)
				one.below, one.above = min(one.below, d), max(one.above, d)
			}
		}
		if one.off = max(one.above, -one.below); one.off < best.off {
			best = one
		}
	}
	return best
}

// again looks at the edges of facets that were merged.
func (h *hull) again() (todo []bend) {
	h.marks++
	for _, f := range h.made {
		if f.tested {
			continue
		}
		f.mark = h.marks
		for _, g := range f.beside {
			g.seen = false
		}
		for _, r := range f.ridges {
			g := r.other(f)
			switch {
			case r.tested && !r.bent:
			case g.seen:
				r.tested, r.bent = true, false
			case g.mark != h.marks:
				g.seen = true
				var b bend
				if b, r.bent = h.bend(f, g); r.bent {
					todo = append(todo, b)
				}
				r.tested = true
			}
		}
		f.tested = true
	}
	return todo
}

// convex says that new facets are clearly so, and need no merging.
func (h *hull) convex() bool {
	for _, f := range h.made {
		if !f.known || f.beside[0].polygon {
			return false
		}
	}
	for _, f := range h.made {
		for across := 1; across <= 2; across++ {
			if h.distance(h.points[f.corners[across]], f.beside[across]) >= -h.near {
				return false
			}
		}
		i := slices.IndexFunc(f.beside[0].corners, func(p int) bool { return !slices.Contains(f.corners, p) })
		if i >= 0 && h.distance(h.points[f.beside[0].corners[i]], f) >= -h.near {
			return false
		}
	}
	return true
}
