// Package queue is the work queue of a controller: what a user just changed has
// priority over resyncs, namespaces are served round-robin, changes of children are
// batched, failures are retried with back-off, and what is queued can be drained
// before the operator ends.
package queue

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Queues are the queues of all controllers.
type Queues struct {
	mu     sync.Mutex
	all    []*queue
	closed atomic.Bool
}

// Options are what one controller's queue is made from.
type Options struct {
	// Depth is how many owners are above the controller's objects.
	Depth    int
	Fairness Fairness
	// Demoted is called for each object that is queued among child events because
	// its budget, or its namespace's, is spent. It may be nil.
	Demoted func(namespace string)
}

// New returns what makes the queue of one controller.
func (l *Queues) New(o Options) func(name string, limiter workqueue.TypedRateLimiter[reconcile.Request]) workqueue.TypedRateLimitingInterface[reconcile.Request] {
	return func(name string, limiter workqueue.TypedRateLimiter[reconcile.Request]) workqueue.TypedRateLimitingInterface[reconcile.Request] {
		made := newQueue(name, limiter, l, o)
		l.mu.Lock()
		defer l.mu.Unlock()
		l.all = append(l.all, made)
		return made
	}
}

// Drain lets nobody join any more and waits until what stands in line is done,
// or ctx ends. It returns how many are left.
func (l *Queues) Drain(ctx context.Context) int {
	l.closed.Store(true)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	// What a reconcile has written may still have to wake another object, hence more than
	// one look.
	for quiet := 0; quiet < 3; {
		left := l.unfinished()
		quiet++
		if left > 0 {
			quiet = 0
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return left
		}
	}
	return 0
}

// UserWorkPending reports whether something that users of a namespace asked for stands in
// line. What other namespaces ask for holds no report of this one back.
func (l *Queues) UserWorkPending(namespace string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.ContainsFunc(l.all, func(q *queue) bool { return q.hasUserWork(namespace) })
}

// releaseDeferred enqueues some of the deferred objects of a namespace, if no user
// work is pending there: owned ones first, since the status of an owner is computed
// from theirs.
func (l *Queues) releaseDeferred(namespace string) {
	l.mu.Lock()
	waiting := slices.DeleteFunc(slices.Clone(l.all), func(q *queue) bool { return q.deferred.empty(namespace) })
	l.mu.Unlock()
	if len(waiting) == 0 || l.UserWorkPending(namespace) {
		return
	}
	next := slices.MaxFunc(waiting, func(a, b *queue) int { return cmp.Compare(a.depth, b.depth) })
	next.AddWithOpts(priorityqueue.AddOpts{Priority: new(PriorityChild)}, next.deferred.take(namespace, deferredBatch)...)
}

func (l *Queues) unfinished() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	left := 0
	for _, q := range l.all {
		left += q.unfinished()
	}
	return left
}
