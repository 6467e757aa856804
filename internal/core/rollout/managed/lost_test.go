package managed_test

import (
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/managed"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/revision"
)

// lose has somebody take away what stands on the graph, and what of its revisions.
func (c *cluster) lose(revisions func(*appsv1.ControllerRevision) bool) {
	delete(c.dgd.Annotations, v1alpha1.AnnotationGeneration)
	c.revisions = slices.DeleteFunc(slices.Clone(c.revisions), revisions)
	c.dgd.Status = v1alpha1.DynamoGraphDeploymentStatus{}
}

func none(*appsv1.ControllerRevision) bool  { return false }
func every(*appsv1.ControllerRevision) bool { return true }

// of are the revisions of a generation.
func of(id string) func(*appsv1.ControllerRevision) bool {
	return func(r *appsv1.ControllerRevision) bool { return revision.Generation(r) == id }
}

// served waits until a candidate serves more than the stable generation does.
func (c *cluster) served(stable string) (candidate string) {
	c.Helper()
	c.until("most of the candidate", func(managed.Decision) bool {
		st := c.dgd.Status.Rollout
		if st != nil {
			candidate = st.Target
		}
		return st != nil && st.Stable == stable && len(c.uids(candidate)) > len(c.uids(stable)) && len(c.uids(stable)) > 0
	})
	return candidate
}

// TestACandidateIsNotTakenForStableWhereTheRecordOfThatIsLost: it was never promoted, or
// was given up, and would be what is gone back to.
func TestACandidateIsNotTakenForStableWhereTheRecordOfThatIsLost(t *testing.T) {
	for rule, lost := range map[string]func(c *cluster, stable string){
		"the candidate serves more": func(c *cluster, stable string) {
			c.image(third)
			c.served(stable)
			c.lose(every)
		},
		"the revisions tell": func(c *cluster, stable string) {
			c.image(third)
			c.served(stable)
			c.lose(none)
		},
		"another change has come since": func(c *cluster, stable string) {
			c.image(third)
			c.served(stable)
			c.image("example.com/engine:1.3.0")
			c.lose(every)
		},
		"the change was taken back": func(c *cluster, stable string) {
			c.image(third)
			c.served(stable)
			c.image(second)
			c.lose(every)
		},
		"the candidate was aborted": func(c *cluster, stable string) {
			c.image(third)
			c.dgd.Annotations[v1alpha1.AnnotationRolloutAbort] = c.served(stable)
			c.reconcile()
			delete(c.dgd.Annotations, v1alpha1.AnnotationRolloutAbort)
			c.lose(of(stable))
		},
		"the candidate was aborted, and all was made at one time": func(c *cluster, stable string) {
			c.image(third)
			c.dgd.Annotations[v1alpha1.AnnotationRolloutAbort] = c.served(stable)
			c.reconcile()
			delete(c.dgd.Annotations, v1alpha1.AnnotationRolloutAbort)
			for _, o := range c.owned { // as of a backup
				o.SetCreationTimestamp(metav1.NewTime(c.now))
			}
			c.lose(of(stable))
		},
		"the candidate was completed once, in another spec": func(c *cluster, stable string) {
			c.image(first)
			c.dgd.Spec.Services["decode"].Replicas = new(int32(5))
			c.served(stable)
			c.dgd.Spec.Services["decode"].Replicas = new(int32(4))
			c.lose(of(stable))
		},
	} {
		t.Run(rule, func(t *testing.T) {
			c := start(t, 4)
			stable := c.completed(second)
			lost(c, stable)
			slices.Reverse(c.owned) // no order says which was first
			c.reconcile()
			if got := c.dgd.Status.Rollout.Stable; got != stable || c.dgd.Annotations[v1alpha1.AnnotationGeneration] != stable {
				t.Errorf("generation %s is taken for stable, and recorded as %s: %s is", got, c.dgd.Annotations[v1alpha1.AnnotationGeneration], stable)
			}
			slices.Reverse(c.owned)
			if rule == "the candidate was aborted" {
				c.phase("Aborted", "")
				if n := len(c.uids(stable)); n != 8 {
					t.Errorf("%d pods of the stable generation", n)
				}
			}
		})
	}
}

// TestNoStepIsPassedBecauseARecordIsLost: what is taken for stable is not rolled out.
func TestNoStepIsPassedBecauseARecordIsLost(t *testing.T) {
	c := start(t, 4)
	stable := c.completed(second)
	c.dgd.Annotations[v1alpha1.AnnotationRolloutSteps] = "1 hold"
	c.image(third)
	c.phase("Held", "")
	c.lose(every)
	slices.SortFunc(c.owned, func(a, b graph.Object) int { // the candidate is listed first
		return b.GetCreationTimestamp().Compare(a.GetCreationTimestamp().Time)
	})
	for range 50 {
		c.reconcile()
		c.life()
	}
	if st := c.dgd.Status.Rollout; st.Phase != "Held" || st.Stable != stable || len(c.uids(stable)) != 6 {
		t.Errorf("%d pods of the stable generation: %+v", len(c.uids(stable)), st)
	}
}

// TestARolloutIsNotAbortedForTheTimeInWhichNobodyLooked: no step is taken while the
// operator is away.
func TestARolloutIsNotAbortedForTheTimeInWhichNobodyLooked(t *testing.T) {
	c := start(t, 2)
	c.image(second)
	c.until("the rollout to begin", func(d managed.Decision) bool { return len(d.Rolling) > 0 && len(c.owned) == 4 })
	c.now = c.now.Add(time.Hour)
	c.until("the rollout to be completed", func(d managed.Decision) bool {
		if st := c.dgd.Status.Rollout; st.Reason != "" {
			t.Fatalf("%s (%s): %s", st.Phase, st.Reason, st.Message)
		}
		return settled(d)
	})
}

// TestAServiceThatLeavesWithAChangeStaysWithItsGeneration: what is left of that needs it,
// and so does the way back.
func TestAServiceThatLeavesWithAChangeStaysWithItsGeneration(t *testing.T) {
	for name, abort := range map[string]bool{"to the end": false, "and on the way back": true} {
		t.Run(name, func(t *testing.T) {
			c := start(t, 4)
			stable := c.dgd.Annotations[v1alpha1.AnnotationGeneration]
			prefill := c.dgd.Spec.Services["prefill"]
			delete(c.dgd.Spec.Services, "prefill")
			c.image(second)
			c.floor = 0 // pairs
			served := func(done func(managed.Decision) bool) func(managed.Decision) bool {
				return c.decodes(3, func(d managed.Decision) bool {
					ready := map[string]int{}
					for _, p := range c.pods {
						if p.Labels[v1alpha1.LabelGeneration] == stable && p.DeletionTimestamp == nil {
							ready[p.Labels[v1alpha1.LabelComponent]]++
						}
					}
					if ready["decode"] > 0 && ready["prefill"] < 4 {
						t.Fatalf("the stable generation has %v: %+v", ready, c.dgd.Status.Rollout)
					}
					return done(d)
				})
			}
			c.until("the candidate to serve", served(func(managed.Decision) bool {
				return c.dgd.Status.Rollout != nil && c.dgd.Status.Rollout.Phase == "Shifting"
			}))
			if !abort {
				c.until("the rollout to be completed", served(settled))
				c.until("prefill to be gone", func(managed.Decision) bool { return len(c.pods) == 4 && len(c.owned) == 1 })
				c.quiet()
				return
			}
			c.dgd.Annotations[v1alpha1.AnnotationRolloutAbort] = c.dgd.Status.Rollout.Target
			c.until("the way back", served(func(managed.Decision) bool { return c.dgd.Status.Rollout.Phase == "Aborted" }))
			c.quiet()
			if n := len(c.uids(stable)); n != 8 || len(c.pods) != 8 {
				t.Errorf("%d pods of the stable generation, %d in all", n, len(c.pods))
			}
			c.dgd.Spec.Services["prefill"] = prefill // the whole change is taken back
			c.image(first)
			c.until("the change to be taken back", served(settled))
			c.quiet()
			if n := len(c.uids(stable)); n != 8 || len(c.pods) != 8 {
				t.Errorf("%d pods of the stable generation, %d in all", n, len(c.pods))
			}
		})
	}
}

// TestARetryOutlivesAnOperatorThatEndsBetweenWrites: annotations are written first, and
// what was aborted is on a revision.
func TestARetryOutlivesAnOperatorThatEndsBetweenWrites(t *testing.T) {
	c := start(t, 2)
	c.broken = second
	c.image(second)
	c.phase("Aborted", "")
	id := revision.AbortedGenerations(c.revisions)[0]
	c.broken, c.dies = "", "annotations"
	c.dgd.Annotations[v1alpha1.AnnotationRolloutRetry] = id
	c.until("the retry to be completed", settled)
	if _, left := c.dgd.Annotations[v1alpha1.AnnotationRolloutRetry]; left || c.dgd.Annotations[v1alpha1.AnnotationGeneration] != id {
		t.Errorf("annotations %v", c.dgd.Annotations)
	}
}

// TestUndoGoesBackPastARestartWhoseOperatorEndedBetweenWrites: the same spec is not what
// it goes back to.
func TestUndoGoesBackPastARestartWhoseOperatorEndedBetweenWrites(t *testing.T) {
	c := start(t, 2)
	before := c.dgd.Annotations[v1alpha1.AnnotationGeneration]
	c.completed(second)
	c.dgd.Spec.Restart = &v1alpha1.Restart{ID: "again"}
	c.until("the restart to begin", func(d managed.Decision) bool { return len(d.Rolling) > 0 && len(c.owned) == 4 })
	c.dies = "children"
	c.until("the restart to be completed", settled)
	c.quiet()
	if c.dies != "" {
		t.Fatal("the operator did not end")
	}
	now := c.dgd.Annotations[v1alpha1.AnnotationGeneration]
	if to := revision.Before(c.revisions, now); to == nil || revision.Generation(to) != before {
		t.Errorf("generation %s runs, and undo goes to %+v", now, to)
	}
}

// TestAServiceThatLeavesHoldsNoGPUOnceNobodyNeedsIt: of its generation nothing serves with
// it any more, and the next waits for what it has.
func TestAServiceThatLeavesHoldsNoGPUOnceNobodyNeedsIt(t *testing.T) {
	c := start(t, 2)
	c.gpus, c.floor = 4, 0
	c.dgd.Spec.Services["prompts"] = c.dgd.Spec.Services["prefill"]
	delete(c.dgd.Spec.Services, "prefill")
	for _, s := range c.dgd.Spec.Services {
		s.Annotations = map[string]string{v1alpha1.AnnotationDeploymentStrategy: "Recreate"}
	}
	c.image(second)
	left := func() (decode, prefill int) {
		for _, p := range c.pods {
			if p.Spec.Containers[0].Image == first {
				switch p.Labels[v1alpha1.LabelComponent] {
				case "decode":
					decode++
				case "prefill":
					if p.DeletionTimestamp == nil {
						prefill++
					}
				}
			}
		}
		return decode, prefill
	}
	c.until("the rollout to be completed", func(d managed.Decision) bool {
		if decode, prefill := left(); decode > 0 && prefill < 2 {
			t.Fatalf("%d decode are left with %d prefill: %+v", decode, prefill, c.dgd.Status.Rollout)
		}
		return settled(d) && len(c.owned) == 2
	})
}

// TestAServiceThatLeavesStaysForTheLastOfTheCells: one of them is done before another that
// serves with it.
func TestAServiceThatLeavesStaysForTheLastOfTheCells(t *testing.T) {
	c := begin(t, 2, defaults, nil, "prefill", "decode", "worker")
	stable := c.dgd.Annotations[v1alpha1.AnnotationGeneration]
	delete(c.dgd.Spec.Services, "prefill")
	c.image(second)
	c.dgd.Spec.Services["decode"].ExtraPodSpec.MainContainer.Image = third
	c.broken, c.floor = third, 0
	of := func(service string) (n int) {
		for _, p := range c.pods {
			if p.DeletionTimestamp == nil && p.Labels[v1alpha1.LabelGeneration] == stable && p.Labels[v1alpha1.LabelComponent] == service {
				n++
			}
		}
		return n
	}
	check := func() {
		if of("decode") > 0 && of("prefill") < 2 {
			t.Fatalf("%d decode are left with %d prefill: %+v", of("decode"), of("prefill"), c.dgd.Status.Rollout)
		}
	}
	c.until("one cell to be done", func(d managed.Decision) bool { check(); return len(d.Rolling) == 1 })
	if of("decode") == 0 {
		t.Fatal("it was the other")
	}
	c.broken = ""
	c.until("the rollout to be completed", func(d managed.Decision) bool { check(); return settled(d) && len(c.owned) == 2 })
}
