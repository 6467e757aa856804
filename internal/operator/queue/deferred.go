package queue

import (
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/dynamo-operator/dynamo-operator/internal/core/roundrobin"
)

// PriorityIdle defers an object until no user work of its namespace is pending in
// any queue, or until its delay is over.
const PriorityIdle = PriorityChild - 1

// deferredBatch is how many deferred objects are enqueued when a reconcile ends and
// no user work is pending. Each releases as many again when it ends, so that all
// come soon, and few are in the way when user work arrives.
const deferredBatch = 2

// deferred holds the objects that wait until no user work is pending, by namespace,
// first in, first out.
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
