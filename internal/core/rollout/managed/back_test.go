package managed_test

import (
	"testing"
	"time"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/analysis"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/managed"
)

// scarce lets the only pair of a graph be missing, and leaves no GPU for another.
func (c *cluster) scarce() {
	c.Helper()
	for _, s := range c.dgd.Spec.Services {
		s.Annotations = map[string]string{v1alpha1.AnnotationMaxUnavailable: "1", v1alpha1.AnnotationMaxSurge: "0"}
	}
	c.gpus, c.floor = 2, 0
}

// TestARolloutIsAbortedThoughItHasTakenTheStableGenerationAway: that is there without
// replicas, and comes back.
func TestARolloutIsAbortedThoughItHasTakenTheStableGenerationAway(t *testing.T) {
	for reason, act := range map[analysis.AbortReason]func(*cluster){
		analysis.AbortDeadline:  func(*cluster) {},
		analysis.AbortRequested: func(c *cluster) { c.dgd.Annotations[v1alpha1.AnnotationRolloutAbort] = c.dgd.Status.Rollout.Target },
	} {
		t.Run(string(reason), func(t *testing.T) {
			c := start(t, 1)
			c.scarce()
			c.quiet()
			stable := c.dgd.Annotations[v1alpha1.AnnotationGeneration]
			c.broken = second
			c.image(second)
			c.until("the pair to be broken", func(managed.Decision) bool { return len(c.uids(stable)) < 2 })
			act(c)
			c.phase("Aborted", string(reason))
			c.quiet()
			if n := c.serving(); n != 1 || len(c.uids(stable)) != 2 || len(c.owned) != 2 {
				t.Errorf("%d pairs serve with %d components: %+v", n, len(c.owned), c.dgd.Status.Rollout)
			}
		})
	}
}

// TestACandidateIsNotGivenUpForWhatDoesNotServe: a change is how a user mends what does
// not run, and takes its time.
func TestACandidateIsNotGivenUpForWhatDoesNotServe(t *testing.T) {
	slow := loading{model: time.Second, rest: 15 * time.Minute}
	finishes := func(c *cluster) {
		c.Helper()
		c.loading = slow
		c.image(second)
		c.until("the rollout to begin", func(d managed.Decision) bool { return len(d.Rolling) > 0 })
		c.until("the rollout to be completed", func(d managed.Decision) bool {
			if st := c.dgd.Status.Rollout; st != nil && (st.Phase == "Aborting" || st.Phase == "Aborted") {
				c.Fatalf("%+v", st)
			}
			return settled(d)
		})
	}
	t.Run("and never did", func(t *testing.T) {
		c := created(t, 1, defaults, nil, "prefill", "decode")
		c.scarce()
		c.broken = first
		for range 20 {
			c.reconcile()
			c.life()
		}
		finishes(c)
	})
	t.Run("any more", func(t *testing.T) {
		c := start(t, 1)
		c.floor = 0
		c.quiet()
		c.broken = first
		for i := range c.pods {
			c.pods[i].Status.Conditions = nil
		}
		finishes(c)
	})
}
