package checkpoint

import (
	"context"
	"fmt"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/operator/controller"
)

// Setup adds the controller of DynamoCheckpoints.
func Setup(_ context.Context, d *controller.Deps) error {
	kind := &v1alpha1.DynamoCheckpoint{}
	reconciler := reconcile.AsReconciler(d.GetClient(), &Reconciler{Client: d.GetClient(), Applier: d.Applier, Clock: clock.RealClock{}})
	if err := d.NewController(kind).Complete(d.Guarded(kind, d.GetEventRecorder("dynamocheckpoint"), reconciler)); err != nil {
		return fmt.Errorf("watch checkpoints: %w", err)
	}
	return nil
}
