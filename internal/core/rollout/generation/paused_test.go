package generation

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAPausedRolloutIsScaled(t *testing.T) {
	half := func(desired ...int) World {
		w := pool(desired...)
		for r, d := range desired {
			w.Generations[0].Roles[r] = Replicas{Want: d - d/2, Exist: d - d/2, Routable: d - d/2}
			w.Generations[1].Roles[r] = Replicas{Want: d / 2, Exist: d / 2, Routable: d / 2}
		}
		w.Paused = true
		return w
	}
	for rule, c := range map[string]struct {
		world World
		to    []int
		want  counts
	}{
		"what is as desired stays":                              {half(4), []int{4}, counts{{2}, {2}}},
		"the stable generation grows":                           {half(2), []int{4}, counts{{3}, {1}}},
		"the stable generation shrinks, but for the surge":      {half(8), []int{4}, counts{{1}, {4}}},
		"what is scaled to zero goes, and its generations stay": {half(4, 2), []int{4, 0}, counts{{2, 0}, {2, 0}}},
	} {
		t.Run(rule, func(t *testing.T) {
			w := c.world
			for r, d := range c.to {
				w.Roles[r].Desired, w.Roles[r].Surge, w.Roles[r].Unavailable = d, max(1, (d+3)/4), d/4
			}
			for range 50 {
				step := Next(w)
				if err := Check(w, step); err != nil {
					t.Fatal(err)
				}
				if step.Phase != PhaseHeld || step.Reason != ReasonPaused {
					t.Fatalf("%+v", step)
				}
				if step.Action == Wait {
					w = comeUp(w, nobody)
				} else {
					w = take(w, step)
				}
			}
			if diff := cmp.Diff(c.want, w.wanted()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
