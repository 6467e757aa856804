package failover

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/dynamo-operator/dynamo-operator/internal/cluster/observe"
	"github.com/dynamo-operator/dynamo-operator/internal/core/cohort"
	"github.com/dynamo-operator/dynamo-operator/internal/operator/controller"
)

// Setup adds the controller of engines that ended, where the installation wants their
// cohorts deleted.
func Setup(_ context.Context, d *controller.Deps) error {
	if !d.Config.Failover.DeleteCohorts {
		return nil
	}
	ended := predicate.NewPredicateFuncs(func(object client.Object) bool {
		pod, ok := object.(*corev1.Pod)
		return ok && cohort.Ended(pod)
	})
	err := ctrl.NewControllerManagedBy(d).Named("failover").
		Watches(&corev1.Pod{}, &handler.EnqueueRequestForObject{}, builder.WithPredicates(ended)).
		Complete(&Reconciler{
			Cohorts: observe.Cohorts{Cached: d.GetClient(), Direct: d.GetAPIReader()},
			Applier: d.Applier, Clock: clock.RealClock{}, Covers: d.Config.Covers,
		})
	if err != nil {
		return fmt.Errorf("watch engines that stand by for each other: %w", err)
	}
	return nil
}
