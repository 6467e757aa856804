// Package queue is the line in which objects wait for a pass of their
// controller: what a user just did comes before what is looked at again for no
// reason, changes of children are gathered, failures wait longer each time, and
// what stands in line can be worked off before the operator ends.
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

// Lines are the queues of all controllers.
type Lines struct {
	mu     sync.Mutex
	all    []*line
	closed atomic.Bool
}

// At returns what makes the queue of one controller. The depth of its objects is
// how many owners are above them.
func (l *Lines) At(depth int) func(name string, limiter workqueue.TypedRateLimiter[reconcile.Request]) workqueue.TypedRateLimitingInterface[reconcile.Request] {
	return func(name string, limiter workqueue.TypedRateLimiter[reconcile.Request]) workqueue.TypedRateLimitingInterface[reconcile.Request] {
		made := &line{
			PriorityQueue: priorityqueue.New(name, func(o *priorityqueue.Opts[reconcile.Request]) { o.RateLimiter = limiter }),
			lines:         l,
			depth:         depth,
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		l.all = append(l.all, made)
		return made
	}
}

// Backoff doubles the wait of an object with each failure in a row.
func Backoff(base, limit time.Duration) workqueue.TypedRateLimiter[reconcile.Request] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](base, limit)
}

// Drain lets nobody join any more and waits until what stands in line is done,
// or ctx ends. It returns how many are left.
func (l *Lines) Drain(ctx context.Context) int {
	l.closed.Store(true)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	// An object that a worker just took stands nowhere for a moment, hence more
	// than one look.
	for quiet := 0; quiet < 3; {
		left := l.left()
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

// Pressing reports whether something that users asked for stands in line.
func (l *Lines) Pressing() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.ContainsFunc(l.all, func(q *line) bool { return q.asked.Load() && q.Len() > 0 })
}

// lull calls some of those who wait for a lull, if there is one: first those who
// are owned, since what is told of an owner is made of what is told of them.
func (l *Lines) lull() {
	l.mu.Lock()
	waiting := slices.DeleteFunc(slices.Clone(l.all), func(q *line) bool { return q.room.empty() })
	l.mu.Unlock()
	if len(waiting) == 0 || l.Pressing() {
		return
	}
	next := slices.MaxFunc(waiting, func(a, b *line) int { return cmp.Compare(a.depth, b.depth) })
	next.AddWithOpts(priorityqueue.AddOpts{Priority: new(News)}, next.room.call(called)...)
}

func (l *Lines) left() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	left := 0
	for _, q := range l.all {
		left += q.Len() + int(q.busy.Load())
	}
	return left
}

// line is one controller's queue; it can be closed to newcomers.
type line struct {
	priorityqueue.PriorityQueue[reconcile.Request]
	lines *Lines
	depth int
	// room is where those wait who come when there is a lull.
	room room
	// busy counts the objects that workers have in hand.
	busy atomic.Int64
	// asked is whether the last that a worker took stood there because of what a
	// user did, or of an alarm. Those come first, so that all others stand behind
	// them.
	asked atomic.Bool
}

func (q *line) Add(item reconcile.Request) {
	q.AddWithOpts(priorityqueue.AddOpts{}, item)
}

func (q *line) AddAfter(item reconcile.Request, after time.Duration) {
	q.AddWithOpts(priorityqueue.AddOpts{After: after}, item)
}

func (q *line) AddRateLimited(item reconcile.Request) {
	q.AddWithOpts(priorityqueue.AddOpts{RateLimited: true}, item)
}

func (q *line) AddWithOpts(o priorityqueue.AddOpts, items ...reconcile.Request) {
	if q.lines.closed.Load() {
		return
	}
	if o.Priority != nil && *o.Priority == Lull {
		q.room.enter(items...)
	}
	q.PriorityQueue.AddWithOpts(o, items...)
}

func (q *line) Get() (item reconcile.Request, shutdown bool) {
	item, _, shutdown = q.GetWithPriority()
	return item, shutdown
}

func (q *line) GetWithPriority() (item reconcile.Request, priority int, shutdown bool) {
	item, priority, shutdown = q.PriorityQueue.GetWithPriority()
	if !shutdown {
		q.busy.Add(1)
		q.asked.Store(priority > News)
		q.room.leave(item)
	}
	return item, priority, shutdown
}

func (q *line) Done(item reconcile.Request) {
	q.PriorityQueue.Done(item)
	q.busy.Add(-1)
	q.lines.lull()
}
