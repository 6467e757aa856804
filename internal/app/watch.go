package app

import (
	"errors"
	"fmt"
	"net/http"
	"reflect"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/dynamo-operator/dynamo-operator/internal/config"
	"github.com/dynamo-operator/dynamo-operator/internal/observe"
)

// watched is a controller that can be given more to watch while it runs.
type watched struct {
	controller controller.Controller
	kind       client.Object
	children   []observe.Child
	// beneath are kinds that others make from children.
	beneath []observe.Child
	// wake takes objects of the controller's kind that are worth another look.
	wake chan event.GenericEvent
}

// watch starts a reconciler for a kind and wakes it for changes of its children,
// as far as every cluster serves their kinds.
func watch(mgr manager.Manager, kind client.Object, children []observe.Child, r reconcile.Reconciler) (*watched, error) {
	w := &watched{kind: kind, children: children, wake: make(chan event.GenericEvent)}
	b := ctrl.NewControllerManagedBy(mgr).
		For(kind, builder.WithPredicates(intent())).
		WatchesRawSource(source.Channel(w.wake, &handler.EnqueueRequestForObject{}))
	for _, c := range required(children) {
		b = b.Watches(c.Object, ownerHandler(mgr, kind), builder.WithPredicates(predicate.ResourceVersionChangedPredicate{}))
	}
	var err error
	if w.controller, err = b.Build(r); err != nil {
		return nil, fmt.Errorf("watch %T: %w", kind, err)
	}
	return w, nil
}

// required are the kinds that every cluster serves.
func required(children []observe.Child) []observe.Child {
	var always []observe.Child
	for _, c := range children {
		if c.API == "" {
			always = append(always, c)
		}
	}
	return always
}

// ownerHandler wakes every owner of a kind, the only one or one of several.
func ownerHandler(mgr manager.Manager, kind client.Object) handler.EventHandler {
	return handler.EnqueueRequestForOwner(mgr.GetScheme(), mgr.GetRESTMapper(), kind)
}

// intent lets through what a user can change: spec, labels, annotations and
// deletion. Our own status writes wake nobody.
func intent() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		was, is := e.ObjectOld, e.ObjectNew
		return was.GetGeneration() != is.GetGeneration() ||
			!was.GetDeletionTimestamp().Equal(is.GetDeletionTimestamp()) ||
			!reflect.DeepEqual(was.GetAnnotations(), is.GetAnnotations()) ||
			!reflect.DeepEqual(was.GetLabels(), is.GetLabels())
	}}
}

func controllerDefaults(cfg config.Config) ctrlconfig.Controller {
	return ctrlconfig.Controller{MaxConcurrentReconciles: cfg.Controller.Workers}
}

// synced is ready once every informer has its first list: from then on what the
// operator decides is decided on the whole.
func synced(mgr manager.Manager) healthz.Checker {
	return func(r *http.Request) error {
		if !mgr.GetCache().WaitForCacheSync(r.Context()) {
			return errors.New("caches are not synced yet")
		}
		return nil
	}
}
