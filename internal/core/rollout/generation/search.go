package generation

import (
	"container/heap"
	"encoding/binary"
	"slices"
)

// What a move on the lattice costs. Growing before draining keeps capacity; what is
// drained next to nothing else is the support of a source. A detour grows what has
// to go in the end, so it is worth several other moves to avoid one.
const (
	costGrow    = 10
	costDrain   = 13
	costSupport = 1
	costStable  = 5
	costDetour  = 70
)

// searchLimit is how many points one search looks at. Where it needs more, steps are
// taken that are safe and lead nearer, without knowing the way.
const searchLimit = 20000

// lattice is the space of wanted replicas, generation by role, with the moves of one
// replica that stay within budget and bounds.
type lattice struct {
	roles   []Role
	lacking lacking
	// paired has entries start where there is support for them.
	paired bool
	target int
	stable int
	goal   counts
	low    bounds
	// unit is what a target without replicas begins with; nil if its roles start one by one.
	unit []int
	// greedy says that a search has met its limit.
	greedy bool
	// found are the costs of searches that were made, by where they began.
	found map[string]int
}

// move is one replica more or less, or a target's unit.
type move struct {
	generation, role, by int
	unit                 bool
}

// noWay is the cost where there is none, unknown that of a search that met its limit.
const (
	noWay   = -1
	unknown = -2
)

// cost is that of the cheapest way from a point to the goal, or noWay. Once a search has
// met its limit it is what a way would cost at least.
func (l *lattice) cost(from counts) int {
	if l.greedy {
		return l.least(from)
	}
	key := string(l.encode(nil, from))
	if c, known := l.found[key]; known {
		return c
	}
	c, _ := l.search(from)
	if c == unknown {
		l.greedy = true
		return l.least(from)
	}
	l.found[key] = c
	return c
}

// least is what a way would cost if nothing were in it.
func (l *lattice) least(from counts) int {
	if !l.low.keeps(l.roles, from) {
		return noWay
	}
	return l.rest(from)
}

// far reports whether the shortest way already has more points than a search looks at.
func (l *lattice) far(from counts) bool {
	moves := 0
	for g := range from {
		for r, n := range from[g] {
			moves += max(n-l.goal[g][r], l.goal[g][r]-n)
		}
	}
	return moves > searchLimit
}

// unmade reports whether a generation has nothing and begins with a unit: the target
// does, and others are not begun anew.
func (l *lattice) unmade(at counts, g int) bool {
	if l.unit == nil || g != l.target {
		return false
	}
	return !slices.ContainsFunc(at[g], func(n int) bool { return n > 0 })
}

// shift makes a move.
func (l *lattice) shift(at counts, m move) {
	if !m.unit {
		at[m.generation][m.role] += m.by
		return
	}
	for r, n := range l.unit {
		at[m.generation][r] += m.by * n
	}
}

// price is what a move costs.
func (l *lattice) price(at counts, m move) int {
	if m.unit {
		sum := 0
		for _, n := range l.unit {
			sum += n * costGrow
		}
		return sum
	}
	have, goal := at[m.generation][m.role], l.goal[m.generation][m.role]
	if m.by > 0 {
		if have < goal {
			return costGrow
		}
		if m.generation == l.stable {
			return costDetour
		}
		return 2 * costDetour
	}
	c := costDrain
	if m.generation == l.target && have <= goal {
		return costDetour
	}
	if m.generation == l.target {
		return c
	}
	if m.generation == l.stable {
		c += costStable
	}
	if !l.roles[m.role].Entry {
		c += costSupport
	}
	return c
}

// allowed reports whether a move may be made: within the budget, the last of a
// generation's support after its last entry, and a source that has nothing left stays
// that way, as does one that serves without a role. The stable one keeps what a level
// leaves it. The target may have to make room again, if it was started before somebody
// scaled the rest.
func (l *lattice) allowed(at counts, m move) bool {
	if m.unit {
		for r, n := range l.unit {
			if n > 0 && l.full(at, r) {
				return false
			}
		}
		return m.role == 0 // once
	}
	have, goal := at[m.generation][m.role], l.goal[m.generation][m.role]
	if m.by < 0 {
		if m.generation == l.stable && m.generation != l.target && have <= goal {
			return false
		}
		return have > 1 || have == 1 && (!l.roles[m.role].supports() || entriesOf(l.roles, at[m.generation]) == 0)
	}
	alive := false
	for _, n := range at[m.generation] {
		alive = alive || n > 0
	}
	if l.full(at, m.role) || l.lacking.has(m.generation, m.role) ||
		(l.paired || m.generation == l.stable) && l.roles[m.role].Entry && !l.lacking.supported(l.roles, m.generation, at[m.generation]) {
		return false
	}
	return have < goal || m.generation != l.target && alive && have < l.roles[m.role].Desired
}

// full reports whether there may be no more of a role.
func (l *lattice) full(at counts, role int) bool {
	sum := 0
	for _, g := range at {
		sum += g[role]
	}
	return sum >= l.roles[role].Desired+l.roles[role].Surge
}

// rest is the cost of what is left if nothing were in the way. No way is cheaper, so
// that the search may go by it.
func (l *lattice) rest(at counts) int {
	sum := 0
	for g := range at {
		for r := range at[g] {
			if n := l.goal[g][r] - at[g][r]; n > 0 {
				sum += n * costGrow
			} else if n < 0 {
				sum -= n * l.price(at, move{generation: g, role: r, by: -1})
			}
		}
	}
	return sum
}

// search finds the cheapest way from a point to the goal, and its first move.
func (l *lattice) search(from counts) (int, *move) {
	if l.far(from) {
		return unknown, nil
	}
	type node struct {
		cost  int
		first *move
	}
	at := make(counts, len(from))
	for i := range from {
		at[i] = make([]int, len(from[i]))
	}
	start := string(l.encode(nil, from))
	goal := string(l.encode(nil, l.goal))
	seen := map[string]node{start: {}}
	open := &queue{{total: l.rest(from), rest: l.rest(from), key: start}}
	var key []byte
	for order := 0; open.Len() > 0; {
		here := heap.Pop(open).(entry)
		known := seen[here.key]
		if here.total-here.rest > known.cost {
			continue // a cheaper way here was found since
		}
		if here.key == goal {
			return known.cost, known.first
		}
		if len(seen) > searchLimit {
			return unknown, nil
		}
		l.decode(at, here.key)
		for g := range at {
			for r := range at[g] {
				for _, by := range [...]int{1, -1} {
					m := move{g, r, by, by > 0 && l.unmade(at, g)}
					if !l.allowed(at, m) {
						continue
					}
					cost := known.cost + l.price(at, m)
					l.shift(at, m)
					key = l.encode(key[:0], at)
					if before, found := seen[string(key)]; (!found || cost < before.cost) && l.low.keeps(l.roles, at) {
						first := known.first
						if first == nil {
							first = &m
						}
						next := string(key)
						seen[next] = node{cost, first}
						order++
						rest := l.rest(at)
						heap.Push(open, entry{cost + rest, rest, order, next})
					}
					l.shift(at, move{g, r, -by, m.unit})
				}
			}
		}
	}
	return noWay, nil
}

// encode writes a point as the key of a map.
func (l *lattice) encode(to []byte, at counts) []byte {
	for _, g := range at {
		for _, n := range g {
			to = binary.BigEndian.AppendUint32(to, uint32(n))
		}
	}
	return to
}

func (l *lattice) decode(to counts, key string) {
	i := 0
	for _, g := range to {
		for r := range g {
			g[r] = int(key[i])<<24 | int(key[i+1])<<16 | int(key[i+2])<<8 | int(key[i+3])
			i += 4
		}
	}
}

// entry is a point that is yet to be looked at. Of equal ones the nearest to the
// goal is next, which leads straight there if nothing is in the way; then the first
// that was found, so that equal worlds give equal ways.
type entry struct {
	total, rest, order int
	key                string
}

type queue []entry

func (q queue) Len() int { return len(q) }
func (q queue) Less(i, j int) bool {
	a, b := q[i], q[j]
	if a.total != b.total {
		return a.total < b.total
	}
	if a.rest != b.rest {
		return a.rest < b.rest
	}
	return a.order < b.order
}
func (q queue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(x any)   { *q = append(*q, x.(entry)) }
func (q *queue) Pop() any {
	last := len(*q) - 1
	e := (*q)[last]
	*q = (*q)[:last]
	return e
}
