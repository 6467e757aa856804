package generation

import (
	"testing"
	"time"
)

// TestALargeCellIsPlannedInTime: a reconcile waits for each step.
func TestALargeCellIsPlannedInTime(t *testing.T) {
	tight := func(w World) World {
		for r := range w.Roles {
			w.Roles[r].Surge, w.Roles[r].Unavailable = 1, 0
		}
		return w
	}
	for name, c := range map[string]struct {
		world World
		// steps are at most to be played; zero is until it is completed.
		steps int
	}{
		"60000 of one":                      {split(60000), 0},
		"70000 of one, past 16 bits":        {split(70000), 0},
		"60000 of each of two":              {split(60000, 60000), 0},
		"60000 one by one":                  {tight(split(60000)), 20},
		"100 of each of three":              {split(100, 100, 100), 0},
		"100 of each of three one by one":   {tight(split(100, 100, 100)), 20},
		"1000 of one and 3 that support it": {tight(split(1000, 3)), 20},
		"three pools of 100":                {pool(100, 100, 100), 0},
	} {
		t.Run(name, func(t *testing.T) {
			w, slowest, steps, slack := c.world, time.Duration(0), 0, 0
			for phase := PhaseStarting; phase != PhaseCompleted && (c.steps == 0 || steps < c.steps); {
				began := time.Now()
				step := Next(w)
				slowest = max(slowest, time.Since(began))
				if phase = step.Phase; phase == PhaseBlocked || steps > 2000 {
					t.Fatalf("%d steps, and %+v: %v", steps, step, w.wanted())
				}
				if step.Action == Wait {
					w = comeUp(w, nobody)
					continue
				}
				steps++
				w, slack = take(w, step), max(slack, step.Slack)
				if err := Serves(w, slack); err != nil {
					t.Fatal(err)
				}
			}
			t.Logf("%d steps, the slowest took %s", steps, slowest)
			// 100 ms where nothing else runs; the bound only tells a search from a hang.
			if slowest > 2*time.Second {
				t.Errorf("a step took %s", slowest)
			}
		})
	}
}
