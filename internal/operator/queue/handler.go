package queue

import (
	"context"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// PriorityChild is the place in line of an object about whose children there is something
// to tell: behind what a user asks for, so that a crowd of new graphs is made
// before it is reported on, and before what is looked at for no reason.
const PriorityChild = handler.LowPriority / 10

// PriorityDegraded is the place of an object that something is wrong with which ran before:
// ahead of all, since somebody may have to be woken.
const PriorityDegraded = -PriorityChild

// Batch has whom a handler wakes wait a moment, so that several changes that
// come together cost one reconcile. The first change sets the time; later ones do
// not put it off. Then they stand at a place in line.
func Batch(h handler.EventHandler, wait time.Duration, place int, causes *Causes) handler.EventHandler {
	return batching{h, wait, place, causes}
}

type batching struct {
	handler.EventHandler
	wait     time.Duration
	priority int
	causes   *Causes
}

func (g batching) Create(ctx context.Context, e event.CreateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	g.EventHandler.Create(ctx, e, g.delayed(q, "created", e.Object))
}

func (g batching) Update(ctx context.Context, e event.UpdateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	g.EventHandler.Update(ctx, e, g.delayed(q, "updated", e.ObjectNew))
}

func (g batching) Delete(ctx context.Context, e event.DeleteEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	g.EventHandler.Delete(ctx, e, g.delayed(q, "deleted", e.Object))
}

func (g batching) Generic(ctx context.Context, e event.GenericEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	g.EventHandler.Generic(ctx, e, g.delayed(q, "noticed", e.Object))
}

func (g batching) delayed(q workqueue.TypedRateLimitingInterface[reconcile.Request], verb string, object named) workqueue.TypedRateLimitingInterface[reconcile.Request] {
	inner, ok := q.(priorityqueue.PriorityQueue[reconcile.Request])
	if !ok {
		return q
	}
	wait := g.wait
	if Batching.Off() {
		wait = 0
	}
	return delayedQueue{inner, wait, g.priority, func(items []reconcile.Request) {
		if g.causes != nil {
			g.causes.note(describe(verb, object), items)
		}
	}}
}

// delayedQueue is a queue whose newcomers wait before they stand in line.
type delayedQueue struct {
	priorityqueue.PriorityQueue[reconcile.Request]
	wait     time.Duration
	priority int
	joined   func([]reconcile.Request)
}

func (q delayedQueue) Add(item reconcile.Request) {
	q.AddWithOpts(priorityqueue.AddOpts{}, item)
}

func (q delayedQueue) AddWithOpts(o priorityqueue.AddOpts, items ...reconcile.Request) {
	if o.After == 0 && !o.RateLimited {
		o.After = q.wait
	}
	if o.Priority == nil {
		o.Priority = &q.priority
	}
	q.joined(items)
	q.PriorityQueue.AddWithOpts(o, items...)
}

// ByUpdate sends each update to the handler that is chosen for it, and what is made
// or deleted to the usual one.
func ByUpdate(usual handler.EventHandler, choose func(event.UpdateEvent) handler.EventHandler) handler.EventHandler {
	return handler.Funcs{
		CreateFunc:  usual.Create,
		DeleteFunc:  usual.Delete,
		GenericFunc: usual.Generic,
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			choose(e).Update(ctx, e, q)
		},
	}
}
