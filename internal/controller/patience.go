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
// status, and on all others while something that users asked for stands in line.
// It ends after a while, so that an object whose children never rest is still
// reported. In a crowd those whose time has come are let through one by one, so
// that they do not take what the crowd waits for. The zero value has no patience.
type Patience struct {
	// For is how long reports on children under way are put off at most.
	For time.Duration
	// Pressing reports whether users wait for something to be made or changed.
	Pressing func() bool

	mu    sync.Mutex
	since map[types.UID]time.Time
	// passed is when the last one was let through a crowd.
	passed time.Time
	// swept is when those that are gone were last forgotten.
	swept time.Time
}

// crowded is how many times as long reports are put off in a crowd.
const crowded = 60

// perPatience is how many reports a crowd lets through in the time that one is
// usually put off for: a few in a hundred of what an API server can take.
const perPatience = 5

// rarest is how many times as long as a report waits in a crowd there is at most
// between two looks at an object: one at each of thousands every minute adds up.
const rarest = 5

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
func (p *Patience) PutOff(uid types.UID, what Tidings, now time.Time) (reconcile.Result, bool) {
	if p == nil || p.For == 0 {
		return reconcile.Result{}, false
	}
	most, crowd := p.most(what)
	p.mu.Lock()
	defer p.mu.Unlock()
	since, waiting := p.since[uid]
	if !waiting {
		since = now
	}
	waited := now.Sub(since)
	if waited >= most && (!crowd || now.Sub(p.passed) >= p.For/perPatience) {
		if crowd {
			p.passed = now
		}
		delete(p.since, uid)
		return reconcile.Result{}, false
	}
	if p.since == nil {
		p.since = map[types.UID]time.Time{}
	}
	p.since[uid] = since
	p.sweep(now)
	place, again := queue.News, most-waited
	if crowd {
		place = queue.Lull
	}
	if again <= 0 { // each look costs something too, so they become rarer
		again = min(waited, rarest*most)
	}
	return reconcile.Result{RequeueAfter: again, Priority: &place}, true
}

// sweep forgets, every now and then, those that were deleted while they waited.
func (p *Patience) sweep(now time.Time) {
	old := 2 * rarest * crowded * p.For
	if now.Sub(p.swept) < old {
		return
	}
	p.swept = now
	maps.DeleteFunc(p.since, func(_ types.UID, since time.Time) bool { return now.Sub(since) > old })
}

// most is how long a report is put off, and whether because of a crowd.
func (p *Patience) most(what Tidings) (most time.Duration, crowd bool) {
	switch {
	case what == Urgent:
		return 0, false
	case p.Pressing != nil && p.Pressing():
		return crowded * p.For, true
	case what == UnderWay:
		return p.For, false
	default:
		return 0, false
	}
}
