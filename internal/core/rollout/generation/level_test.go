package generation

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestALevelLeavesTheStableGenerationOneOfEveryRole, out of surge if need be: it is what
// to go back to.
func TestALevelLeavesTheStableGenerationOneOfEveryRole(t *testing.T) {
	for rule, c := range map[string]struct {
		world World
		want  counts
	}{
		"one entry of two and one":       {pool(2, 1), counts{{1, 1}, {1, 1}}},
		"one entry of one and one":       {pool(1, 1), counts{{1, 1}, {1, 1}}},
		"one entry of five and three":    {pool(5, 3), counts{{4, 2}, {1, 1}}},
		"one entry of four and a parked": {pool(4, 0), counts{{3, 0}, {1, 0}}},
		"but none that it never had":     {without(split(8, 4), true), counts{{7, 0}, {1, 1}}},
	} {
		t.Run(rule, func(t *testing.T) {
			w := c.world
			w.Level = 1
			w = follow(t, w, PhaseHeld, func(w World) {
				if slices.ContainsFunc(w.Generations[0].Roles, func(r Replicas) bool { return r.Want == 0 && !r.Absent }) && w.Roles[1].Desired > 0 {
					t.Fatalf("the stable generation is not complete: %v", w.wanted())
				}
			})
			if step := Next(w); step.Reason != ReasonLevel {
				t.Errorf("%+v", step)
			}
			if diff := cmp.Diff(c.want, w.wanted()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	t.Run("where that cannot be, the level is none", func(t *testing.T) {
		w := pool(2, 1)
		w.Level, w.Roles[1].Surge, w.Roles[1].Unavailable = 1, 0, 1
		follow(t, w, PhaseCompleted, func(World) {})
	})
}

// TestALevelIsReachedFromAnotherCandidateThatBringsSupport: what that has of it is more
// than the level leaves, and must not be kept for a floor.
func TestALevelIsReachedFromAnotherCandidateThatBringsSupport(t *testing.T) {
	for rule, c := range map[string]struct {
		world  World
		target []Replicas
	}{
		"beside it, where there is room":          {split(4, 3), up(1, 1)},
		"after it, where its entry is in the way": {noSurge(split(4, 3)), up(0, 0)},
		"and where support is there before":       {noSurge(split(4, 3)), up(0, 1)},
		"and where frontends are the entries":     {noSurge(paired(split(4, 3))), up(0, 0)},
	} {
		t.Run(rule, func(t *testing.T) {
			w := without(c.world, false)
			w.Generations = []Generation{{ID: "a", Roles: up(3, 0)}, {ID: "b", Roles: c.target}, {ID: "c", Roles: up(1, 1)}}
			w.Level, w.Unapproved = 1, true
			w = follow(t, w, PhaseHeld, atLeastOf(t, 0, 3))
			if diff := cmp.Diff(counts{{3, 0}, {1, 1}}, w.wanted()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// noSurge is a world in which an entry is started once another has gone.
func noSurge(w World) World {
	w.Roles[0].Surge, w.Roles[0].Unavailable = 0, 1
	return w
}

// TestALevelIsReachedBesideTheStableGeneration, which is not left for it: where there is no room,
// support of the candidate before is short for a while, and the way back stays.
func TestALevelIsReachedBesideTheStableGeneration(t *testing.T) {
	w := World{Spec: "c", Stable: "a", Level: 3, Unapproved: true, Paired: true, Roles: []Role{
		{Name: "decode", Entry: true, Desired: 4, Unavailable: 1},
		{Name: "prefill", Desired: 4, Surge: 1, Unavailable: 2, GPUs: 1},
		{Name: "encode", Desired: 2, Surge: 1, GPUs: 1},
	}, Generations: []Generation{{ID: "a", Roles: up(1, 1, 1)}, {ID: "b", Roles: up(3, 2, 2)}, {ID: "c", Roles: up(0, 2, 0)}}}
	w = follow(t, w, PhaseHeld, func(w World) {
		if slices.Contains(w.wanted()[0], 0) {
			t.Errorf("the stable generation is not complete: %v", w.wanted())
		}
	})
	if diff := cmp.Diff(counts{{1, 1, 1}, {3, 3, 2}}, w.wanted()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
