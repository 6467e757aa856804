package managed_test

import (
	"slices"
	"testing"
	"time"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/generation"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/managed"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/policy"
)

// TestTheTimeOfAStepBeginsOnceAllCellsHaveReachedIt: what one of them has had is no time in
// which another was seen to serve.
func TestTheTimeOfAStepBeginsOnceAllCellsHaveReachedIt(t *testing.T) {
	for rule, slow := range map[string][]string{
		"the last is slow":  {"worker"},
		"the first is slow": {"prefill", "decode"},
	} {
		t.Run(rule, func(t *testing.T) {
			c := begin(t, 4, defaults, map[string]string{v1alpha1.AnnotationRolloutSteps: "25% 10m"}, "prefill", "decode", "worker")
			c.image(second)
			for _, service := range slow {
				c.dgd.Spec.Services[service].ExtraPodSpec.MainContainer.Image = third
			}
			c.broken, c.floor = third, 0
			began := c.now
			c.until("a cell to have waited", func(managed.Decision) bool { return c.now.Sub(began) > 5*time.Minute })
			c.broken = ""
			reached := map[string]time.Time{}
			c.until("all to have passed it", func(d managed.Decision) bool {
				passed := 0
				for _, cell := range d.State.Cells {
					told, serves := candidate(cell, "decode", "worker")
					name := cell.Cell.String()
					if serves && reached[name].IsZero() {
						reached[name] = c.now
					}
					if told <= 1 {
						continue
					}
					passed++
					for _, at := range reached {
						if waited := c.now.Sub(at); waited < 10*time.Minute || len(reached) < 2 {
							t.Fatalf("%s goes on %v after a cell had reached the step: %+v", name, waited, c.dgd.Status.Rollout)
						}
					}
				}
				return passed == 2
			})
			c.until("the rollout to be completed", settled)
		})
	}
}

// TestACellThatCannotStartIsToldBesideOneThatIsHeld: it may have no step to stop at, and the
// deadline counts for it.
func TestACellThatCannotStartIsToldBesideOneThatIsHeld(t *testing.T) {
	c := begin(t, 4, defaults, map[string]string{v1alpha1.AnnotationRolloutSteps: "25% hold"}, "prefill", "decode", "worker")
	c.floor = 0
	for _, service := range []string{"prefill", "decode"} {
		c.dgd.Spec.Services[service].Replicas = new(int32(1))
	}
	c.until("one decode", func(d managed.Decision) bool { return settled(d) && c.told("decode") == 1 && c.told("prefill") == 1 })
	c.image(second)
	for _, service := range []string{"prefill", "decode"} {
		c.dgd.Spec.Services[service].ExtraPodSpec.MainContainer.Image = third
	}
	c.broken = third
	c.until("the deadline", func(managed.Decision) bool {
		return c.dgd.Status.Rollout != nil && c.dgd.Status.Rollout.Phase == string(generation.PhaseAborting)
	})
}

// TestACellThatSleepsHoldsNoOther: its step is none that another would have to wait at.
func TestACellThatSleepsHoldsNoOther(t *testing.T) {
	for awake, asleep := range map[string][]string{"decode": {"worker"}, "worker": {"prefill", "decode"}} {
		t.Run(awake, func(t *testing.T) {
			c := begin(t, 4, defaults, map[string]string{v1alpha1.AnnotationRolloutSteps: "25% 10m"}, "prefill", "decode", "worker")
			c.floor = 0
			c.image(second)
			c.until("the step", func(managed.Decision) bool {
				return c.dgd.Status.Rollout != nil && c.dgd.Status.Rollout.Reason == string(policy.WaitsForTime)
			})
			for _, service := range asleep {
				c.dgd.Spec.Services[service].Replicas = new(int32(0))
			}
			c.until("the others to have passed it", func(d managed.Decision) bool {
				for _, cell := range d.State.Cells {
					if told, _ := candidate(cell, awake); told == 4 {
						return true
					}
				}
				return false
			})
		})
	}
}

// candidate is how many replicas of some services the candidate of a cell was told to have,
// and whether any serves.
func candidate(cell managed.CellState, services ...string) (told int, serves bool) {
	for _, g := range cell.World.Generations {
		for i, role := range cell.World.Roles {
			if g.ID == cell.World.Spec && slices.Contains(services, role.Name) {
				told += g.Roles[i].Want
				serves = serves || g.Roles[i].Routable > 0
			}
		}
	}
	return told, serves
}
