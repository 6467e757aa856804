package generation

import "slices"

// counts are replicas by generation and role.
type counts [][]int

// serving are those that serve in a world.
func (w World) serving() counts {
	return w.each(Replicas.serving)
}

func (w World) wanted() counts {
	return w.each(func(r Replicas) int { return r.Want })
}

func (w World) each(of func(Replicas) int) counts {
	all := make(counts, len(w.Generations))
	for i, g := range w.Generations {
		all[i] = make([]int, len(g.Roles))
		for j, r := range g.Roles {
			all[i][j] = of(r)
		}
	}
	return all
}

// ratio is a number of replicas that need not be whole.
type ratio struct{ num, den int }

func whole(n int) ratio { return ratio{n, 1} }

func (a ratio) less(b ratio) bool { return a.num*b.den < b.num*a.den }

// capacity is what complete generations have.
type capacity struct {
	// replicas are the plain sums, by role.
	replicas []int
	// effective are the effective replicas, by role: of an entry the sum, of support
	// what the generation with the least of it for its share of the traffic would come
	// to, were all generations like it.
	effective []ratio
}

// Capacity is what serves in a world: replicas in complete generations, and
// effective replicas rounded down, by role.
func Capacity(w World) (replicas, effective []int) {
	c := capacityOf(w.Roles, w.lacking(), w.serving())
	for r, e := range c.effective { // more than there are where some serve without
		effective = append(effective, min(c.replicas[r], e.num/e.den))
	}
	return c.replicas, effective
}

func capacityOf(roles []Role, l lacking, all counts) capacity {
	c := capacity{make([]int, len(roles)), make([]ratio, len(roles))}
	entries := 0
	for i, g := range all {
		if l.complete(roles, i, g) {
			entries += entriesOf(roles, g)
			for r, n := range g {
				c.replicas[r] += n
			}
		}
	}
	for r, role := range roles {
		c.effective[r] = whole(c.replicas[r])
		if role.Entry {
			continue
		}
		first := true
		for i, g := range all {
			share := entriesOf(roles, g)
			if !l.complete(roles, i, g) || share == 0 || l.has(i, r) { // which gets no traffic, or needs none of it
				continue
			}
			if e := (ratio{g[r] * entries, share}); first || e.less(c.effective[r]) {
				c.effective[r], first = e, false
			}
		}
	}
	return c
}

// lacking says by generation and role what a generation serves without, as prefill that
// came with a later one. Nil is nothing.
type lacking [][]bool

// lacking is what the stable generation serves without. It was complete once, its support
// is started before its entries and goes after them: if it has those and was told none of a
// role, it needs none. Others may have been started entries first. What is desired of such
// a role follows once the stable generation is the target, and the only one that is left.
// Entries that it never had it serves without as well, as long as it has others.
func (w World) lacking() lacking {
	l := make(lacking, len(w.Generations))
	for i, g := range w.Generations {
		l[i] = make([]bool, len(w.Roles))
		if g.ID != w.Stable {
			continue
		}
		alone := g.ID == w.Target() && len(w.Generations) == 1
		entries, enters := 0, false
		for r, role := range w.Roles {
			if role.Entry {
				entries += g.Roles[r].Want
				enters = enters || !g.Roles[r].Absent
			}
		}
		for r, role := range w.Roles {
			seen := g.Roles[r]
			without := seen.Absent || entries > 0 && !alone
			if role.Entry {
				without = seen.Absent && enters
			}
			l[i][r] = seen.Want == 0 && without
		}
	}
	return l
}

func (l lacking) has(g, r int) bool { return l != nil && l[g][r] }

// complete reports whether a generation has a replica of every role that it needs: what
// does not is sent no requests. A role of which none is desired is missed by nobody.
func (l lacking) complete(roles []Role, g int, replicas []int) bool {
	for r, n := range replicas {
		if n < 1 && roles[r].Desired > 0 && !l.has(g, r) {
			return false
		}
	}
	return true
}

// supported reports whether a generation has a replica of every role that it needs but the
// entries.
func (l lacking) supported(roles []Role, g int, replicas []int) bool {
	for r, role := range roles {
		if role.supports() && replicas[r] < 1 && !l.has(g, r) {
			return false
		}
	}
	return true
}

func entriesOf(roles []Role, g []int) int {
	n := 0
	for r, role := range roles {
		if role.Entry {
			n += g[r]
		}
	}
	return n
}

// Complete reports whether a generation serves: it has a replica that does of every
// role that is desired, but for those that it never had.
func (w World) Complete(id ID) bool {
	g := w.index(id)
	return g >= 0 && w.lacking().complete(w.Roles, g, w.serving()[g])
}

// Reduced reports whether a generation was told to have none of a role that it needs to
// serve.
func (w World) Reduced(id ID) bool {
	g := w.index(id)
	return g >= 0 && !w.lacking().complete(w.Roles, g, w.wanted()[g])
}

// Lacks reports whether the stable generation serves without a role. Until it is gone,
// nobody counts on that role.
func (w World) Lacks(role int) bool {
	g := w.index(w.Stable)
	return g >= 0 && w.lacking().has(g, role)
}

// Floor is the least that must serve, by role. If one role may be missing entirely,
// no pair is promised, and nothing is. A role of which none is desired is no part of that.
func Floor(roles []Role) []int {
	floor := make([]int, len(roles))
	for i, r := range roles {
		if r.Desired == 0 {
			continue
		}
		floor[i] = r.Desired - r.Unavailable
		if floor[i] <= 0 {
			return make([]int, len(roles))
		}
	}
	return floor
}

// floor is that of a world: nothing is kept of what the target serves without. Of what the
// stable generation does, no more is kept than a level leaves there, and nothing until the
// target has a whole unit: a candidate before it is to go, and may be in its way.
func (w World) floor() []int {
	if w.unserved() {
		return make([]int, len(w.Roles))
	}
	floor, l, g := Floor(w.Roles), w.lacking(), w.index(w.Target())
	target, _, held := w.shares(w.Level)
	for r := range floor {
		if g >= 0 && l.has(g, r) {
			floor[r] = 0
		}
		if held && w.Target() != w.Stable && w.Lacks(r) {
			floor[r] = min(floor[r], target[r])
			if g < 0 || !l.complete(w.Roles, g, w.wanted()[g]) {
				floor[r] = 0
			}
		}
	}
	return floor
}

// unserved reports whether nothing is left that has to be served, as no entry is desired, and
// a floor would keep the last ones: where only what is desired is followed, and where the
// stable generation is complete with them alone.
func (w World) unserved() bool {
	if slices.ContainsFunc(w.Roles, func(r Role) bool { return r.Entry && r.Desired > 0 }) {
		return false
	}
	for r := range w.Roles {
		if w.Lacks(r) {
			return true
		}
	}
	return w.Paused || w.Unapproved
}

// bounds are what a step may not go below.
type bounds struct {
	lacking   lacking
	replicas  []int
	effective []ratio
}

// boundsAt is the floor, support less by slack; or what is there, where a fault has
// broken the floor already: nothing may make that worse.
func boundsAt(roles []Role, l lacking, floor []int, slack int, at counts) bounds {
	now := capacityOf(roles, l, at)
	b := bounds{l, make([]int, len(roles)), make([]ratio, len(roles))}
	for r, role := range roles {
		b.replicas[r] = min(floor[r], now.replicas[r])
		b.effective[r] = whole(0)
		if !role.Entry && floor[r] > slack {
			b.effective[r] = whole(floor[r] - slack)
			if now.effective[r].less(b.effective[r]) {
				b.effective[r] = now.effective[r]
			}
		}
	}
	return b
}

// keeps reports whether what serves is within the bounds. It is asked for every
// point of a search and makes nothing.
func (b bounds) keeps(roles []Role, all counts) bool {
	entries := 0
	for i, g := range all {
		if b.lacking.complete(roles, i, g) {
			entries += entriesOf(roles, g)
		}
	}
	for r, role := range roles {
		sum := 0
		for i, g := range all {
			if !b.lacking.complete(roles, i, g) {
				continue
			}
			sum += g[r]
			least := b.effective[r]
			if !role.Entry && !b.lacking.has(i, r) && g[r]*entries*least.den < least.num*entriesOf(roles, g) {
				return false
			}
		}
		if sum < b.replicas[r] || sum == 0 && b.effective[r].num > 0 {
			return false
		}
	}
	return true
}
