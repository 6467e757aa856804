package topology

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/dynamo-operator/dynamo-operator/internal/cluster/observe"
	"github.com/dynamo-operator/dynamo-operator/internal/core/topologylabel"
	"github.com/dynamo-operator/dynamo-operator/internal/operator/controller"
)

// Setup adds the controller of pods that ask for labels, where the installation shows
// any.
func Setup(_ context.Context, d *controller.Deps) error {
	shown := d.Config.Topology.NodeLabels
	if len(shown) == 0 {
		return nil
	}
	asking := predicate.NewPredicateFuncs(func(object client.Object) bool {
		pod, ok := object.(*corev1.Pod)
		if !ok {
			return false
		}
		_, asks := topologylabel.Asks(pod)
		return asks
	})
	err := ctrl.NewControllerManagedBy(d).Named("topology").
		Watches(&corev1.Pod{}, &handler.EnqueueRequestForObject{}, builder.WithPredicates(asking)).
		Complete(&Reconciler{
			Placement: observe.Placement{Cached: d.GetClient(), Direct: d.GetAPIReader()},
			Applier:   d.Applier, Shown: shown, Covers: d.Config.Covers,
		})
	if err != nil {
		return fmt.Errorf("watch pods that ask for labels: %w", err)
	}
	return nil
}
