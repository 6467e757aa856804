package controller

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Watchdog notices controllers that no longer work: all their workers hang in
// reconciles that ignore their deadline, or objects are ready in a queue and nobody
// takes them. It judges by time alone. Errors are no sign of it: while the API
// server is away every reconcile fails, and each of them ends.
type Watchdog struct {
	Clock clock.PassiveClock
	// Deadline is when a reconcile is to end by itself.
	Deadline time.Duration
	// Stuck is how long after that a reconcile counts as stuck; 0 never.
	Stuck time.Duration
	// Idle is how long a queue with objects in it may see no reconcile begin or end; 0
	// for ever.
	Idle time.Duration

	mu    sync.Mutex
	kinds map[string]*watched
}

// watched is what is known of one controller.
type watched struct {
	workers int
	waiting func() int
	begun   map[int]time.Time // the reconciles that run, by a number of their own
	next    int
	// progress is when a reconcile last began or ended, or there was nothing to do.
	progress time.Time
}

// NewQueue is how controller-runtime has a controller's queue made.
type NewQueue = func(name string, limiter workqueue.TypedRateLimiter[reconcile.Request]) workqueue.TypedRateLimitingInterface[reconcile.Request]

// Queue remembers the queue of a kind, whose length tells how many objects are
// ready for a reconcile.
func (w *Watchdog) Queue(kind string, construct NewQueue) NewQueue {
	return func(name string, limiter workqueue.TypedRateLimiter[reconcile.Request]) workqueue.TypedRateLimitingInterface[reconcile.Request] {
		made := construct(name, limiter)
		w.mu.Lock()
		defer w.mu.Unlock()
		w.of(kind).waiting = made.Len
		return made
	}
}

// Watch follows the reconciles of a kind, which so many workers make.
func (w *Watchdog) Watch(kind string, workers int, next reconcile.Reconciler) reconcile.Reconciler {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.of(kind).workers = workers
	return reconcile.Func(func(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
		defer w.begin(kind)()
		return next.Reconcile(ctx, request)
	})
}

func (w *Watchdog) of(kind string) *watched {
	if w.kinds == nil {
		w.kinds = map[string]*watched{}
	}
	if w.kinds[kind] == nil {
		w.kinds[kind] = &watched{waiting: func() int { return 0 }, begun: map[int]time.Time{}, progress: w.Clock.Now()}
	}
	return w.kinds[kind]
}

// begin counts a reconcile, and returns what ends it.
func (w *Watchdog) begin(kind string) (end func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	k := w.of(kind)
	id := k.next
	k.next++
	k.progress = w.Clock.Now()
	k.begun[id] = k.progress
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(k.begun, id)
		k.progress = w.Clock.Now()
	}
}

// Check is what is wrong; nothing is while this replica does not lead, because
// nobody takes from its queues then.
func (w *Watchdog) Check(leading bool) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.Clock.Now()
	var errs []error
	for _, kind := range slices.Sorted(maps.Keys(w.kinds)) {
		k := w.kinds[kind]
		if waiting := k.waiting(); !leading || waiting == 0 {
			k.progress = now
		} else if idle := now.Sub(k.progress); w.Idle > 0 && idle > max(w.Idle, w.Deadline+w.Stuck) {
			errs = append(errs, fmt.Errorf("%d objects wait in the queue of %s, and no pass has begun or ended for %s", waiting, kind, idle.Round(time.Second)))
		}
		if stuck := k.stuck(now.Add(-w.Deadline - w.Stuck)); w.Stuck > 0 && k.workers > 0 && stuck >= k.workers {
			errs = append(errs, fmt.Errorf("all %d workers of %s are stuck in passes that began more than %s ago", k.workers, kind, w.Deadline+w.Stuck))
		}
	}
	return errors.Join(errs...)
}

// stuck counts reconciles that run since before a time.
func (k *watched) stuck(before time.Time) int {
	count := 0
	for _, at := range k.begun {
		if at.Before(before) {
			count++
		}
	}
	return count
}
