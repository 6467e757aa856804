package scalingadapter

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/cluster/observe"
	"github.com/dynamo-operator/dynamo-operator/internal/operator/controller"
)

// ending lets through pods that begin to end, and those that are gone.
var ending = predicate.Funcs{
	CreateFunc: func(event.CreateEvent) bool { return false },
	UpdateFunc: func(e event.UpdateEvent) bool {
		return e.ObjectOld.GetDeletionTimestamp() == nil && e.ObjectNew.GetDeletionTimestamp() != nil
	},
	GenericFunc: func(event.GenericEvent) bool { return false },
}

// Setup adds the controller of DynamoGraphDeploymentScalingAdapters.
func Setup(ctx context.Context, d *controller.Deps) error {
	if err := observe.IndexAdapters(ctx, d.GetFieldIndexer()); err != nil {
		return err
	}
	if _, err := d.Inspector(ctx); err != nil { // for its index of pods
		return err
	}
	kind := &v1alpha1.DynamoGraphDeploymentScalingAdapter{}
	ofGraph := handler.EnqueueRequestsFromMapFunc(observe.AdaptersOf(d.GetClient()))
	ofPod := handler.EnqueueRequestsFromMapFunc(observe.AdaptersOfPod(d.GetClient()))
	reconciler := reconcile.AsReconciler(d.GetClient(), &Reconciler{Client: d.GetClient(), Facts: observe.Facts{Cached: d.GetClient()}, Clock: clock.RealClock{}})
	err := d.NewController(kind).
		Watches(&v1alpha1.DynamoGraphDeployment{}, d.Batched(kind, ofGraph)).
		Watches(&corev1.Pod{}, d.Batched(kind, ofPod), builder.WithPredicates(ending)).
		Complete(d.Guarded(kind, d.GetEventRecorder("dgdscalingadapter"), reconciler))
	if err != nil {
		return fmt.Errorf("watch scaling adapters: %w", err)
	}
	return nil
}
