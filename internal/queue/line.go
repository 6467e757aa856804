package queue

import (
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// line is one controller's queue. Three parts of client-go do most of the work:
//
//	AddWithOpts --(later)--> delaying queue --+
//	     |                                    v
//	     +--------(now)------> workqueue ordered by order --> Get --> Done
//
// The workqueue drops duplicates, keeps an object that is in flight from being
// taken again, and reports the metrics; order says which one is next, and the
// line when a worker may take it. The delaying queue is only a timer: delayed
// holds what is due and when, so that an object which is reconciled for another
// reason is not reconciled once more when its delay ends.
type line struct {
	limiter workqueue.TypedRateLimiter[reconcile.Request]
	timer   workqueue.TypedDelayingInterface[reconcile.Request]
	lines   *Lines
	depth   int
	// room is where those wait who come when there is a lull.
	room room

	mu sync.Mutex
	// changed is signalled when an object may be taken that could not before.
	changed *sync.Cond
	work    workqueue.TypedInterface[reconcile.Request]
	order   *order
	delayed map[reconcile.Request]delay
	// busy counts the objects that workers have in hand.
	busy int
}

// delay is when an object is due, and the priority that it gets then.
type delay struct {
	at       time.Time
	priority int
}

var _ priorityqueue.PriorityQueue[reconcile.Request] = &line{}

func newLine(name string, limiter workqueue.TypedRateLimiter[reconcile.Request], lines *Lines, o Options) *line {
	demoted := o.Demoted
	if demoted == nil {
		demoted = func(string) {}
	}
	q := &line{
		limiter: limiter, lines: lines, depth: o.Depth,
		order:   newOrder(o.Fairness, time.Now, demoted),
		delayed: map[reconcile.Request]delay{},
	}
	q.changed = sync.NewCond(&q.mu)
	q.work = workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[reconcile.Request]{Name: name, Queue: q.order})
	q.timer = workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[reconcile.Request]{Name: name, Queue: due{q.work, q}})
	return q
}

// due takes what the timer hands over.
type due struct {
	workqueue.TypedInterface[reconcile.Request]
	line *line
}

func (d due) Add(item reconcile.Request) { d.line.expired(item) }

func (q *line) Add(item reconcile.Request) {
	q.AddWithOpts(priorityqueue.AddOpts{}, item)
}

func (q *line) AddAfter(item reconcile.Request, after time.Duration) {
	q.AddWithOpts(priorityqueue.AddOpts{After: after}, item)
}

func (q *line) AddRateLimited(item reconcile.Request) {
	q.AddWithOpts(priorityqueue.AddOpts{RateLimited: true}, item)
}

// AddWithOpts queues objects now or later. For one that is queued already the
// higher priority and the earlier time count.
func (q *line) AddWithOpts(o priorityqueue.AddOpts, items ...reconcile.Request) {
	if q.lines.closed.Load() {
		return
	}
	for _, item := range items {
		after := o.After
		if o.RateLimited {
			if wait := q.limiter.When(item); after == 0 || wait < after {
				after = wait
			}
		}
		if q.join(item, after, ptr.Deref(o.Priority, 0)) {
			q.timer.AddAfter(item, after) // not under the lock, which the timer takes
		}
	}
}

// join queues an object, and reports whether a timer is needed for that.
func (q *line) join(item reconcile.Request, after time.Duration, priority int) (wait bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if priority == Lull {
		q.room.enter(item)
		priority = News
	}
	before, waits := q.delayed[item]
	if waits {
		priority = max(priority, before.priority)
	}
	if after <= 0 || q.order.waiting[item] != nil {
		q.push(item, priority)
		return false
	}
	at := time.Now().Add(after)
	if waits && !at.Before(before.at) {
		q.delayed[item] = delay{before.at, priority}
		return false
	}
	q.delayed[item] = delay{at, priority}
	return true
}

// expired queues an object whose delay is over. One that was queued meanwhile is
// not queued again, and one whose delay began anew waits for the rest.
func (q *line) expired(item reconcile.Request) {
	q.mu.Lock()
	defer q.mu.Unlock()
	d, waits := q.delayed[item]
	if !waits {
		return
	}
	if rest := time.Until(d.at); rest > 0 {
		go q.timer.AddAfter(item, rest) // its own goroutine is the caller
		return
	}
	q.push(item, d.priority)
}

func (q *line) push(item reconcile.Request, priority int) {
	delete(q.delayed, item)
	q.order.request(item, priority)
	q.work.Add(item)
	q.changed.Signal()
}

func (q *line) Get() (item reconcile.Request, shutdown bool) {
	item, _, shutdown = q.GetWithPriority()
	return item, shutdown
}

// GetWithPriority waits for an object that may be reconciled. Nobody else takes
// from the workqueue, so that it does not wait itself.
func (q *line) GetWithPriority() (item reconcile.Request, priority int, shutdown bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for !q.work.ShuttingDown() && !q.order.ready() {
		q.changed.Wait()
	}
	if q.work.ShuttingDown() {
		return reconcile.Request{}, 0, true
	}
	item, _ = q.work.Get()
	q.busy++
	q.room.leave(item)
	return item, q.order.popped, false
}

// Done ends the reconcile of an object, which may make room for several.
func (q *line) Done(item reconcile.Request) {
	q.mu.Lock()
	q.order.done(item)
	q.work.Done(item)
	q.busy--
	q.changed.Broadcast()
	q.mu.Unlock()
	q.lines.lull(item.Namespace)
}

func (q *line) Forget(item reconcile.Request) { q.limiter.Forget(item) }

func (q *line) NumRequeues(item reconcile.Request) int { return q.limiter.NumRequeues(item) }

// Len is the number of objects that wait for a worker.
func (q *line) Len() int { return q.work.Len() }

func (q *line) ShuttingDown() bool { return q.work.ShuttingDown() }

// ShutDown ends all waits. What is queued stays undone; Drain comes before.
func (q *line) ShutDown() {
	q.timer.ShutDown()
	q.mu.Lock()
	defer q.mu.Unlock()
	q.changed.Broadcast()
}

func (q *line) ShutDownWithDrain() { q.ShutDown() }

// urgent reports whether an object of a namespace waits that is ahead of child
// events.
func (q *line) urgent(namespace string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	state := q.order.namespaces[namespace]
	return state != nil && state.urgent > 0
}

// unfinished is how many objects wait or are in hand.
func (q *line) unfinished() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.order.Len() + q.busy
}
