package queue

import (
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/dynamo-operator/dynamo-operator/internal/core/roundrobin"
)

// PriorityIdle is the place of an object that waits until nothing that users of its
// namespace asked for stands in any line. It comes then, or when the time is over
// after which it was to come.
const PriorityIdle = PriorityChild - 1

// deferredBatch is how many come when a pass ends in a lull. Each of them calls as many
// again when it ends itself, so that all come soon, and few are there when the
// lull is a short one.
const deferredBatch = 2

// deferred is where those are who wait for a lull, those of each namespace in the
// order in which they came.
type deferred struct {
	mu      sync.Mutex
	waiting roundrobin.Queue[string, reconcile.Request]
	items   map[reconcile.Request]roundrobin.Item[string, reconcile.Request]
}

func (r *deferred) add(item reconcile.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.items == nil {
		r.items = map[reconcile.Request]roundrobin.Item[string, reconcile.Request]{}
	}
	if _, there := r.items[item]; !there {
		r.items[item] = r.waiting.Push(item.Namespace, item)
	}
}

// remove is for one that was taken from the line before it was called.
func (r *deferred) remove(item reconcile.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if at, there := r.items[item]; there {
		r.waiting.Remove(at)
		delete(r.items, item)
	}
}

func (r *deferred) empty(namespace string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.waiting.LenOf(namespace) == 0
}

// take has the first few of a namespace leave.
func (r *deferred) take(namespace string, most int) []reconcile.Request {
	r.mu.Lock()
	defer r.mu.Unlock()
	var first []reconcile.Request
	for len(first) < most {
		item, ok := r.waiting.Pop(namespace)
		if !ok {
			break
		}
		delete(r.items, item)
		first = append(first, item)
	}
	return first
}
