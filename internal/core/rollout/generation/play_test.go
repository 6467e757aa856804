package generation

import (
	"encoding/binary"
	"fmt"
	"slices"
)

// shape is a cell of an entry and its support, and how they are to be replaced.
type shape struct{ desired, surge, unavailable []int }

func (s shape) String() string {
	return fmt.Sprintf("desired %v surge %v unavailable %v", s.desired, s.surge, s.unavailable)
}

// roles names the entry first.
func (s shape) roles() []Role {
	names := []string{"decode", "prefill", "encode", "e4", "e5"}
	var all []Role
	for r, d := range s.desired {
		all = append(all, Role{Name: names[r], Entry: r == 0, Desired: d, Surge: s.surge[r], Unavailable: s.unavailable[r], GPUs: 1})
	}
	return all
}

// begin is a world in which a runs in full and b is asked for.
func (s shape) begin() World {
	w := World{Roles: s.roles(), Spec: "b", Stable: "a"}
	running := Generation{ID: "a"}
	for _, d := range s.desired {
		running.Roles = append(running.Roles, Replicas{Want: d, Exist: d, Routable: d})
	}
	w.Generations = []Generation{running, {ID: "b", Roles: make([]Replicas, len(s.desired))}}
	return w
}

// up are replicas that serve, by role.
func up(all ...int) []Replicas {
	var roles []Replicas
	for _, n := range all {
		roles = append(roles, Replicas{Want: n, Exist: n, Routable: n})
	}
	return roles
}

// without is a world in which a has none of the support that is asked for with b.
func without(w World, absent bool) World {
	for r, role := range w.Roles {
		if !role.Entry {
			w.Generations[0].Roles[r] = Replicas{Absent: absent}
		}
	}
	return w
}

// ordinal is a world of groups that have ordinals, of which the highest go first.
func ordinal(w World) World {
	for _, g := range w.Generations {
		for r := range g.Roles {
			g.Roles[r].Ordinals = []int{}
			for n := range g.Roles[r].Routable {
				g.Roles[r].Ordinals = append(g.Roles[r].Ordinals, n)
			}
		}
	}
	return w
}

// paired is a world whose entries are frontends of their generations' own.
func paired(w World) World {
	w.Paired, w.Roles[0].GPUs = true, 0
	return w
}

// shapes are all of some roles, up to some replicas, surge and unavailable of at
// most some, of which a role has one at least.
func shapes(roles, desired, tune int) []shape { return shapesFrom(1, roles, desired, tune) }

// parked are those of which a role has no replicas.
func parked(roles, desired, tune int) []shape {
	return slices.DeleteFunc(shapesFrom(0, roles, desired, tune), func(s shape) bool { return !slices.Contains(s.desired, 0) })
}

func shapesFrom(least, roles, desired, tune int) []shape {
	one := [][3]int{}
	for d := least; d <= desired; d++ {
		for s := range tune + 1 {
			for u := range min(tune, d) + 1 {
				if s+u > 0 {
					one = append(one, [3]int{d, s, u})
				}
			}
		}
	}
	all := []shape{{}}
	for range roles {
		var longer []shape
		for _, s := range all {
			for _, o := range one {
				longer = append(longer, shape{
					append(slices.Clone(s.desired), o[0]), append(slices.Clone(s.surge), o[1]), append(slices.Clone(s.unavailable), o[2]),
				})
			}
		}
		all = longer
	}
	return all
}

// event is something that the world does, or somebody to it.
type event struct {
	kind             eventKind
	generation, role int
	to               int
}

type eventKind string

const (
	comesUp    eventKind = "comes up"
	isGone     eventKind = "is gone"
	isPlaced   eventKind = "is placed"
	crashes    eventKind = "crashes"
	isUnplaced eventKind = "finds no node"
	isReverted eventKind = "spec is changed"
	isAborted  eventKind = "is aborted"
	isScaled   eventKind = "is scaled"
	isPaused   eventKind = "is paused or resumed"
)

// progress are the events that happen by themselves, sooner or later.
func progress(w World) []event {
	var all []event
	for g, generation := range w.Generations {
		for r, seen := range generation.Roles {
			if seen.starting() && seen.Routable < seen.Want {
				for _, n := range seen.ordinals(false) {
					all = append(all, event{kind: comesUp, generation: g, role: r, to: n})
				}
			}
			if seen.leaving() {
				all = append(all, event{kind: isGone, generation: g, role: r})
			}
			if seen.Unschedulable > 0 && spare(w, r) > 0 {
				all = append(all, event{kind: isPlaced, generation: g, role: r})
			}
		}
	}
	return all
}

// ordinals are those that something may happen to: of the groups that serve, or do not.
// Where none has one, it does not matter which it is.
func (r Replicas) ordinals(serving bool) []int {
	if r.Ordinals == nil {
		return []int{0}
	}
	var all []int
	for n := range r.Want {
		if slices.Contains(r.Ordinals, n) == serving {
			all = append(all, n)
		}
	}
	return all
}

// spare are the nodes that are free in a cluster that has one for each desired
// replica, and pods without one.
func spare(w World, r int) int {
	free := w.Roles[r].Desired
	for _, g := range w.Generations {
		free -= g.Roles[r].held() - g.Roles[r].Unschedulable
	}
	return free
}

// faults are the events that need not happen.
func faults(w World) []event {
	var all []event
	for g, generation := range w.Generations {
		for r, seen := range generation.Roles {
			if seen.serving() > 0 {
				for _, n := range seen.ordinals(true) {
					all = append(all, event{kind: crashes, generation: g, role: r, to: n})
				}
			}
			if generation.ID == w.Target() && seen.starting() && spare(w, r) < 0 {
				all = append(all, event{kind: isUnplaced, generation: g, role: r})
			}
		}
	}
	for g := range w.Generations {
		if w.Generations[g].ID != w.Spec {
			all = append(all, event{kind: isReverted, to: g})
		}
	}
	if len(w.Generations) < 3 {
		all = append(all, event{kind: isReverted, to: len(w.Generations)})
	}
	if w.Spec != w.Stable && len(w.Aborted) == 0 {
		all = append(all, event{kind: isAborted})
	}
	all = append(all, event{kind: isPaused})
	for r, role := range w.Roles {
		for _, d := range []int{role.Desired - 1, role.Desired + 1} {
			if d >= 0 && d <= 3 {
				all = append(all, event{kind: isScaled, role: r, to: d})
			}
		}
	}
	return all
}

// happen is the world after an event.
func happen(w World, e event) World {
	w = clone(w)
	seen := func() *Replicas { return &w.Generations[e.generation].Roles[e.role] }
	switch e.kind {
	case comesUp:
		seen().Routable++
		if seen().Ordinals != nil {
			seen().Ordinals = append(seen().Ordinals, e.to)
			slices.Sort(seen().Ordinals)
		}
	case isGone:
		seen().Exist--
	case isPlaced:
		seen().Unschedulable--
	case crashes:
		seen().Routable--
		seen().Ordinals = slices.DeleteFunc(seen().Ordinals, func(n int) bool { return n == e.to })
	case isUnplaced:
		seen().Unschedulable++
	case isReverted:
		if e.to == len(w.Generations) {
			id := ID("a")
			for w.index(id) >= 0 {
				id = ID(id[0] + 1)
			}
			one := Generation{ID: id, Roles: make([]Replicas, len(w.Roles))}
			for r := range one.Roles {
				if w.Generations[0].Roles[r].Ordinals != nil {
					one.Roles[r].Ordinals = []int{}
				}
			}
			w.Generations = append(w.Generations, one)
		}
		w.Spec, w.Aborted = w.Generations[e.to].ID, nil
		for r := range w.Roles { // what is asked for can be made
			w.Generations[e.to].Roles[r].Absent = false
		}
	case isAborted:
		w.Aborted = []ID{w.Spec}
	case isPaused:
		w.Paused = !w.Paused
	case isScaled:
		role := &w.Roles[e.role]
		role.Desired, role.Unavailable = e.to, min(role.Unavailable, e.to)
		if role.Surge+role.Unavailable == 0 {
			role.Surge = 1
		}
	}
	return w
}

// take is the world after a step: what is told to go is gone for the frontends, and
// holds its GPU until it is gone indeed.
func take(w World, s Step) World {
	w = clone(After(w, s))
	if s.Action == Delete && s.Generation == w.Stable {
		w.Stable = w.Target() // which completed
	}
	for _, g := range w.Generations {
		for r := range g.Roles {
			seen := &g.Roles[r]
			seen.Exist = seen.held()
			seen.Routable = seen.serving()
			seen.Ordinals = slices.DeleteFunc(seen.Ordinals, func(n int) bool { return n >= seen.Want })
			seen.Unschedulable = min(seen.Unschedulable, seen.Want-seen.Routable)
		}
	}
	return w
}

func clone(w World) World {
	w.Roles = slices.Clone(w.Roles)
	w.Generations = slices.Clone(w.Generations)
	for i := range w.Generations {
		w.Generations[i].Roles = slices.Clone(w.Generations[i].Roles)
		for r := range w.Generations[i].Roles {
			w.Generations[i].Roles[r].Ordinals = slices.Clone(w.Generations[i].Roles[r].Ordinals)
		}
	}
	return w
}

// key is a world as the key of a map.
func key(w World, more ...byte) string {
	k := append([]byte{}, more...)
	k = append(append(k, w.Spec...), '/')
	k = append(append(k, w.Stable...), '/')
	if w.Paused {
		k = append(k, '|')
	}
	for _, id := range w.Aborted {
		k = append(append(k, id...), '!')
	}
	for _, role := range w.Roles {
		k = append(k, byte(role.Desired), byte(role.Surge), byte(role.Unavailable))
	}
	for _, g := range w.Generations {
		k = append(append(k, g.ID...), '=')
		for _, r := range g.Roles {
			k = binary.AppendUvarint(k, uint64(r.Want))
			k = binary.AppendUvarint(k, uint64(r.Exist))
			k = binary.AppendUvarint(k, uint64(r.Routable))
			k = binary.AppendUvarint(k, uint64(r.Unschedulable))
			for _, n := range r.Ordinals {
				k = append(binary.AppendUvarint(k, uint64(n)), '#')
			}
			if r.Absent {
				k = append(k, '-')
			}
		}
	}
	return string(k)
}
