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

// News is the place in line of an object about whose children there is something
// to tell: behind what a user asks for, so that a crowd of new graphs is made
// before it is reported on, and before what is looked at for no reason.
const News = handler.LowPriority / 10

// Alarm is the place of an object that something is wrong with which ran before:
// ahead of all, since somebody may have to be woken.
const Alarm = -News

// Gather has whom a handler wakes wait a moment, so that several changes that
// come together cost one pass. The first change sets the time; later ones do
// not put it off. Then they stand at a place in line.
func Gather(h handler.EventHandler, wait time.Duration, place int, causes *Causes) handler.EventHandler {
	return gathering{h, wait, place, causes}
}

type gathering struct {
	handler.EventHandler
	wait   time.Duration
	place  int
	causes *Causes
}

func (g gathering) Create(ctx context.Context, e event.CreateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	g.EventHandler.Create(ctx, e, g.later(q, "created", e.Object))
}

func (g gathering) Update(ctx context.Context, e event.UpdateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	g.EventHandler.Update(ctx, e, g.later(q, "updated", e.ObjectNew))
}

func (g gathering) Delete(ctx context.Context, e event.DeleteEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	g.EventHandler.Delete(ctx, e, g.later(q, "deleted", e.Object))
}

func (g gathering) Generic(ctx context.Context, e event.GenericEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	g.EventHandler.Generic(ctx, e, g.later(q, "noticed", e.Object))
}

func (g gathering) later(q workqueue.TypedRateLimitingInterface[reconcile.Request], verb string, object named) workqueue.TypedRateLimitingInterface[reconcile.Request] {
	inner, ok := q.(priorityqueue.PriorityQueue[reconcile.Request])
	if !ok {
		return q
	}
	return later{inner, g.wait, g.place, func(items []reconcile.Request) {
		if g.causes != nil {
			g.causes.note(because(verb, object), items)
		}
	}}
}

// later is a queue whose newcomers wait before they stand in line.
type later struct {
	priorityqueue.PriorityQueue[reconcile.Request]
	wait   time.Duration
	place  int
	joined func([]reconcile.Request)
}

func (q later) Add(item reconcile.Request) {
	q.AddWithOpts(priorityqueue.AddOpts{}, item)
}

func (q later) AddWithOpts(o priorityqueue.AddOpts, items ...reconcile.Request) {
	if o.After == 0 && !o.RateLimited {
		o.After = q.wait
	}
	if o.Priority == nil {
		o.Priority = &q.place
	}
	q.joined(items)
	q.PriorityQueue.AddWithOpts(o, items...)
}

// Pick sends each update to the handler that is chosen for it, and what is made
// or deleted to the usual one.
func Pick(usual handler.EventHandler, choose func(event.UpdateEvent) handler.EventHandler) handler.EventHandler {
	return handler.Funcs{
		CreateFunc:  usual.Create,
		DeleteFunc:  usual.Delete,
		GenericFunc: usual.Generic,
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			choose(e).Update(ctx, e, q)
		},
	}
}
