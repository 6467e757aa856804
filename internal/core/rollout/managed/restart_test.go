package managed_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/managed"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/revision"
)

func (c *cluster) restart(id string, order ...string) {
	c.dgd.Spec.Restart = &v1alpha1.Restart{ID: id}
	if len(order) > 0 {
		c.dgd.Spec.Restart.Strategy = &v1alpha1.RestartStrategy{Type: v1alpha1.RestartSequential, Order: order}
	}
}

func (c *cluster) restarted(id string) func(managed.Decision) bool {
	return func(managed.Decision) bool {
		r := c.dgd.Status.Restart
		return r != nil && r.ObservedID == id && r.Phase == v1alpha1.RestartPhaseCompleted
	}
}

// marks are the restarts that components were made for, by name.
func (c *cluster) marks() map[string]string {
	all := map[string]string{}
	for _, o := range c.owned {
		one, err := graph.FromComponentDeployment(o.(*v1alpha1.DynamoComponentDeployment), defaults)
		if err != nil {
			c.Fatal(err)
		}
		all[o.GetName()] = one.Components[0].ObjectAnnotations()[v1alpha1.AnnotationRestartAt]
	}
	return all
}

// running is the generation that the graph has, once nothing else is left.
func (c *cluster) running() string {
	c.Helper()
	c.quiet()
	id := c.dgd.Annotations[v1alpha1.AnnotationGeneration]
	if n := len(c.uids(id)); n == 0 || n != len(c.pods) {
		c.Errorf("%d of %d pods are of generation %s", n, len(c.pods), id)
	}
	return id
}

func TestARestartIsAGenerationThatKeepsTheFloor(t *testing.T) {
	for _, replicas := range []int32{1, 2, 4} {
		t.Run(fmt.Sprint(replicas), func(t *testing.T) {
			c := start(t, replicas)
			// Steps and comparisons are for other versions.
			c.dgd.Annotations[v1alpha1.AnnotationRolloutSteps] = "1 hold"
			first := c.running()
			before := c.uids(first)
			c.restart("1")
			c.until("the restart to begin", func(managed.Decision) bool {
				r := c.dgd.Status.Restart
				return r != nil && r.Phase == v1alpha1.RestartPhaseRestarting && cmp.Equal(r.InProgress, []string{"decode", "prefill"})
			})
			c.until("the restart to be completed", c.restarted("1"))
			second := c.running()
			for _, uid := range c.uids(second) {
				if slices.Contains(before, uid) {
					t.Errorf("pod %s was not replaced", uid)
				}
			}
			if second == first || c.dgd.Status.Rollout.Phase != "Completed" {
				t.Errorf("generation %s, then %s: %+v", first, second, c.dgd.Status.Rollout)
			}
			for name, role := range c.dgd.Status.Rollout.Roles {
				if int(role.Lowest) < c.floor {
					t.Errorf("the certificate of %s says %d, under its floor of %d", name, role.Lowest, c.floor)
				}
			}
			// The spec is the same, and so is its revision.
			if len(c.revisions) != 1 || revision.Generation(c.revisions[0]) != second || revision.ResultOf(c.revisions[0]) != revision.Completed {
				t.Errorf("revisions %v", c.revisions)
			}

			// It is done once, though nobody remembers.
			c.dgd.Status = v1alpha1.DynamoGraphDeploymentStatus{}
			c.until("the restart to be told", c.restarted("1"))
			if again := c.running(); again != second {
				t.Errorf("generation %s, then %s", second, again)
			}
			c.restart("2")
			c.until("the next to be completed", c.restarted("2"))
			if third := c.running(); third == second {
				t.Errorf("generation %s went on", second)
			}
		})
	}
}

func TestARestartInOrderRestartsWorkersTogether(t *testing.T) {
	for name, test := range map[string]struct {
		order []string
		// first says that the frontend has its mark before workers have a generation.
		first bool
	}{
		"by name":              {nil, true},
		"the frontend first":   {[]string{"Frontend", "prefill", "decode"}, true},
		"the frontend between": {[]string{"prefill", "Frontend", "decode"}, false},
		"the frontend at last": {[]string{"decode", "prefill", "Frontend"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			c := start(t, 2)
			c.dgd.Spec.Services["Frontend"] = &v1alpha1.SharedSpec{
				ComponentType: "frontend", Replicas: new(int32(1)),
				ExtraPodSpec: &v1alpha1.ExtraPodSpec{MainContainer: &corev1.Container{Image: "example.com/engine:1.0.0"}},
			}
			for range 10 {
				c.reconcile()
				c.life()
			}
			c.restart("1", test.order...)
			var marked, rolled, gone bool
			c.until("the restart to be completed", func(d managed.Decision) bool {
				has := c.marks()["chat-frontend"] == "1"
				rolled = rolled || len(d.Rolling) > 0
				gone = rolled && len(d.Rolling) == 0
				if has && !marked {
					if rolled == test.first {
						t.Errorf("workers are restarted before the frontend: %v", rolled)
					}
					if !test.first && !gone {
						t.Error("the frontend is restarted while workers are")
					}
				}
				marked = has
				return c.restarted("1")(d)
			})
			if !marked || !rolled {
				t.Errorf("frontend %v, workers %v", marked, rolled)
			}
		})
	}
}

// TestARestartDuringARolloutIsCarriedOutAfterIt, unless what is rolled out is made for it.
func TestARestartDuringARolloutIsCarriedOutAfterIt(t *testing.T) {
	begun := func(c *cluster) func(managed.Decision) bool {
		return func(d managed.Decision) bool { return len(d.Rolling) > 0 && len(c.owned) == 4 }
	}
	t.Run("after it", func(t *testing.T) {
		c := start(t, 2)
		c.image("example.com/engine:1.1.0")
		c.until("the rollout to begin", begun(c))
		target := c.dgd.Status.Rollout.Target
		c.restart("1")
		c.until("the rollout to be completed", func(managed.Decision) bool { return c.dgd.Status.Rollout.Stable == target })
		if r := c.dgd.Status.Restart; r.Phase == v1alpha1.RestartPhaseCompleted {
			t.Errorf("restart %+v", r)
		}
		c.until("the restart to be completed", c.restarted("1"))
		if now := c.running(); now == target {
			t.Errorf("generation %s went on", now)
		}
	})
	t.Run("with it", func(t *testing.T) {
		c := start(t, 2)
		c.image("example.com/engine:1.1.0")
		c.restart("1")
		seen := map[string]bool{}
		c.until("the restart to be completed", func(d managed.Decision) bool {
			for _, id := range d.State.Live {
				seen[id] = true
			}
			return c.restarted("1")(d)
		})
		c.running()
		if len(seen) != 2 {
			t.Errorf("generations %v", seen)
		}
	})
	t.Run("a change during a restart takes it over", func(t *testing.T) {
		c := start(t, 2)
		first := c.running()
		c.restart("1")
		c.until("the restart to begin", begun(c))
		half := c.dgd.Status.Rollout.Target
		c.image("example.com/engine:1.1.0")
		c.until("the restart to be completed", c.restarted("1"))
		if now := c.running(); now == first || now == half {
			t.Errorf("generation %s of %s and %s", now, first, half)
		}
	})
	t.Run("a newer one supersedes it", func(t *testing.T) {
		c := start(t, 2)
		c.restart("1")
		c.until("the restart to begin", begun(c))
		c.restart("2")
		c.until("the newer one to be completed", c.restarted("2"))
		c.running()
		for name, mark := range c.marks() {
			if mark != "2" {
				t.Errorf("%s was made for restart %q", name, mark)
			}
		}
	})
	t.Run("one that is asked for no more is taken back", func(t *testing.T) {
		c := start(t, 2)
		first := c.running()
		c.restart("1")
		c.until("the restart to begin", begun(c))
		c.dgd.Spec.Restart = nil
		c.until("the way back", settled)
		if now := c.running(); now != first {
			t.Errorf("generation %s, then %s", first, now)
		}
	})
}

func TestARestartThatDoesNotComeUpFailsAndWhatRanServesOn(t *testing.T) {
	c := start(t, 2)
	first := c.running()
	kept := c.uids(first)
	c.broken = "example.com/engine:1.0.0"
	c.restart("1")
	failed := func(managed.Decision) bool {
		r := c.dgd.Status.Restart
		return r.Phase == v1alpha1.RestartPhaseFailed && c.dgd.Status.Rollout.Phase == "Aborted"
	}
	c.until("the restart to fail", failed)
	c.quiet()
	if diff := cmp.Diff(kept, c.uids(first)); diff != "" {
		t.Errorf("pods that serve (-before +now):\n%s", diff)
	}
	aborted := revision.AbortedGenerations(c.revisions)
	if of := revision.OfGeneration(c.revisions, first); len(aborted) != 1 || of == nil || revision.ResultOf(of) != revision.Completed {
		t.Errorf("aborted %v, and the revision that runs is %v", aborted, of)
	}
	c.dgd.Status = v1alpha1.DynamoGraphDeploymentStatus{}
	c.quiet()
	if !failed(managed.Decision{}) || len(c.owned) != 2 {
		t.Errorf("after its status was lost: %+v, %+v", c.dgd.Status.Restart, c.dgd.Status.Rollout)
	}

	c.broken = ""
	c.dgd.Annotations[v1alpha1.AnnotationRolloutRetry] = aborted[0]
	c.until("the retry to be completed", c.restarted("1"))
	if now := c.running(); now != aborted[0] {
		t.Errorf("generation %s", now)
	}
	if of := revision.OfGeneration(c.revisions, aborted[0]); of == nil || revision.ResultOf(of) != revision.Completed {
		t.Errorf("revision %v", of)
	}

	c.broken = "example.com/engine:1.0.0"
	c.restart("2")
	c.until("another to fail", failed)
	c.broken = ""
	c.restart("3")
	c.until("the next to be completed", c.restarted("3"))
	c.running()
}

func TestWithoutIsolationARestartIsDoneInPlace(t *testing.T) {
	c := start(t, 2)
	c.dgd.Annotations[v1alpha1.AnnotationRolloutIsolation] = "none"
	c.restart("1")
	c.until("the restart to be completed", func(d managed.Decision) bool {
		if len(d.Rolling) > 0 {
			t.Fatal("it rolls")
		}
		return c.restarted("1")(d)
	})
	want := map[string]string{graph.ComponentName("chat", "decode"): "1", graph.ComponentName("chat", "prefill"): "1"}
	if diff := cmp.Diff(want, c.marks()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
