package account

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/render"
	"github.com/dynamo-operator/dynamo-operator/internal/operator/controller"
)

// Setup removes the accounts that graphs share when the last one goes. A
// graph, or a component alone, that lost its account to that, or to somebody,
// makes it again.
func Setup(_ context.Context, d *controller.Deps) error {
	roles := d.Config.Platform().Roles
	shared := render.SharedAccounts(roles)
	if len(shared) == 0 {
		return nil // the installation's own
	}
	ours := func(object client.Object) bool {
		return slices.ContainsFunc(shared, func(s render.SharedAccount) bool { return s.Made(object) })
	}
	namespace := handler.EnqueueRequestsFromMapFunc(func(_ context.Context, o client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: o.GetNamespace()}}}
	})
	gone := predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false }, UpdateFunc: func(event.UpdateEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
	// What is there when the operator starts may have been left by an earlier one.
	there := predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return ours(e.Object) }, UpdateFunc: func(event.UpdateEvent) bool { return false },
		DeleteFunc: func(event.DeleteEvent) bool { return false }, GenericFunc: func(event.GenericEvent) bool { return false },
	}
	err := ctrl.NewControllerManagedBy(d).Named("accounts").
		Watches(&v1alpha1.DynamoGraphDeployment{}, namespace, builder.WithPredicates(gone)).
		Watches(&v1alpha1.DynamoComponentDeployment{}, namespace, builder.WithPredicates(gone)).
		Watches(&corev1.ServiceAccount{}, namespace, builder.WithPredicates(there)).
		Complete(&Reconciler{Cached: d.GetClient(), Direct: d.GetAPIReader(), Applier: d.Applier, Roles: roles, Covers: d.Config.Covers})
	if err != nil {
		return fmt.Errorf("watch accounts: %w", err)
	}
	lost := predicate.And[client.Object](gone, predicate.NewPredicateFuncs(ours))
	return d.WatchForOwners(lost, &corev1.ServiceAccount{}, &rbacv1.RoleBinding{})
}
