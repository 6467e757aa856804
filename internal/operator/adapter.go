package operator

import (
	"context"
	"fmt"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/cluster/observe"
	"github.com/dynamo-operator/dynamo-operator/internal/operator/controller/scalingadapter"
)

func addAdapters(ctx context.Context, p *deps) error {
	if err := observe.IndexAdapters(ctx, p.GetFieldIndexer()); err != nil {
		return err
	}
	kind := &v1alpha1.DynamoGraphDeploymentScalingAdapter{}
	ofGraph := handler.EnqueueRequestsFromMapFunc(observe.AdaptersOf(p.GetClient()))
	reconciler := reconcile.AsReconciler(p.GetClient(), &scalingadapter.Reconciler{Client: p.GetClient(), Clock: clock.RealClock{}})
	err := p.controllerOf(kind).
		Watches(&v1alpha1.DynamoGraphDeployment{}, p.batched(kind, ofGraph)).
		Complete(p.guarded(kind, p.GetEventRecorder("dgdscalingadapter"), reconciler))
	if err != nil {
		return fmt.Errorf("watch scaling adapters: %w", err)
	}
	return nil
}
