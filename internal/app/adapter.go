package app

import (
	"context"
	"fmt"

	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/controller/scalingadapter"
)

func addAdapters(_ context.Context, p *parts) error {
	err := ctrl.NewControllerManagedBy(p).
		For(&v1alpha1.DynamoGraphDeploymentScalingAdapter{}, builder.WithPredicates(intent())).
		Watches(&v1alpha1.DynamoGraphDeployment{}, handler.EnqueueRequestsFromMapFunc(scalingadapter.OfGraph(p.GetClient()))).
		Complete(reconcile.AsReconciler(p.GetClient(), &scalingadapter.Reconciler{Client: p.GetClient(), Clock: clock.RealClock{}}))
	if err != nil {
		return fmt.Errorf("watch scaling adapters: %w", err)
	}
	return nil
}
