package controller

import (
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/dynamo-operator/dynamo-operator/internal/operator/queue"
)

// StatusThrottle puts reports off that nobody waits for: on objects whose children are
// just being made or changed, because what they were before is not worth a
// status, and on all others while something that users of the same namespace asked
// for stands in line. No report is put off for longer than twice the usual time,
// whatever stands in line. The zero value has no patience.
type StatusThrottle struct {
	// Period is how long reports on children under way are put off at most.
	Period time.Duration
	// UserWorkPending reports whether users of a namespace wait for something to be made or
	// changed.
	UserWorkPending func(namespace string) bool

	mu    sync.Mutex
	since map[types.UID]time.Time
	// swept is when those that are gone were last forgotten.
	swept time.Time
}

// busyFactor is how many times as long reports are put off in a crowd.
const busyFactor = 2

// Urgency say how much a report on an object matters now.
type Urgency int

const (
	// InProgress is of children that have just been written.
	InProgress Urgency = iota
	// Settled is of children that have said something about what they were told.
	Settled
	// Urgent is what has to be known at once, such as an error.
	Urgent
)

// BecameFalse reports whether a condition that was true is not true any more: somebody
// may have to be woken for it.
func BecameFalse(was, now []metav1.Condition, condition string) bool {
	return meta.IsStatusConditionTrue(was, condition) && !meta.IsStatusConditionTrue(now, condition)
}

// Defer reports whether this reconcile over an object ends without a report, to come
// again later. Nil has no patience.
func (p *StatusThrottle) Defer(object metav1.Object, what Urgency, now time.Time) (reconcile.Result, bool) {
	if p == nil || p.Period == 0 {
		return reconcile.Result{}, false
	}
	most, crowd := p.limit(object.GetNamespace(), what)
	p.mu.Lock()
	defer p.mu.Unlock()
	since, waiting := p.since[object.GetUID()]
	if !waiting {
		since = now
	}
	rest := most - now.Sub(since)
	if rest <= 0 {
		delete(p.since, object.GetUID())
		return reconcile.Result{}, false
	}
	if p.since == nil {
		p.since = map[types.UID]time.Time{}
	}
	p.since[object.GetUID()] = since
	p.sweep(now)
	place := queue.PriorityChild
	if crowd {
		place = queue.PriorityIdle
	}
	return reconcile.Result{RequeueAfter: rest, Priority: &place}, true
}

// sweep forgets, every now and then, those that were deleted while they waited.
func (p *StatusThrottle) sweep(now time.Time) {
	old := 100 * p.Period
	if now.Sub(p.swept) < old {
		return
	}
	p.swept = now
	maps.DeleteFunc(p.since, func(_ types.UID, since time.Time) bool { return now.Sub(since) > old })
}

// limit is how long a report is put off, and whether because of a crowd.
func (p *StatusThrottle) limit(namespace string, what Urgency) (most time.Duration, crowd bool) {
	switch {
	case what == Urgent:
		return 0, false
	case p.UserWorkPending != nil && !queue.Deferring.Off() && p.UserWorkPending(namespace):
		return busyFactor * p.Period, true
	case what == InProgress && !queue.Settling.Off():
		return p.Period, false
	default:
		return 0, false
	}
}
