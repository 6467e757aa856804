package scalingadapter

import (
	"context"
	"fmt"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/cluster/observe"
	"github.com/dynamo-operator/dynamo-operator/internal/operator/controller"
)

// Setup adds the controller of DynamoGraphDeploymentScalingAdapters.
func Setup(ctx context.Context, d *controller.Deps) error {
	if err := observe.IndexAdapters(ctx, d.GetFieldIndexer()); err != nil {
		return err
	}
	kind := &v1alpha1.DynamoGraphDeploymentScalingAdapter{}
	ofGraph := handler.EnqueueRequestsFromMapFunc(observe.AdaptersOf(d.GetClient()))
	reconciler := reconcile.AsReconciler(d.GetClient(), &Reconciler{Client: d.GetClient(), Clock: clock.RealClock{}})
	err := d.NewController(kind).
		Watches(&v1alpha1.DynamoGraphDeployment{}, d.Batched(kind, ofGraph)).
		Complete(d.Guarded(kind, d.GetEventRecorder("dgdscalingadapter"), reconciler))
	if err != nil {
		return fmt.Errorf("watch scaling adapters: %w", err)
	}
	return nil
}
