package managed_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/analysis"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/managed"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/policy"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/revision"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/world"
)

// phase waits for a rollout to be in one.
func (c *cluster) phase(want, reason string) {
	c.Helper()
	c.until("phase "+want, func(managed.Decision) bool {
		st := c.dgd.Status.Rollout
		return st != nil && st.Phase == want && (reason == "" || st.Reason == reason)
	})
}

// completed rolls an image out to its end.
func (c *cluster) completed(image string) string {
	c.Helper()
	c.image(image)
	c.until("the rollout to begin", func(d managed.Decision) bool { return len(d.Rolling) > 0 })
	c.until("the rollout to be completed", settled)
	c.quiet()
	return c.dgd.Annotations[v1alpha1.AnnotationGeneration]
}

const (
	first  = "example.com/engine:1.0.0"
	second = "example.com/engine:1.1.0"
	third  = "example.com/engine:1.2.0"
)

// TestOrdersHoldForTheRolloutThatTheyWereGivenFor: the id of a generation is a digest, and
// the same spec has the same one again.
func TestOrdersHoldForTheRolloutThatTheyWereGivenFor(t *testing.T) {
	steps := func(c *cluster) { c.dgd.Annotations[v1alpha1.AnnotationRolloutSteps] = "1 hold" }
	t.Run("a promotion of one that was completed", func(t *testing.T) {
		c := start(t, 2)
		steps(c)
		c.image(second)
		c.phase("Held", string(policy.WaitsForPromotion))
		c.dgd.Annotations[v1alpha1.AnnotationRolloutPromote] = c.dgd.Status.Rollout.Target + "/1"
		c.until("the rollout to be completed", settled)
		c.quiet()
		delete(c.dgd.Annotations, v1alpha1.AnnotationRolloutSteps)
		c.completed(first)
		steps(c)
		c.image(second)
		c.phase("Held", string(policy.WaitsForPromotion))
	})
	t.Run("a promotion of one that failed and is tried again", func(t *testing.T) {
		c := start(t, 4)
		c.dgd.Annotations[v1alpha1.AnnotationRolloutSteps] = "1 hold, 2 hold"
		c.image(second)
		c.phase("Held", string(policy.WaitsForPromotion))
		id := c.dgd.Status.Rollout.Target
		c.dgd.Annotations[v1alpha1.AnnotationRolloutPromote] = id + "/1"
		c.until("the second step", func(managed.Decision) bool {
			return c.dgd.Status.Rollout.Phase == "Held" && c.dgd.Status.Rollout.Step == "2/2"
		})
		for range 3 {
			c.crashes = append(c.crashes, world.Crash{Generation: id, Service: "decode", Pod: "chat-decode-x", At: c.now})
		}
		c.phase("Aborted", string(analysis.AbortCrashed))
		c.dgd.Annotations[v1alpha1.AnnotationRolloutRetry] = id
		c.phase("Held", string(policy.WaitsForPromotion))
		if st := c.dgd.Status.Rollout; st.Step != "1/2" {
			t.Errorf("it is at step %s", st.Step)
		}
	})
	t.Run("an abort of one that was completed all the same", func(t *testing.T) {
		c := start(t, 2)
		id := c.completed(second)
		c.dgd.Annotations[v1alpha1.AnnotationRolloutAbort] = id
		c.completed(first)
		if now := c.completed(second); now != id {
			t.Errorf("generation %s serves, and %s was asked for: %+v", now, id, c.dgd.Status.Rollout)
		}
	})
}

func TestAPausedRolloutIsAborted(t *testing.T) {
	c := start(t, 2)
	stable := c.dgd.Annotations[v1alpha1.AnnotationGeneration]
	c.image(second)
	c.phase("Shifting", "")
	c.dgd.Annotations[v1alpha1.AnnotationRolloutPaused] = "true"
	c.phase("Held", "Paused")
	c.dgd.Annotations[v1alpha1.AnnotationRolloutAbort] = c.dgd.Status.Rollout.Target
	c.phase("Aborted", string(analysis.AbortRequested))
	if n := len(c.uids(stable)); n != 4 {
		t.Errorf("%d pods of the stable generation", n)
	}
}

// TestARolloutThatBringsSupportIsAborted: what serves without it is there to go back to.
func TestARolloutThatBringsSupportIsAborted(t *testing.T) {
	for name, absent := range map[string]bool{"of which there were none": false, "that is new": true} {
		t.Run(name, func(t *testing.T) {
			c := start(t, 4)
			stable := c.dgd.Annotations[v1alpha1.AnnotationGeneration]
			prefill := c.dgd.Spec.Services["prefill"]
			prefill.Replicas, c.floor = new(int32(0)), 0
			c.until("prefill to be gone", func(managed.Decision) bool { return len(c.pods) == 4 })
			if absent {
				delete(c.dgd.Spec.Services, "prefill")
			}
			c.quiet()
			prefill.Replicas, c.dgd.Spec.Services["prefill"] = new(int32(4)), prefill
			c.image(second)
			in := func(phase string) func(managed.Decision) bool {
				return c.decodes(3, func(managed.Decision) bool {
					return c.dgd.Status.Rollout != nil && c.dgd.Status.Rollout.Phase == phase
				})
			}
			c.until("a first pair", in("Shifting"))
			c.dgd.Annotations[v1alpha1.AnnotationRolloutAbort] = c.dgd.Status.Rollout.Target
			c.until("the way back", in("Aborted"))
			c.quiet()
			want := 8
			if absent {
				want = 4
			}
			if st := c.dgd.Status.Rollout; st.Reason != string(analysis.AbortRequested) || len(c.pods) != want || len(c.uids(stable)) != want {
				t.Errorf("%d pods of the stable generation, %d in all: %+v", len(c.uids(stable)), len(c.pods), st)
			}
		})
	}
}

// TestARolloutThatBringsAnEntryIsAborted: the generation to go back to never had it, and
// serves as before.
func TestARolloutThatBringsAnEntryIsAborted(t *testing.T) {
	for name, begun := range map[string]struct {
		c     func(*testing.T) *cluster
		entry v1alpha1.ComponentType
		pods  int
	}{
		"another decode": {func(t *testing.T) *cluster { return start(t, 4) }, "decode", 8},
		"a frontend of a pair": {func(t *testing.T) *cluster {
			return begin(t, 4, under(graph.ContractV1), pairs(), "frontend", "prefill", "decode")
		}, "frontend", 12},
	} {
		t.Run(name, func(t *testing.T) {
			c := begun.c(t)
			stable := c.dgd.Annotations[v1alpha1.AnnotationGeneration]
			more := c.dgd.Spec.Services[string(begun.entry)].DeepCopy()
			more.Replicas = new(int32(2))
			c.dgd.Spec.Services["more"], c.floor = more, 0 // pairs
			c.image(second)
			in := func(phase string) func(managed.Decision) bool {
				return c.decodes(3, func(managed.Decision) bool {
					return c.dgd.Status.Rollout != nil && c.dgd.Status.Rollout.Phase == phase
				})
			}
			c.until("a first pair", in("Shifting"))
			c.dgd.Annotations[v1alpha1.AnnotationRolloutAbort] = c.dgd.Status.Rollout.Target
			c.until("the way back", in("Aborted"))
			c.quiet()
			if st := c.dgd.Status.Rollout; st.Reason != string(analysis.AbortRequested) || len(c.pods) != begun.pods || len(c.uids(stable)) != begun.pods {
				t.Errorf("%d pods of the stable generation, %d in all: %+v", len(c.uids(stable)), len(c.pods), st)
			}
			if serving := meta.FindStatusCondition(c.dgd.Status.Conditions, v1alpha1.ConditionServing); serving == nil || serving.Status != metav1.ConditionTrue {
				t.Errorf("serving: %+v", serving)
			}
			c.dgd.Annotations[v1alpha1.AnnotationRolloutRetry] = revision.AbortedGenerations(c.revisions)[0]
			c.until("the retry to be completed", c.decodes(3, settled))
			for name, role := range c.dgd.Status.Rollout.Roles {
				if role.Lowest < role.Floor {
					t.Errorf("the certificate of %s says %d, under its floor of %d", name, role.Lowest, role.Floor)
				}
			}
			c.until("the entry to run", c.decodes(3, func(managed.Decision) bool { return len(c.pods) == begun.pods+2 }))
			c.quiet()
		})
	}
}

// TestNoStepIsPassedByScalingTheEntryToZero: prefill is still desired, and the candidate
// was approved by nobody.
func TestNoStepIsPassedByScalingTheEntryToZero(t *testing.T) {
	c := start(t, 2)
	c.dgd.Annotations[v1alpha1.AnnotationRolloutSteps] = "1 hold"
	c.image(second)
	c.phase("Held", string(policy.WaitsForPromotion))
	stable := c.dgd.Status.Rollout.Stable
	c.dgd.Spec.Services["decode"].Replicas, c.floor = new(int32(0)), 0
	for range 50 {
		c.reconcile()
		c.life()
	}
	if st := c.dgd.Status.Rollout; st.Phase != "Held" || st.Stable != stable || len(c.owned) != 4 || c.told("decode") != 0 || c.told("prefill") < 2 {
		t.Errorf("%d components, %+v", len(c.owned), st)
	}
	c.dgd.Spec.Services["decode"].Replicas = new(int32(2))
	c.phase("Held", string(policy.WaitsForPromotion))
	c.dgd.Annotations[v1alpha1.AnnotationRolloutPromote] = c.dgd.Status.Rollout.Target + "/1"
	c.until("the rollout to be completed", settled)
}

func TestAUserLetsPassWhatIsHeldAfterAFailure(t *testing.T) {
	c := start(t, 2)
	c.dgd.Annotations[v1alpha1.AnnotationRolloutOnFailure] = "hold"
	c.image(second)
	c.phase("Shifting", "")
	id := c.dgd.Status.Rollout.Target
	for range 3 {
		c.crashes = append(c.crashes, world.Crash{Generation: id, Service: "decode", Pod: "chat-decode-x", At: c.now})
	}
	c.phase("Held", string(analysis.AbortCrashed))
	c.dgd.Annotations[v1alpha1.AnnotationRolloutPromote] = id + "/all"
	c.until("the rollout to be completed", settled)
	if now := c.dgd.Annotations[v1alpha1.AnnotationGeneration]; now != id {
		t.Errorf("generation %s serves", now)
	}
}

// TestACandidateThatAUserLetPassIsStillAborted: promoted was its traffic, not a crash.
func TestACandidateThatAUserLetPassIsStillAborted(t *testing.T) {
	c := start(t, 4)
	c.dgd.Annotations[v1alpha1.AnnotationRolloutSteps] = "1 hold"
	c.image(second)
	c.phase("Held", "")
	id := c.dgd.Status.Rollout.Target
	c.dgd.Annotations[v1alpha1.AnnotationRolloutPromote] = id + "/all"
	c.phase("Shifting", "")
	for range 3 {
		c.crashes = append(c.crashes, world.Crash{Generation: id, Service: "decode", Pod: "chat-decode-x", At: c.now})
	}
	c.phase("Aborted", string(analysis.AbortCrashed))
}

// TestTheStatusTellsTheRevisionThatItIsAbout: retry and undo go by its number.
func TestTheStatusTellsTheRevisionThatItIsAbout(t *testing.T) {
	tells := func(c *cluster, id string) {
		c.Helper()
		of := revision.OfGeneration(c.revisions, id)
		if st := c.dgd.Status.Rollout; of == nil || st.Revision != of.Revision {
			c.Errorf("revision %d is told, of generation %s it is %+v", st.Revision, id, of)
		}
	}
	t.Run("of an aborted one that is asked for again", func(t *testing.T) {
		c := start(t, 2)
		c.broken = second
		c.image(second)
		c.phase("Aborted", "")
		id := revision.AbortedGenerations(c.revisions)[0]
		tells(c, id)
		c.completed(third)
		c.image(second)
		c.phase("Aborted", "")
		tells(c, id)
	})
	t.Run("of what is reverted to half way", func(t *testing.T) {
		c := start(t, 4)
		stable := c.dgd.Annotations[v1alpha1.AnnotationGeneration]
		c.image(second)
		c.phase("Shifting", "")
		c.image(first)
		c.reconcile()
		tells(c, stable)
		c.until("the way back", settled)
		c.quiet()
		tells(c, stable)
	})
	t.Run("of a restart that failed", func(t *testing.T) {
		c := start(t, 2)
		c.broken = first // from now on
		c.dgd.Spec.Restart = &v1alpha1.Restart{ID: "again"}
		c.phase("Aborted", "")
		tells(c, revision.AbortedGenerations(c.revisions)[0])
	})
}

// TestTheStatusTellsTheRevisionOfEachGeneration: of a restart it is that of the spec.
func TestTheStatusTellsTheRevisionOfEachGeneration(t *testing.T) {
	tells := func(c *cluster) map[string]int64 {
		all := map[string]int64{}
		for _, g := range c.dgd.Status.Rollout.Generations {
			all[g.ID] = g.Revision
		}
		return all
	}
	c := start(t, 4)
	stable := c.dgd.Annotations[v1alpha1.AnnotationGeneration]
	c.image(second)
	c.phase("Shifting", "")
	id := c.dgd.Status.Rollout.Target
	if diff := cmp.Diff(map[string]int64{stable: 1, id: 2}, tells(c)); diff != "" {
		t.Errorf("half way (-want +got):\n%s", diff)
	}
	c.until("the rollout to be completed", settled)
	c.quiet()
	if diff := cmp.Diff(map[string]int64{id: 2}, tells(c)); diff != "" {
		t.Errorf("completed (-want +got):\n%s", diff)
	}
	c.dgd.Spec.Restart = &v1alpha1.Restart{ID: "again"}
	c.phase("Shifting", "")
	if diff := cmp.Diff(map[string]int64{id: 2, c.dgd.Status.Rollout.Target: 2}, tells(c)); diff != "" {
		t.Errorf("restarted (-want +got):\n%s", diff)
	}
}

// TestAGraphWithoutCellsKeepsItsRevisions: what they hold is not made anew.
func TestAGraphWithoutCellsKeepsItsRevisions(t *testing.T) {
	c := start(t, 2)
	d := managed.Next(managed.Input{Owner: c.dgd, Graph: &graph.Graph{}, Revisions: c.revisions})
	if len(d.Keep) != len(c.revisions) || len(d.Keep) == 0 {
		t.Errorf("%d of %d revisions are kept", len(d.Keep), len(c.revisions))
	}
}
