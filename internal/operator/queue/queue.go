package queue

import (
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// queue is one controller's queue. Three parts of client-go do most of the work:
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
type queue struct {
	limiter workqueue.TypedRateLimiter[reconcile.Request]
	timer   workqueue.TypedDelayingInterface[reconcile.Request]
	queues  *Queues
	depth   int
	// deferred are the objects of PriorityIdle.
	deferred deferred

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

var _ priorityqueue.PriorityQueue[reconcile.Request] = &queue{}

func newQueue(name string, limiter workqueue.TypedRateLimiter[reconcile.Request], lines *Queues, o Options) *queue {
	demoted := o.Demoted
	if demoted == nil {
		demoted = func(string) {}
	}
	q := &queue{
		limiter: limiter, queues: lines, depth: o.Depth,
		order:   newOrder(o.Fairness, time.Now, demoted),
		delayed: map[reconcile.Request]delay{},
	}
	q.changed = sync.NewCond(&q.mu)
	q.work = workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[reconcile.Request]{Name: name, Queue: q.order})
	q.timer = workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[reconcile.Request]{Name: name, Queue: expiredTimer{q.work, q}})
	return q
}

// expiredTimer takes what the timer hands over.
type expiredTimer struct {
	workqueue.TypedInterface[reconcile.Request]
	line *queue
}

func (d expiredTimer) Add(item reconcile.Request) { d.line.expired(item) }

func (q *queue) Add(item reconcile.Request) {
	q.AddWithOpts(priorityqueue.AddOpts{}, item)
}

func (q *queue) AddAfter(item reconcile.Request, after time.Duration) {
	q.AddWithOpts(priorityqueue.AddOpts{After: after}, item)
}

func (q *queue) AddRateLimited(item reconcile.Request) {
	q.AddWithOpts(priorityqueue.AddOpts{RateLimited: true}, item)
}

// AddWithOpts queues objects now or later. For one that is queued already the
// higher priority and the earlier time count.
func (q *queue) AddWithOpts(o priorityqueue.AddOpts, items ...reconcile.Request) {
	if q.queues.closed.Load() {
		return
	}
	for _, item := range items {
		after := o.After
		if o.RateLimited {
			if wait := q.limiter.When(item); after == 0 || wait < after {
				after = wait
			}
		}
		if q.enqueue(item, after, ptr.Deref(o.Priority, 0)) {
			q.timer.AddAfter(item, after) // not under the lock, which the timer takes
		}
	}
}

// enqueue queues an object, and reports whether a timer is needed for that.
func (q *queue) enqueue(item reconcile.Request, after time.Duration, priority int) (wait bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if priority == PriorityIdle {
		q.deferred.add(item)
		priority = PriorityChild
	}
	if Priorities.Off() {
		priority = 0
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
func (q *queue) expired(item reconcile.Request) {
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

func (q *queue) push(item reconcile.Request, priority int) {
	delete(q.delayed, item)
	q.order.request(item, priority)
	q.work.Add(item)
	q.changed.Signal()
}

func (q *queue) Get() (item reconcile.Request, shutdown bool) {
	item, _, shutdown = q.GetWithPriority()
	return item, shutdown
}

// GetWithPriority waits for an object that may be reconciled. Nobody else takes
// from the workqueue, so that it does not wait itself.
func (q *queue) GetWithPriority() (item reconcile.Request, priority int, shutdown bool) {
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
	q.deferred.remove(item)
	return item, q.order.popped, false
}

// Done ends the reconcile of an object, which may make room for several.
func (q *queue) Done(item reconcile.Request) {
	q.mu.Lock()
	q.order.done(item)
	q.work.Done(item)
	q.busy--
	q.changed.Broadcast()
	q.mu.Unlock()
	q.queues.releaseDeferred(item.Namespace)
}

func (q *queue) Forget(item reconcile.Request) { q.limiter.Forget(item) }

func (q *queue) NumRequeues(item reconcile.Request) int { return q.limiter.NumRequeues(item) }

// Len is the number of objects that wait for a worker.
func (q *queue) Len() int { return q.work.Len() }

func (q *queue) ShuttingDown() bool { return q.work.ShuttingDown() }

// ShutDown ends all waits. What is queued stays undone; Drain comes before.
func (q *queue) ShutDown() {
	q.timer.ShutDown()
	q.mu.Lock()
	defer q.mu.Unlock()
	q.changed.Broadcast()
}

func (q *queue) ShutDownWithDrain() { q.ShutDown() }

// hasUserWork reports whether an object of a namespace waits that is ahead of child
// events.
func (q *queue) hasUserWork(namespace string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	state := q.order.namespaces[namespace]
	return state != nil && state.userWork > 0
}

// unfinished is how many objects wait or are in hand.
func (q *queue) unfinished() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.order.Len() + q.busy
}
