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
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/dynamo-operator/dynamo-operator/internal/config"
	"github.com/dynamo-operator/dynamo-operator/internal/observe"
)

// watch starts a reconciler for a kind and wakes it for changes of its children.
func watch(mgr manager.Manager, kind client.Object, children []observe.Child, r reconcile.Reconciler) error {
	b := ctrl.NewControllerManagedBy(mgr).For(kind, builder.WithPredicates(intent()))
	for _, c := range children {
		b = b.Owns(c.Object, builder.WithPredicates(predicate.ResourceVersionChangedPredicate{}))
	}
	if err := b.Complete(r); err != nil {
		return fmt.Errorf("watch %T: %w", kind, err)
	}
	return nil
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
