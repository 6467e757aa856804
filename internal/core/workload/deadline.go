package workload

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dynamo-operator/dynamo-operator/internal/core/snapshot"
)

// Moved is when something last happened to an object that runs pods: it was
// made, somebody wrote what it is to be, or one of its conditions turned. That
// counts of pods go up and down is no progress: those of a group that crashes
// do.
func Moved(object metav1.Object, conditions []metav1.Condition) time.Time {
	moved := object.GetCreationTimestamp().Time
	for _, entry := range object.GetManagedFields() {
		if entry.Subresource == "" && entry.Time != nil {
			moved = Latest(moved, entry.Time.Time)
		}
	}
	for _, c := range conditions {
		moved = Latest(moved, c.LastTransitionTime.Time)
	}
	return moved
}

// Latest is the last of several times.
func Latest(times ...time.Time) time.Time {
	var last time.Time
	for _, t := range times {
		if t.After(last) {
			last = t
		}
	}
	return last
}

// Judged says whether a workload that something last moved at a time is stuck by
// now, or when it will be.
//
//	moved ----- not done yet, due -----> moved+deadline ----- stuck -----> it moves
func (p Progress) Judged(moved time.Time, deadline time.Duration, now time.Time) Progress {
	switch due := moved.Add(deadline); {
	case p.Done || deadline == 0 || moved.IsZero() || Starting(p.Seen) || len(p.Waiting) > 0:
	case now.Before(due):
		p.Due = due
	default:
		p.Stuck = true
	}
	return p
}

// Starting reports whether a container runs for the first time and its startup
// probe has not succeeded yet. A model may load for hours; the kubelet ends the
// container when the probe's time is over, so until then its workload is not
// stuck.
func Starting(e snapshot.Evidence) bool {
	return slices.ContainsFunc(e.Pods, func(pod corev1.Pod) bool {
		return pod.DeletionTimestamp == nil && slices.ContainsFunc(pod.Status.ContainerStatuses, func(c corev1.ContainerStatus) bool {
			at := slices.IndexFunc(pod.Spec.Containers, func(spec corev1.Container) bool { return spec.Name == c.Name })
			return at >= 0 && pod.Spec.Containers[at].StartupProbe != nil &&
				c.State.Running != nil && c.LastTerminationState.Terminated == nil && (c.Started == nil || !*c.Started)
		})
	})
}
