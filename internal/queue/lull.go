package queue

import (
	"container/list"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Lull is the place of an object that waits until nothing that users asked for
// stands in any line. It comes then, or when the time is over after which it was
// to come.
const Lull = News - 1

// called is how many come when a pass ends in a lull. Each of them calls as many
// again when it ends itself, so that all come soon, and few are there when the
// lull is a short one.
const called = 2

// room is where those are who wait for a lull, in the order in which they came.
type room struct {
	mu    sync.Mutex
	order list.List
	in    map[reconcile.Request]*list.Element
}

func (r *room) enter(items ...reconcile.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.in == nil {
		r.in = map[reconcile.Request]*list.Element{}
	}
	for _, item := range items {
		if r.in[item] == nil {
			r.in[item] = r.order.PushBack(item)
		}
	}
}

// leave is for one that was taken from the line before it was called.
func (r *room) leave(item reconcile.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if at := r.in[item]; at != nil {
		r.order.Remove(at)
		delete(r.in, item)
	}
}

func (r *room) empty() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.in) == 0
}

// call has the first few leave.
func (r *room) call(most int) []reconcile.Request {
	r.mu.Lock()
	defer r.mu.Unlock()
	var first []reconcile.Request
	for at := r.order.Front(); at != nil && len(first) < most; at = r.order.Front() {
		item := r.order.Remove(at).(reconcile.Request)
		delete(r.in, item)
		first = append(first, item)
	}
	return first
}
