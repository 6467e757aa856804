package controller

import (
	"context"
	"fmt"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/dynamo-operator/dynamo-operator/internal/core/guard"
	"github.com/dynamo-operator/dynamo-operator/internal/operator/namespacescope"
)

// gate has a reconciler of a kind work only on what is ours to write.
func (d *Deps) gate(kind Object, next reconcile.Reconciler) reconcile.Reconciler {
	return &namespacescope.Gate{
		Client: d.GetClient(), Writer: d.Scope.Writer, View: d.Scope.View, Covers: d.Config.Covers, Clock: guard.Clock(), Next: next,
		Kind: kind,
	}
}

// followScope wakes the objects of a kind whose writer changes.
func (d *Deps) followScope(kind client.Object, b *builder.Builder) *builder.Builder {
	list := d.ListOf(kind)
	b = b.WatchesRawSource(source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		d.Scope.OnWake(func(ctx context.Context, namespace string) {
			objects, err := objectsOf(ctx, d.GetClient(), list, client.InNamespace(namespace))
			if err != nil {
				d.GetLogger().Error(err, "cannot enqueue objects", "kind", KindName(kind), "namespace", namespace)
			}
			for _, object := range objects {
				later(queue, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(object)})
			}
		})
		return nil
	}))
	if d.Scope.View == nil {
		return b
	}
	return b.Watches(&coordinationv1.Lease{}, sameNamespace(d.GetClient(), list), builder.WithPredicates(d.Scope.ChangesHands()))
}

// later queues an object as the first list does: behind what users just did.
func later(queue workqueue.TypedRateLimitingInterface[reconcile.Request], request reconcile.Request) {
	if q, ok := queue.(priorityqueue.PriorityQueue[reconcile.Request]); ok {
		q.AddWithOpts(priorityqueue.AddOpts{Priority: new(handler.LowPriority)}, request)
		return
	}
	queue.Add(request)
}

// ListOf is an empty list of a kind.
func (d *Deps) ListOf(kind client.Object) client.ObjectList {
	gvk, err := apiutil.GVKForObject(kind, d.GetScheme())
	if err == nil {
		gvk.Kind += "List"
		if list, err := d.GetScheme().New(gvk); err == nil {
			return list.(client.ObjectList)
		}
	}
	panic(fmt.Sprintf("%T has no list in the scheme: %v", kind, err)) // a mistake in the program
}
