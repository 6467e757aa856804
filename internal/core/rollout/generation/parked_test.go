package generation

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// pool is a cell of plain workers, each of which enters it, at the defaults.
func pool(desired ...int) World {
	s := shape{desired: desired}
	for _, d := range desired {
		surge, unavailable := (d+3)/4, d/4
		if surge+unavailable == 0 {
			surge = 1
		}
		s.surge, s.unavailable = append(s.surge, surge), append(s.unavailable, unavailable)
	}
	w := s.begin()
	for r := range w.Roles {
		w.Roles[r].Entry = true
	}
	return w
}

// split is the same of one entry and its support.
func split(desired ...int) World {
	w := pool(desired...)
	for r := range w.Roles {
		w.Roles[r].Entry = r == 0
	}
	return w
}

// follow plays a world until a phase, and holds every step against the invariants and
// every world against what it may not go below.
func follow(t *testing.T, w World, to Phase, each func(World)) World {
	t.Helper()
	for range 1000 {
		step := Next(w)
		if err := Check(w, step); err != nil {
			t.Fatalf("%+v: %v", step, err)
		}
		if step.Phase == to {
			return w
		}
		if step.Action == Wait {
			if !w.underWay() {
				t.Fatalf("it ends %+v, not %s: %v", step, to, w.wanted())
			}
			w = comeUp(w, nobody)
		} else {
			w = take(w, step)
		}
		each(w)
	}
	t.Fatalf("no end of waiting for %s: %v", to, w.wanted())
	return w
}

// atLeastOf fails where fewer of a role serve, in whatever generations: parked roles are
// missing in all of them.
func atLeastOf(t *testing.T, role, least int) func(World) {
	return func(w World) {
		t.Helper()
		n := 0
		for _, g := range w.Generations {
			n += g.Roles[role].serving()
		}
		if n < least {
			t.Fatalf("%d of %s serve, floor %d: %v", n, w.Roles[role].Name, least, w.wanted())
		}
	}
}

func TestAParkedRoleTakesNothingFromTheFloorOfOthers(t *testing.T) {
	follow(t, pool(8, 0), PhaseCompleted, atLeastOf(t, 0, 6))
}

func TestARolloutBesideAParkedRoleIsAborted(t *testing.T) {
	w := pool(8, 0)
	w = follow(t, w, PhaseShifting, atLeastOf(t, 0, 6))
	w.Aborted = []ID{"b"}
	follow(t, w, PhaseAborted, atLeastOf(t, 0, 6))
}

// TestARoleThatIsScaledFromZeroDuringARolloutWaitsForItsEnd: a generation that has it
// would make all others incomplete, and these could be taken away at once.
func TestARoleThatIsScaledFromZeroDuringARolloutWaitsForItsEnd(t *testing.T) {
	w := follow(t, pool(8, 0), PhaseShifting, atLeastOf(t, 0, 6))
	w.Roles[1].Desired = 4
	w = follow(t, w, PhaseCompleted, atLeastOf(t, 0, 6))
	if diff := cmp.Diff(counts{{8, 4}}, w.wanted()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestARoleThatIsParkedDuringARolloutLeaves(t *testing.T) {
	for _, entry := range []bool{true, false} {
		w := pool(8, 4)
		w.Roles[1].Entry = entry
		w = follow(t, w, PhaseShifting, atLeastOf(t, 0, 6))
		w.Roles[1].Desired, w.Roles[1].Unavailable = 0, 0
		w = follow(t, w, PhaseCompleted, atLeastOf(t, 0, 6))
		if n := w.Generations[0].Roles[1].Want; n != 0 {
			t.Errorf("entry %t: %d are left", entry, n)
		}
	}
}

// TestSupportThatComesWithAChangeIsStartedWithIt: a worker that did all of the work decodes
// from now on, and may answer nobody before there is prefill.
func TestSupportThatComesWithAChangeIsStartedWithIt(t *testing.T) {
	for _, whole := range []bool{false, true} {
		w := pool(2, 2)
		w.Whole, w.Roles[1].Entry = whole, false
		w.Generations[0].Roles[1] = Replicas{}
		w = follow(t, w, PhaseCompleted, func(w World) {
			if w.index("a") >= 0 && w.Generations[w.index("a")].Roles[0].Want < 2 && !w.Complete("b") {
				t.Fatalf("what serves is taken away before a pair does: %v", w.wanted())
			}
		})
		if diff := cmp.Diff(counts{{2, 2}}, w.wanted()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

// TestSupportThatComesWithAChangeTakesNothingFromTheFloor: what serves without it counts
// until it is gone, and can be gone back to.
func TestSupportThatComesWithAChangeTakesNothingFromTheFloor(t *testing.T) {
	for name, absent := range map[string]bool{"at 0": false, "absent": true} {
		t.Run(name, func(t *testing.T) {
			w := follow(t, without(split(8, 4), absent), PhaseCompleted, atLeastOf(t, 0, 6))
			if diff := cmp.Diff(counts{{8, 4}}, w.wanted()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			w = follow(t, without(split(8, 4), absent), PhaseShifting, atLeastOf(t, 0, 6))
			w.Aborted = []ID{"b"}
			w = follow(t, w, PhaseAborted, atLeastOf(t, 0, 6))
			back := counts{{8, 4}}
			if absent {
				back = counts{{8, 0}} // there is nothing that could be told of any
			}
			if diff := cmp.Diff(back, w.wanted()); diff != "" {
				t.Errorf("back (-want +got):\n%s", diff)
			}
		})
	}
}

// lone is a world of two entries in which a has none of the second, which comes with b.
func lone(w World) World {
	w.Roles[1].Entry = true
	w.Generations[0].Roles[1] = Replicas{Absent: true}
	return w
}

// TestAnEntryThatComesWithAChangeIsNoPartOfTheWayBack: nothing could be told of it there.
func TestAnEntryThatComesWithAChangeIsNoPartOfTheWayBack(t *testing.T) {
	for name, whole := range map[string]bool{"role by role": false, "in one piece": true} {
		t.Run(name, func(t *testing.T) {
			begin := lone(pool(8, 4))
			begin.Whole = whole
			w := follow(t, begin, PhaseCompleted, atLeastOf(t, 0, 6))
			if diff := cmp.Diff(counts{{8, 4}}, w.wanted()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			for _, from := range []Phase{PhaseStarting, PhaseShifting} {
				w := follow(t, begin, from, atLeastOf(t, 0, 6))
				w.Aborted = []ID{"b"}
				w = follow(t, w, PhaseAborted, atLeastOf(t, 0, 6))
				if diff := cmp.Diff(counts{{8, 0}}, w.wanted()); diff != "" {
					t.Errorf("back from %s (-want +got):\n%s", from, diff)
				}
				if !w.Complete("a") {
					t.Errorf("back from %s, nothing is said to serve", from)
				}
			}
		})
	}
}

// TestAGenerationWithoutAnyEntryIsNotComplete: who has only support serves nobody.
func TestAGenerationWithoutAnyEntryIsNotComplete(t *testing.T) {
	w := split(2, 2)
	w.Generations[0].Roles[0] = Replicas{Absent: true}
	if w.Complete("a") {
		t.Error("prefill alone is said to serve")
	}
}

// TestSupportThatComesWithAChangeAndFindsNoNodeTakesNothing: b is unschedulable, and only
// what may be missing makes room for it.
func TestSupportThatComesWithAChangeAndFindsNoNodeTakesNothing(t *testing.T) {
	for unavailable, least := range map[int]int{0: 8, 2: 6} {
		w := without(split(8, 4), false)
		w.Roles[0].Unavailable = unavailable
		for range 50 {
			step := Next(w)
			if step.Action == Wait && step.Reason == ReasonNoSpareGPU {
				break
			}
			if step.Action == Wait {
				w = clone(w)
				for g := range w.Generations {
					for r := range w.Generations[g].Roles {
						seen := &w.Generations[g].Roles[r]
						seen.Exist = seen.Want
						if w.Generations[g].ID == "b" {
							seen.Unschedulable = seen.Want
						}
					}
				}
				continue
			}
			w = take(w, step)
			atLeastOf(t, 0, least)(w)
		}
		if step := Next(w); step.Reason != ReasonNoSpareGPU || w.Generations[w.index("a")].Roles[0].Want != least {
			t.Errorf("%+v: %v", step, w.wanted())
		}
	}
}

// TestAWayBackKeepsTheSupportOfWhatLeaves: the generation to go back to has none, and no
// floor asks for any; the entries of the candidate need theirs to the last.
func TestAWayBackKeepsTheSupportOfWhatLeaves(t *testing.T) {
	w := without(split(8, 4), true)
	w.Generations[0].Roles[0] = Replicas{Want: 2, Exist: 2, Routable: 2}
	w.Generations[1].Roles = []Replicas{{Want: 6, Exist: 6, Routable: 6}, {Want: 4, Exist: 4, Routable: 4}}
	w.Aborted = []ID{"b"}
	follow(t, w, PhaseAborted, func(w World) {
		if g := w.index("b"); g >= 0 && w.Generations[g].Roles[0].Want > 0 && w.Generations[g].Roles[1].Want < 4 {
			t.Fatalf("prefill goes first: %v", w.wanted())
		}
	})
}

// TestACellWhoseEntryIsParkedIsRolledOut: nobody is served, and nothing is held for that.
func TestACellWhoseEntryIsParkedIsRolledOut(t *testing.T) {
	w := pool(0, 2)
	w.Roles[1].Entry = false
	follow(t, w, PhaseCompleted, func(World) {})
}

// TestAGenerationIsMadeBesideMoreThanIsDesiredOfWhatItHasNot: that there is no room for
// more of an entry that was parked is nothing to one that has none of it.
func TestAGenerationIsMadeBesideMoreThanIsDesiredOfWhatItHasNot(t *testing.T) {
	w := split(0, 3)
	one := []Replicas{{Want: 1, Exist: 1, Routable: 1}, {Want: 1, Exist: 1, Routable: 1}}
	w.Roles[1].Unavailable = 1
	w.Generations = []Generation{{ID: "a", Roles: one}, {ID: "b", Roles: one}, {ID: "c", Roles: make([]Replicas, 2)}}
	w.Spec, w.Stable, w.Whole = "c", "a", true
	if step := Next(w); step.Action != Make || step.Generation != "c" {
		t.Errorf("%+v", step)
	}
}
