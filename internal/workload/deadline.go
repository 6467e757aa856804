package workload

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	case p.Done || deadline == 0 || moved.IsZero():
	case now.Before(due):
		p.Due = due
	default:
		p.Stuck = true
	}
	return p
}
