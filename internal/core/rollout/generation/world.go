// Package generation decides the next step by which one generation of a cell
// replaces another, so that at every moment enough of it serves.
//
// A cell is a set of services that need each other, such as prefill and decode. A
// generation is one version of a cell; generations do not talk to each other, so
// only a complete one serves: one that has a replica of every role. That is why
// replicas are counted over complete generations here, and never role by role.
//
// The package is pure: what was seen goes in, one step comes out, and the same
// world gives the same step. It reads no clock and remembers nothing.
package generation

import (
	"cmp"
	"slices"
)

// ID names a generation. It is opaque: it may come from another operator. The empty
// one is that of objects with plain names.
type ID string

// Role is a service of a cell and how it is to be replaced.
type Role struct {
	Name string
	// Entry says that traffic divides over generations by the number of replicas of
	// this role; the others support it.
	Entry bool
	// Desired replicas, how many more may exist, and how many may be missing.
	Desired, Surge, Unavailable int
	// GPUs is how many one replica holds, on all of its nodes.
	GPUs int
}

// supports reports whether entries need a role: not one of which none is desired.
func (r Role) supports() bool { return !r.Entry && r.Desired > 0 }

// Replicas is what was seen of a role in a generation.
type Replicas struct {
	// Want is what its workload was last told.
	Want int
	// Exist counts those that are starting and those that are leaving too: they hold
	// GPUs.
	Exist int
	// Ready ones, of which those are settling that have not been for long enough to be
	// relied upon: they may serve, and it is soon known.
	Ready, Settling int
	// Routable ones are ready, and the frontends send them requests.
	Routable int
	// Ordinals are those of the ready ones where the highest go first, sorted; nil where
	// those go first that are not ready.
	Ordinals []int
	// Unschedulable ones wait for a node, and have for so long that none is expected.
	Unschedulable int
	// Refused ones have been ready for so long that frontends would have sent them requests,
	// and have been sent none for as long.
	Refused int
	// Absent says that there is nothing that could be told of any: its generation is from
	// before there was such a role, or was left before it had one.
	Absent bool
}

// serving are the replicas that serve once everything that was told to go is gone.
func (r Replicas) serving() int { return r.kept(r.Want) }

// kept are the replicas that still serve once no more than so many are left. Of those with
// ordinals the lowest are left; if some of the ready ones do not serve, which is not known,
// these are among them.
func (r Replicas) kept(n int) int {
	if r.Ordinals == nil {
		return min(r.Routable, n)
	}
	left, _ := slices.BinarySearch(r.Ordinals, n)
	return min(r.Routable, max(0, left-max(0, len(r.Ordinals)-r.Routable)))
}

// Likely are the replicas that are routable, or will soon be known to be.
func (r Replicas) Likely() int { return max(r.Routable, min(r.Ready, r.Routable+r.Settling)) }

// held are the replicas that hold a GPU, or will.
func (r Replicas) held() int { return max(r.Exist, r.Want) }

// starting reports whether a replica is expected to come up.
func (r Replicas) starting() bool { return r.Want > r.Routable+r.Unschedulable }

// leaving reports whether a replica is still shutting down.
func (r Replicas) leaving() bool { return r.Exist > r.Want }

// Generation is one version of a cell.
type Generation struct {
	ID ID
	// Roles are in the order of the world's roles.
	Roles []Replicas
}

// World is everything that a step depends on.
type World struct {
	Roles       []Role
	Generations []Generation
	// Spec is the generation that the user asks for, Stable the last that a rollout
	// completed.
	Spec, Stable ID
	// Aborted are the generations that must not be tried again.
	Aborted []ID
	// Level is how many entry replicas the target may have until the next step of the
	// rollout; zero is all of them.
	Level int
	// Unapproved says that there are steps that the rollout has not passed.
	Unapproved bool
	// Paused stops growing and draining; what is desired is followed by the stable
	// generation.
	Paused bool
	// Whole says that a generation cannot be started role by role: it is made with one
	// replica of each.
	Whole bool
	// Paired says that entries are sent requests as soon as they are ready, whether or
	// not their generation is complete: they are frontends, behind a Service.
	Paired bool
}

// Target is the generation to arrive at. To revert, to undo and to abort are only
// another target: they need no code of their own.
func (w World) Target() ID {
	if slices.Contains(w.Aborted, w.Spec) {
		return w.Stable
	}
	return w.Spec
}

// Routable is how many replicas of a generation frontends send requests to, of whatever
// role.
func (w World) Routable(id ID) int {
	n := 0
	if g := w.index(id); g >= 0 {
		for _, r := range w.Generations[g].Roles {
			n += r.Routable
		}
	}
	return n
}

// Postponed is the world in which roles that were scaled from zero wait until what serves
// without them is gone. Nobody has such a role yet: once one generation had it, all others
// might be incomplete, and what they serve would count for nothing. Support that comes with
// the target is started with it: its entries may serve nobody without. Entries that come
// with it wait until the stable generation, which never had them, is gone for good: until
// they are up, nothing of the target would count either.
func (w World) Postponed() World {
	w = w.withoutNewEntries()
	roles, absent := slices.Clone(w.Roles), false
	g := w.index(w.Target())
	enters := g >= 0 && entriesOf(w.Roles, w.wanted()[g]) > 0
	for r, floor := range Floor(w.Roles) {
		if floor > 0 && (enters || w.Roles[r].Entry) && !w.wants(r) {
			roles[r].Desired, roles[r].Unavailable, absent = 0, 0, true
		}
	}
	if !absent {
		return w
	}
	l := w.lacking()
	for g, want := range w.wanted() {
		if w.Generations[g].ID != w.Target() && l.complete(roles, g, want) && entriesOf(roles, want) > 0 {
			w.Roles = roles
			return w
		}
	}
	return w
}

// withoutNewEntries is the world without entries that the stable generation, which is to
// go, never had.
func (w World) withoutNewEntries() World {
	if w.Target() == w.Stable {
		return w
	}
	roles := slices.Clone(w.Roles)
	for r := range roles {
		if roles[r].Entry && w.Lacks(r) && !w.wants(r) {
			roles[r].Desired, roles[r].Unavailable = 0, 0
		}
	}
	w.Roles = roles
	return w
}

// wants reports whether any generation was told of a role.
func (w World) wants(r int) bool {
	return slices.ContainsFunc(w.Generations, func(g Generation) bool { return g.Roles[r].Want > 0 })
}

// ordered is the world with its generations by name, the target among them, so that
// the order in which they were listed has no part in a decision.
func (w World) ordered() World {
	w.Generations = slices.Clone(w.Generations)
	if w.index(w.Target()) < 0 {
		w.Generations = append(w.Generations, Generation{ID: w.Target(), Roles: make([]Replicas, len(w.Roles))})
	}
	slices.SortFunc(w.Generations, func(a, b Generation) int { return cmp.Compare(a.ID, b.ID) })
	return w
}

// Unit is what a generation begins with that is made in one piece, by role.
func (w World) Unit() []int {
	unit := make([]int, len(w.Roles))
	l, g := w.lacking(), w.index(w.Target())
	for r, role := range w.Roles {
		if g < 0 || !l.has(g, r) {
			unit[r] = min(1, role.Desired)
		}
	}
	return unit
}

func (w World) index(id ID) int {
	return slices.IndexFunc(w.Generations, func(g Generation) bool { return g.ID == id })
}

// Phase is how far a rollout is. It is computed from the world, never remembered.
//
//	Starting ──> Shifting <──> Held
//	                └────────> Draining ──> Completed
//
// Any of them may be Blocked. With an aborted spec they are all Aborting, and
// Aborted at the end.
type Phase string

const (
	// PhaseStarting has no complete unit of the target yet.
	PhaseStarting Phase = "Starting"
	PhaseShifting Phase = "Shifting"
	// PhaseHeld has reached its level, or is paused.
	PhaseHeld Phase = "Held"
	// PhaseBlocked has no safe step, and nothing is under way that is known to end.
	PhaseBlocked Phase = "Blocked"
	// PhaseDraining has all of the target; the others are leaving.
	PhaseDraining  Phase = "Draining"
	PhaseCompleted Phase = "Completed"
	PhaseAborting  Phase = "Aborting"
	PhaseAborted   Phase = "Aborted"
)

// Phases are all of them, in the order in which a rollout may meet them.
var Phases = []Phase{PhaseStarting, PhaseShifting, PhaseHeld, PhaseBlocked, PhaseDraining, PhaseCompleted, PhaseAborting, PhaseAborted}

// Ended reports whether nothing is left to do in a phase.
func (p Phase) Ended() bool { return p == "" || p == PhaseCompleted || p == PhaseAborted }

// Reason is why a rollout is held or blocked.
type Reason string

const (
	ReasonPaused Reason = "Paused"
	ReasonLevel  Reason = "LevelReached"
	// ReasonNothingDesired waits for replicas to be desired again, as of a graph that
	// sleeps, or for entries, of which a step is a share.
	ReasonNothingDesired Reason = "NothingDesired"
	// ReasonNoSpareGPU waits for a node, and may take nothing away to make room.
	ReasonNoSpareGPU Reason = "NoSpareGPU"
	// ReasonNotAdmitted waits for frontends to send requests to replicas that have long been
	// ready, as when they refuse their model card.
	ReasonNotAdmitted Reason = "NotAdmitted"
	// ReasonNoPath has no way to the target that keeps the floor.
	ReasonNoPath Reason = "NoPath"
)

// Action is what a step has done.
type Action string

const (
	// Scale tells one role of one generation its replicas.
	Scale Action = "Scale"
	// Make starts a generation with its unit, where that is made in one piece.
	Make Action = "Make"
	// Delete removes a generation of which nothing is left.
	Delete Action = "Delete"
	// Wait writes nothing: what is under way goes on, or nothing is to be done.
	Wait Action = "Wait"
)

// Step is what to do next. The caller asks again once it is done.
type Step struct {
	Action     Action
	Generation ID
	Role       string
	Replicas   int
	// Slack is how far effective support may lie under its floor on the way, because
	// no other way exists; zero nearly always.
	Slack  int
	Phase  Phase
	Reason Reason
}
