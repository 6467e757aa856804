package managed_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/analysis"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/managed"
)

// loading is how pods of later images than the first start.
type loading struct {
	// model is how long the startup probe fails, and rest how long it then takes to be ready.
	model, rest time.Duration
	// probe is how long it may fail.
	probe time.Duration
	// again says that the container has ended before.
	again bool
	// replaced has pods that load be replaced by others after some time, as those of a group are.
	replaced time.Duration
}

// load has the containers of pods say how far they are.
func (c *cluster) load() {
	if c.loading.model == 0 {
		return
	}
	for i := range c.pods {
		p := &c.pods[i]
		if p.Spec.Containers[0].Image == first || p.Spec.NodeName == "" {
			continue
		}
		if c.loading.replaced > 0 && c.now.Sub(p.CreationTimestamp.Time) > c.loading.replaced {
			p.CreationTimestamp.Time = c.now
		}
		p.Spec.Containers[0].Name = "main"
		p.Spec.Containers[0].StartupProbe = &corev1.Probe{PeriodSeconds: 10, FailureThreshold: int32(c.loading.probe / (10 * time.Second))}
		runs := corev1.ContainerStatus{
			Name: "main", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}, Started: new(c.now.Sub(p.CreationTimestamp.Time) >= c.loading.model),
		}
		if c.loading.again {
			runs.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ExitCode: 1}
		}
		p.Status.ContainerStatuses = []corev1.ContainerStatus{runs}
	}
}

func (c *cluster) loaded(p corev1.Pod) bool {
	return c.loading.model == 0 || p.Spec.Containers[0].Image == first || c.now.Sub(p.CreationTimestamp.Time) >= c.loading.model+c.loading.rest
}

// TestACandidateHasTheTimeOfItsStartupProbeToLoad: a model may load for longer than the
// deadline of progress, and is ready some time after.
func TestACandidateHasTheTimeOfItsStartupProbeToLoad(t *testing.T) {
	for name, test := range map[string]struct {
		loading loading
		want    string
		// after is when it is aborted, at the latest.
		after time.Duration
	}{
		"for the first time":            {loading{model: 15 * time.Minute, rest: time.Minute, probe: 2 * time.Hour}, "Completed", 0},
		"after it has ended":            {loading{model: 15 * time.Minute, probe: 2 * time.Hour, again: true}, "Aborted", 11 * time.Minute},
		"and is not ready then":         {loading{model: 15 * time.Minute, rest: time.Hour, probe: 2 * time.Hour}, "Aborted", 26 * time.Minute},
		"in one pod after another":      {loading{model: 15 * time.Minute, probe: 20 * time.Minute, replaced: 12 * time.Minute}, "Aborted", 31 * time.Minute},
		"without a probe that it fails": {loading{model: time.Second, rest: 15 * time.Minute, probe: 2 * time.Hour}, "Aborted", 11 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			c := start(t, 1)
			c.quiet()
			c.loading = test.loading
			c.image(second)
			c.until("the rollout to begin", func(d managed.Decision) bool { return len(d.Rolling) > 0 && len(c.owned) == 4 })
			begun := c.now
			c.phase(test.want, "")
			if st := c.dgd.Status.Rollout; test.want == "Aborted" && (st.Reason != string(analysis.AbortDeadline) || c.now.Sub(begun) < 10*time.Minute || c.now.Sub(begun) > test.after) {
				t.Errorf("after %s: %+v", c.now.Sub(begun), st)
			}
		})
	}
}

// TestACandidateThatWasHeldHasTheTimeToLoadAnew: how long somebody took to promote it is no
// part of how long its next replicas load.
func TestACandidateThatWasHeldHasTheTimeToLoadAnew(t *testing.T) {
	c := start(t, 2)
	for _, s := range c.dgd.Spec.Services {
		s.Annotations = map[string]string{v1alpha1.AnnotationMaxUnavailable: "0"} // so that the next ones have to load first
	}
	c.quiet()
	c.dgd.Annotations[v1alpha1.AnnotationRolloutSteps] = "25% hold"
	c.loading = loading{model: 15 * time.Minute, rest: time.Minute, probe: 2 * time.Hour}
	c.image(second)
	c.phase("Held", "")
	c.pass(3 * time.Hour)
	c.dgd.Annotations[v1alpha1.AnnotationRolloutPromote] = c.dgd.Status.Rollout.Target + "/all"
	c.phase("Completed", "")
}
