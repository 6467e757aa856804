package managed_test

import (
	"testing"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/analysis"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/managed"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/policy"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/world"
)

func (c *cluster) crash(id string) {
	for range world.MostCrashes {
		c.crashes = append(c.crashes, world.Crash{Generation: id, Service: "decode", Pod: "chat-decode-x", At: c.now})
	}
}

// TestARetryIsNotAbortedForTheCrashesBeforeIt, and is for its own.
func TestARetryIsNotAbortedForTheCrashesBeforeIt(t *testing.T) {
	image := func(c *cluster) { c.image(second) }
	for name, test := range map[string]struct {
		roll func(*cluster)
		// when it is tried again.
		phase string
	}{
		"of a change":                    {image, "Aborted"},
		"of one that is on its way back": {image, "Aborting"},
		"of a restart":                   {func(c *cluster) { c.dgd.Spec.Restart = &v1alpha1.Restart{ID: "again"} }, "Aborted"},
	} {
		t.Run(name, func(t *testing.T) {
			c := start(t, 4)
			test.roll(c)
			c.phase("Shifting", "")
			id := c.dgd.Status.Rollout.Target
			c.crash(id)
			c.phase(test.phase, string(analysis.AbortCrashed))
			c.dgd.Annotations[v1alpha1.AnnotationRolloutRetry] = id
			c.phase("Shifting", "")
			c.life() // some time passes
			c.crash(id)
			c.phase("Aborted", string(analysis.AbortCrashed))
			c.dgd.Annotations[v1alpha1.AnnotationRolloutRetry] = id
			c.until("the retry to be completed", settled)
		})
	}
}

// TestARetryIsComparedAnew: what was seen of the candidate before has had its verdict.
func TestARetryIsComparedAnew(t *testing.T) {
	c := atStep(t, nil)
	compared := func() []analysis.Comparison { return managed.Comparisons(c.input()) }
	before := compared()
	c.requests = seen(.05)
	c.phase("Aborted", string(analysis.AbortRegression))
	c.requests = nil
	c.dgd.Annotations[v1alpha1.AnnotationRolloutRetry] = before[0].Candidate
	if now := compared(); len(now) != 0 {
		t.Errorf("before it is tried again: %+v", now)
	}
	c.phase("Held", string(policy.WaitsForTime))
	if now := compared(); len(before) != 1 || len(now) != 1 || now[0].Candidate != before[0].Candidate || now[0].Revision <= before[0].Revision {
		t.Errorf("%+v, then %+v", before, now)
	}
}
