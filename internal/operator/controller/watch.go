package controller

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/cluster/observe"
	"github.com/dynamo-operator/dynamo-operator/internal/core/workload"
)

// Watched is a controller that can be given more to watch while it runs.
type Watched struct {
	controller controller.Controller
	kind       client.Object
	kindList   client.ObjectList
	children   []observe.Child
	// beneath are kinds that others make from children.
	Beneath []observe.Child
	// Around are kinds that graphs depend on without owning them: a change
	// concerns all of the namespace, unless what changed is a child of ours.
	Around []observe.Child
	// wake takes objects of the controller's kind that are worth another look.
	wake chan event.GenericEvent
}

// Watch starts a reconciler for a kind and wakes it for changes of its children,
// as far as every cluster serves their kinds.
func (d *Deps) Watch(kind Object, list client.ObjectList, children []observe.Child, recorder events.EventRecorder, r reconcile.Reconciler) (*Watched, error) {
	w := &Watched{kind: kind, kindList: list, children: children, wake: make(chan event.GenericEvent)}
	b := d.NewController(kind).
		WatchesRawSource(source.Channel(w.wake, d.batchedLonger(kind, &handler.EnqueueRequestForObject{})))
	// A pull secret that comes, goes or changes concerns every pod of its
	// namespace: whether it is for other registries than before is found out by
	// the first reconcile.
	b = b.Watches(&corev1.Secret{}, d.Batched(kind, w.SameNamespace(d.GetClient())), builder.WithPredicates(predicate.ResourceVersionChangedPredicate{}))
	for _, c := range Required(children) {
		b = b.Watches(c.Object, d.batchedByUrgency(kind, EnqueueOwner(d, kind)), builder.WithPredicates(predicate.ResourceVersionChangedPredicate{}))
	}
	var err error
	if w.controller, err = b.Build(d.Guarded(kind, recorder, r)); err != nil {
		return nil, fmt.Errorf("watch %T: %w", kind, err)
	}
	d.watched = append(d.watched, w)
	return w, nil
}

// WatchForOwners wakes the graphs and components of a namespace in which an object
// of some kinds passes a predicate.
func (d *Deps) WatchForOwners(when predicate.Predicate, kinds ...client.Object) error {
	for _, w := range d.watched {
		switch w.kind.(type) {
		case *v1alpha1.DynamoGraphDeployment, *v1alpha1.DynamoComponentDeployment:
		default:
			continue
		}
		for _, kind := range kinds {
			if err := w.controller.Watch(source.Kind(d.GetCache(), kind, w.SameNamespace(d.GetClient()), when)); err != nil {
				return fmt.Errorf("watch %T: %w", kind, err)
			}
		}
	}
	return nil
}

// SameNamespace wakes every object of the controller's kind in the namespace of
// what changed; all of them if that has none.
func (w *Watched) SameNamespace(reader client.Reader) handler.EventHandler {
	return sameNamespace(reader, w.kindList)
}

// sameNamespace wakes every object of a kind in the namespace of what changed.
func sameNamespace(reader client.Reader, kind client.ObjectList) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(inNamespace(reader, kind))
}

// around wakes every object of the controller's kind in the namespace of what
// changed, unless that is a child of ours: its owner is told.
func (w *Watched) around(reader client.Reader) handler.EventHandler {
	all := inNamespace(reader, w.kindList)
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, changed client.Object) []reconcile.Request {
		if owner := metav1.GetControllerOf(changed); owner != nil && strings.HasPrefix(owner.APIVersion, v1alpha1.GroupName+"/") {
			return nil
		}
		return all(ctx, changed)
	})
}

func inNamespace(reader client.Reader, kind client.ObjectList) handler.MapFunc {
	return func(ctx context.Context, changed client.Object) []reconcile.Request {
		list, err := objectsOf(ctx, reader, kind, client.InNamespace(changed.GetNamespace()))
		if err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "cannot enqueue the objects that a change concerns", "changed", client.ObjectKeyFromObject(changed))
		}
		var requests []reconcile.Request
		for _, object := range list {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(object)})
		}
		return requests
	}
}

// objectsOf reads the objects of a kind.
func objectsOf(ctx context.Context, reader client.Reader, kind client.ObjectList, options ...client.ListOption) ([]client.Object, error) {
	list := kind.DeepCopyObject().(client.ObjectList)
	if err := reader.List(ctx, list, options...); err != nil {
		return nil, err
	}
	var objects []client.Object
	err := meta.EachListItem(list, func(item runtime.Object) error {
		objects = append(objects, item.(client.Object))
		return nil
	})
	return objects, err
}

// Required are the kinds that every cluster serves.
func Required(children []observe.Child) []observe.Child {
	return slices.DeleteFunc(slices.Clone(children), func(c observe.Child) bool { return c.API != "" })
}

// EnqueueOwner wakes every owner of a kind, the only one or one of several.
func EnqueueOwner(mgr manager.Manager, kind client.Object) handler.EventHandler {
	return handler.EnqueueRequestForOwner(mgr.GetScheme(), mgr.GetRESTMapper(), kind)
}

// Labelled selects objects that carry a label, whatever it says.
func Labelled(key string) labels.Selector {
	carries, err := labels.NewRequirement(key, selection.Exists, nil)
	if err != nil {
		panic(err) // keys are constants
	}
	return labels.NewSelector().Add(*carries)
}

// IntentChanged lets through what a user can change: spec, labels, annotations and
// deletion, and the periodic look at an object that did not change at all, which
// catches what events missed. What we write ourselves, in the status or as a note
// of a decision, wakes nobody.
func IntentChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		was, is := e.ObjectOld, e.ObjectNew
		return was.GetResourceVersion() == is.GetResourceVersion() ||
			was.GetGeneration() != is.GetGeneration() ||
			!was.GetDeletionTimestamp().Equal(is.GetDeletionTimestamp()) ||
			!maps.Equal(noted(was), noted(is)) ||
			!maps.Equal(was.GetLabels(), is.GetLabels())
	}}
}

// noted are an object's annotations but for our record of the provider. It is put
// back by the next reconcile if somebody takes it away.
func noted(object client.Object) map[string]string {
	annotations := maps.Clone(object.GetAnnotations())
	for ours := range workload.Record(nil, "") {
		delete(annotations, ours)
	}
	return annotations
}
