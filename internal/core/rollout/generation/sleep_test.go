package generation

import "testing"

// TestNoEntriesApproveOfNoCandidate: with steps to be passed, the stable generation is kept
// though support is desired.
func TestNoEntriesApproveOfNoCandidate(t *testing.T) {
	w := split(4, 2)
	w.Level, w.Unapproved = 1, true
	w = follow(t, w, PhaseHeld, func(World) {})
	w.Roles[0].Desired, w.Roles[0].Unavailable, w.Level = 0, 0, 0
	for range 20 {
		step := Next(w)
		if step.Phase != PhaseHeld || step.Reason != ReasonNothingDesired || step.Action == Delete {
			t.Fatalf("%+v", step)
		}
		if step.Action == Wait {
			w = comeUp(w, nobody)
		} else {
			w = take(w, step)
		}
	}
	for _, g := range w.Generations {
		if g.Roles[0].Want != 0 || g.Roles[1].Want == 0 {
			t.Errorf("%s has %d of decode, %d of prefill", g.ID, g.Roles[0].Want, g.Roles[1].Want)
		}
	}
	w.Unapproved = false
	follow(t, w, PhaseCompleted, func(World) {})
}

// TestACellThatSleepsKeepsItsStableGeneration: nothing is wanted, and that approves of no
// candidate. Awake again, it is at its level.
func TestACellThatSleepsKeepsItsStableGeneration(t *testing.T) {
	for _, whole := range []bool{false, true} {
		w := pool(4, 2)
		w.Whole, w.Level = whole, 1
		w = follow(t, w, PhaseHeld, func(World) {})
		for r := range w.Roles {
			w.Roles[r].Desired, w.Roles[r].Unavailable = 0, 0
		}
		w.Level = 0 // there are no entries to take a share of
		w = follow(t, w, PhaseHeld, func(w World) {
			if w.index("a") < 0 {
				t.Fatal("the stable generation is gone")
			}
		})
		for range 10 {
			if step := Next(w); step.Action == Wait {
				w = comeUp(w, nobody)
			} else {
				w = take(w, step)
			}
		}
		for _, g := range w.Generations {
			for r, n := range g.Roles {
				if n.Want != 0 {
					t.Errorf("%s has %d of %s asleep", g.ID, n.Want, w.Roles[r].Name)
				}
			}
		}
		if step := Next(w); w.index("a") < 0 || step.Phase != PhaseHeld || step.Action != Wait {
			t.Errorf("asleep: %+v, %+v", step, w.Generations)
		}
		w.Roles[0].Desired, w.Roles[1].Desired, w.Level = 4, 2, 1
		w = follow(t, w, PhaseHeld, func(World) {})
		if w.index("a") < 0 || w.Generations[w.index("a")].Roles[0].Routable != 3 {
			t.Errorf("at the level again: %v", w.wanted())
		}
	}
}

// TestEntriesThatAreNotDesiredGo, though a stable generation that serves without some of the
// support would not be complete without them: nothing is left that has to be served.
func TestEntriesThatAreNotDesiredGo(t *testing.T) {
	for rule, level := range map[string]int{"while a step is waited at": 2, "while all is rolled out": 0} {
		t.Run(rule, func(t *testing.T) {
			w := World{Spec: "b", Stable: "a", Level: level, Unapproved: level > 0, Paired: true, Roles: []Role{
				{Name: "decode", Entry: true, Surge: 1},
				{Name: "prefill", Desired: 4, Unavailable: 1, GPUs: 1},
				{Name: "encode", Desired: 1, Surge: 1, GPUs: 1},
			}, Generations: []Generation{{ID: "a", Roles: up(1, 3, 0)}, {ID: "b", Roles: up(1, 1, 1)}}}
			for range 20 {
				step := Next(w)
				if err := Check(w, step); err != nil {
					t.Fatalf("%+v: %v", step, err)
				}
				if step.Action == Wait {
					w = comeUp(w, nobody)
				} else {
					w = take(w, step)
				}
			}
			for _, g := range w.Generations {
				if g.Roles[0].Want != 0 {
					t.Errorf("%s has %d of decode", g.ID, g.Roles[0].Want)
				}
			}
		})
	}
}
