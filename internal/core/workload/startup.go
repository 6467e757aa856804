package workload

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
)

// Of starts, the newest count, and none that took longer than any model loads: the time
// of a pod's readiness is that of the last time, so one that was unready for a while
// hours after its start looks like one that took hours.
const (
	startsCounted = 20
	longestStart  = time.Hour
)

// Startup is how long pods took from having a node until they were ready; nil if none
// tells. Waiting for a node is no part of it: that says how full a cluster is. Pods
// whose containers were started again tell nothing, since their first time is not known.
func Startup(pods []corev1.Pod) *v1alpha1.StartupTimes {
	newest := slices.Clone(pods)
	slices.SortStableFunc(newest, func(a, b corev1.Pod) int { return b.CreationTimestamp.Compare(a.CreationTimestamp.Time) })
	var took []time.Duration
	for i := range newest {
		if d, known := start(&newest[i]); known && len(took) < startsCounted {
			took = append(took, d)
		}
	}
	if len(took) == 0 {
		return nil
	}
	slices.Sort(took)
	seconds := func(percent int) int32 { // servers tell whole seconds
		return max(1, int32(took[(len(took)*percent+99)/100-1].Round(time.Second)/time.Second))
	}
	return &v1alpha1.StartupTimes{P50Seconds: seconds(50), P95Seconds: seconds(95), Samples: int32(len(took))}
}

func start(pod *corev1.Pod) (took time.Duration, known bool) {
	if slices.ContainsFunc(pod.Status.ContainerStatuses, func(c corev1.ContainerStatus) bool {
		return c.RestartCount > 0 || c.LastTerminationState.Terminated != nil
	}) {
		return 0, false
	}
	begun, ready := pod.CreationTimestamp.Time, time.Time{}
	for _, c := range pod.Status.Conditions {
		switch {
		case c.Status != corev1.ConditionTrue || c.LastTransitionTime.IsZero():
		case c.Type == corev1.PodScheduled:
			begun = c.LastTransitionTime.Time
		case c.Type == corev1.PodReady:
			ready = c.LastTransitionTime.Time
		}
	}
	took = ready.Sub(begun)
	return took, !ready.IsZero() && took >= 0 && took <= longestStart
}
