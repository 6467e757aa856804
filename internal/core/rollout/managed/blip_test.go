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
