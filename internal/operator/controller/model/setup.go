package model

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/cluster/lora"
	"github.com/dynamo-operator/dynamo-operator/internal/cluster/observe"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/operator/controller"
)

// Setup adds the controller of DynamoModels: endpoints and pods that serve a base
// model, and other models of it.
func Setup(ctx context.Context, d *controller.Deps) error {
	if err := observe.IndexModels(ctx, d.GetFieldIndexer()); err != nil {
		return err
	}
	proxy, err := d.Config.Network.Proxy()
	if err != nil {
		return err
	}
	models := observe.Models{Reader: d.GetClient()}
	requests := &enqueuer{}
	settings := d.Config.LoRA
	reconciler := &Reconciler{
		Client:         d.GetClient(),
		Models:         models,
		Applier:        d.Applier,
		Caller:         lora.NewCaller(ctx, lora.NewClient(proxy), settings.Limits()),
		Backoff:        settings.Backoff(),
		Recheck:        settings.Recheck.Duration,
		UnloadDeadline: settings.UnloadDeadline.Duration,
		Events:         d.GetEventRecorder("dynamomodel"),
		Clock:          clock.RealClock{},
		Wake:           requests.enqueue,
	}
	byLabel := func(o client.Object) string { return o.GetLabels()[v1alpha1.LabelBaseModelHash] }
	bySpec := func(o client.Object) string { return graph.ModelHash(o.(*v1alpha1.DynamoModel).Spec.BaseModelName) }
	err = d.NewController(&v1alpha1.DynamoModel{}).
		// What one model gives up another may have waited for.
		Watches(&v1alpha1.DynamoModel{}, ofBase(models, bySpec), builder.WithPredicates(controller.IntentChanged())).
		Watches(&discoveryv1.EndpointSlice{}, ofBase(models, byLabel), builder.WithPredicates(predicate.ResourceVersionChangedPredicate{})).
		Watches(&corev1.Pod{}, ofBase(models, byLabel), builder.WithPredicates(anotherRun())).
		WatchesRawSource(source.Func(requests.start)).
		Complete(d.Guarded(&v1alpha1.DynamoModel{}, reconciler.Events, reconcile.AsReconciler(d.GetClient(), reconciler)))
	if err != nil {
		return fmt.Errorf("watch models: %w", err)
	}
	return nil
}

// ofBase wakes the models of a base model, by its hash.
func ofBase(models observe.Models, hash func(client.Object) string) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, o client.Object) []reconcile.Request {
		keys, err := models.OfBase(ctx, o.GetNamespace(), hash(o))
		if err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "cannot enqueue the models of a base model", "changed", client.ObjectKeyFromObject(o))
		}
		var requests []reconcile.Request
		for _, key := range keys {
			requests = append(requests, reconcile.Request{NamespacedName: key})
		}
		return requests
	})
}

// anotherRun lets a pod through that serves a base model and whose engine, or
// address, is another than before.
func anotherRun() predicate.Predicate {
	serves := predicate.NewPredicateFuncs(func(o client.Object) bool { return o.GetLabels()[v1alpha1.LabelBaseModelHash] != "" })
	return predicate.And(serves, predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			was, is := e.ObjectOld.(*corev1.Pod), e.ObjectNew.(*corev1.Pod)
			return observe.RunOf(was) != observe.RunOf(is) || was.Status.PodIP != is.Status.PodIP || (was.DeletionTimestamp == nil) != (is.DeletionTimestamp == nil)
		},
		DeleteFunc: func(event.DeleteEvent) bool { return false }, // its slice tells
	})
}

// enqueuer enqueues models from outside their controller, once that runs.
type enqueuer struct {
	queue workqueue.TypedRateLimitingInterface[reconcile.Request]
}

func (e *enqueuer) start(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	e.queue = queue
	return nil
}

func (e *enqueuer) enqueue(key types.NamespacedName, after time.Duration) {
	e.queue.AddAfter(reconcile.Request{NamespacedName: key}, after)
}
