package queue

import (
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/dynamo-operator/dynamo-operator/internal/roundrobin"
)

// Lull is the place of an object that waits until nothing that users of its
// namespace asked for stands in any line. It comes then, or when the time is over
// after which it was to come.
const Lull = News - 1

// called is how many come when a pass ends in a lull. Each of them calls as many
// again when it ends itself, so that all come soon, and few are there when the
// lull is a short one.
const called = 2

// room is where those are who wait for a lull, those of each namespace in the
// order in which they came.
type room struct {
	mu     sync.Mutex
	guests roundrobin.Queue[string, reconcile.Request]
	in     map[reconcile.Request]roundrobin.Item[string, reconcile.Request]
}

func (r *room) enter(item reconcile.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.in == nil {
		r.in = map[reconcile.Request]roundrobin.Item[string, reconcile.Request]{}
	}
	if _, there := r.in[item]; !there {
		r.in[item] = r.guests.Push(item.Namespace, item)
	}
}

// leave is for one that was taken from the line before it was called.
func (r *room) leave(item reconcile.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if at, there := r.in[item]; there {
		r.guests.Remove(at)
		delete(r.in, item)
	}
}

func (r *room) empty(namespace string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.guests.LenOf(namespace) == 0
}

// call has the first few of a namespace leave.
func (r *room) call(namespace string, most int) []reconcile.Request {
	r.mu.Lock()
	defer r.mu.Unlock()
	var first []reconcile.Request
	for len(first) < most {
		item, ok := r.guests.Pop(namespace)
		if !ok {
			break
		}
		delete(r.in, item)
		first = append(first, item)
	}
	return first
}
