package controller

import (
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/dynamo-operator/dynamo-operator/internal/queue"
)

// Patience puts reports off that nobody waits for: on objects whose children are
// just being made or changed, because what they were before is not worth a
// status, and on all others while something that users of the same namespace asked
// for stands in line. No report is put off for longer than twice the usual time,
// whatever stands in line. The zero value has no patience.
type Patience struct {
	// For is how long reports on children under way are put off at most.
	For time.Duration
	// Pressing reports whether users of a namespace wait for something to be made or
	// changed.
	Pressing func(namespace string) bool

	mu    sync.Mutex
	since map[types.UID]time.Time
	// swept is when those that are gone were last forgotten.
	swept time.Time
}

// crowded is how many times as long reports are put off in a crowd.
const crowded = 2

// Tidings say how much a report on an object matters now.
type Tidings int

const (
	// UnderWay is of children that have just been written.
	UnderWay Tidings = iota
	// Settled is of children that have said something about what they were told.
	Settled
	// Urgent is what has to be known at once, such as an error.
	Urgent
)

// Fell reports whether a condition that was true is not true any more: somebody
// may have to be woken for it.
func Fell(was, now []metav1.Condition, condition string) bool {
	return meta.IsStatusConditionTrue(was, condition) && !meta.IsStatusConditionTrue(now, condition)
}

// PutOff reports whether this pass over an object ends without a report, to come
// again later. Nil has no patience.
func (p *Patience) PutOff(object metav1.Object, what Tidings, now time.Time) (reconcile.Result, bool) {
	if p == nil || p.For == 0 {
		return reconcile.Result{}, false
	}
	most, crowd := p.most(object.GetNamespace(), what)
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
func (p *Patience) sweep(now time.Time) {
	old := 100 * p.For
	if now.Sub(p.swept) < old {
		return
	}
	p.swept = now
	maps.DeleteFunc(p.since, func(_ types.UID, since time.Time) bool { return now.Sub(since) > old })
}

// most is how long a report is put off, and whether because of a crowd.
func (p *Patience) most(namespace string, what Tidings) (most time.Duration, crowd bool) {
	switch {
	case what == Urgent:
		return 0, false
	case p.Pressing != nil && p.Pressing(namespace):
		return crowded * p.For, true
	case what == UnderWay:
		return p.For, false
	default:
		return 0, false
	}
}
