package managed_test

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/analysis"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/managed"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/policy"
)

// ready has a worker of a generation be ready, or not.
func (c *cluster) ready(id, service string, ready bool) {
	c.Helper()
	at := slices.IndexFunc(c.pods, func(p corev1.Pod) bool {
		return p.Labels[v1alpha1.LabelGeneration] == id && p.Labels[v1alpha1.LabelComponent] == service
	})
	if at < 0 {
		c.Fatalf("generation %s has no %s", id, service)
	}
	switch p := &c.pods[at]; {
	case !ready:
		p.Status.Conditions = nil
	case p.Status.Conditions == nil:
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(c.now)}}
	}
}

// pass has time pass.
func (c *cluster) pass(by time.Duration) {
	c.Helper()
	for end := c.now.Add(by); c.now.Before(end); {
		c.reconcile()
		c.life()
	}
}

// TestACandidateThatComesBackAgainAndAgainMakesNoProgress: it comes no further than it was.
func TestACandidateThatComesBackAgainAndAgainMakesNoProgress(t *testing.T) {
	c := start(t, 4)
	c.image(second)
	c.phase("Shifting", "")
	id := c.dgd.Status.Rollout.Target
	c.broken = second // from now on
	c.pass(time.Minute)
	for range 3 {
		c.ready(id, "decode", false)
		c.pass(time.Minute)
		if c.dgd.Status.Rollout.Phase == "Aborting" || c.dgd.Status.Rollout.Phase == "Aborted" {
			break
		}
		c.ready(id, "decode", true)
		c.pass(4 * time.Minute)
	}
	if st := c.dgd.Status.Rollout; st.Phase != "Aborted" || st.Reason != string(analysis.AbortDeadline) {
		t.Errorf("%+v", st)
	}
}

// TestACandidateThatServesInFullHasTheDeadlineAnew: that others take long to end is not
// its fault.
func TestACandidateThatServesInFullHasTheDeadlineAnew(t *testing.T) {
	c := start(t, 1)
	c.lingers = 30 * time.Minute
	for _, s := range c.dgd.Spec.Services {
		s.Annotations = map[string]string{v1alpha1.AnnotationMaxUnavailable: "1"}
	}
	c.floor = 0
	c.quiet()
	c.image(second)
	c.phase("Draining", "")
	c.pass(15 * time.Minute)
	c.ready(c.dgd.Status.Rollout.Target, "decode", false)
	c.until("the rollout to be completed", func(d managed.Decision) bool {
		if st := c.dgd.Status.Rollout; st.Phase == "Aborting" || st.Phase == "Aborted" {
			t.Fatalf("%+v", st)
		}
		return settled(d)
	})
}

// TestATimedStepGoesOnAfterABlip: the time at its level counts, in however many parts.
func TestATimedStepGoesOnAfterABlip(t *testing.T) {
	for name, test := range map[string]struct {
		blip, mend func(*cluster, string)
	}{
		"of a pod": {
			func(c *cluster, id string) { c.broken = second; c.ready(id, "decode", false) },
			func(c *cluster, id string) { c.broken = ""; c.ready(id, "decode", true) },
		},
		"by scaling": {func(c *cluster, _ string) { c.scale(8) }, func(c *cluster, _ string) { c.scale(4) }},
		"by a pause": {
			func(c *cluster, _ string) { c.dgd.Annotations[v1alpha1.AnnotationRolloutPaused] = "true" },
			func(c *cluster, _ string) { delete(c.dgd.Annotations, v1alpha1.AnnotationRolloutPaused) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := atStep(t, nil) // 25% 10m
			id := c.dgd.Status.Rollout.Target
			held, before := time.Duration(0), c.now
			pass := func(by time.Duration) {
				for end := c.now.Add(by); c.now.Before(end) && c.dgd.Status.Rollout.Step == "1/1"; {
					was := *c.dgd.Status.Rollout
					c.reconcile()
					if was.Phase == "Held" && was.Reason == string(policy.WaitsForTime) {
						held += c.now.Sub(before)
					}
					before = c.now
					c.life()
				}
			}
			for range 2 {
				pass(4 * time.Minute)
				test.blip(c, id)
				pass(2 * time.Minute)
				test.mend(c, id)
			}
			pass(10 * time.Minute)
			if st := c.dgd.Status.Rollout; st.Step == "1/1" || held < 10*time.Minute || held > 11*time.Minute {
				t.Errorf("after %s at the step: %+v", held, st)
			}
		})
	}
}

// TestTheTimeOfAStepBeginsAtTheStep, whatever the rollout stood at before.
func TestTheTimeOfAStepBeginsAtTheStep(t *testing.T) {
	for name, test := range map[string]struct {
		steps string
		// before is what the rollout stands at for long, and then goes on from.
		before func(*cluster)
		step   string
	}{
		"after a pause in which it was reached": {"25% 10m", func(c *cluster) {
			c.dgd.Annotations[v1alpha1.AnnotationRolloutPaused] = "true"
			c.pass(3 * time.Hour)
			delete(c.dgd.Annotations, v1alpha1.AnnotationRolloutPaused)
		}, "1/1"},
		"after one of the same level": {"25% hold, 26% 10m", func(c *cluster) {
			c.phase("Held", "")
			c.pass(3 * time.Hour)
			c.dgd.Annotations[v1alpha1.AnnotationRolloutPromote] = c.dgd.Status.Rollout.Target + "/1"
		}, "2/2"},
	} {
		t.Run(name, func(t *testing.T) {
			c := start(t, 3)
			c.quiet()
			c.dgd.Annotations[v1alpha1.AnnotationRolloutSteps] = test.steps
			c.image(second)
			c.until("the rollout to begin", func(d managed.Decision) bool { return len(d.Rolling) > 0 && len(c.owned) == 4 })
			test.before(c)
			at := func() bool {
				st := c.dgd.Status.Rollout
				return st.Step == test.step && st.Phase == "Held" && st.Reason == string(policy.WaitsForTime)
			}
			c.until("the step", func(managed.Decision) bool { return at() })
			begun := c.now
			for at() && c.now.Sub(begun) < time.Hour {
				c.reconcile()
				c.life()
			}
			if held := c.now.Sub(begun); held < 9*time.Minute || held > 11*time.Minute {
				t.Errorf("%s at the step: %+v", held, c.dgd.Status.Rollout)
			}
		})
	}
}
