package request

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/cluster/apply"
	"github.com/dynamo-operator/dynamo-operator/internal/cluster/observe"
	"github.com/dynamo-operator/dynamo-operator/internal/operator/config"
	"github.com/dynamo-operator/dynamo-operator/internal/operator/controller"
)

// Setup adds the controller of DynamoGraphDeploymentRequests: their Jobs and
// ConfigMaps, and the graphs made for them.
func Setup(ctx context.Context, d *controller.Deps) error {
	children := Children()
	if err := d.Index(ctx, children...); err != nil {
		return err
	}
	kept, err := keptByRequests(d)
	if err != nil {
		return err
	}
	kind := &v1alpha1.DynamoGraphDeploymentRequest{}
	recorder := d.GetEventRecorder("dynamographdeploymentrequest")
	b := d.NewController(kind).
		Watches(&v1alpha1.DynamoGraphDeployment{}, handler.EnqueueRequestsFromMapFunc(OfGraph(d.GetClient()))).
		WatchesRawSource(source.Kind(kept, client.Object(&corev1.ConfigMap{}), controller.EnqueueOwner(d, kind), predicate.ResourceVersionChangedPredicate{}))
	for _, c := range children {
		b = b.Watches(c.Object, controller.EnqueueOwner(d, kind), builder.WithPredicates(predicate.ResourceVersionChangedPredicate{}))
	}
	err = b.Complete(d.Guarded(kind, recorder, reconcile.AsReconciler(d.GetClient(), &Reconciler{
		Client: d.GetClient(),
		World: observe.Requests{
			Facts: d.Facts, Kept: observe.Outlined{Reader: kept, Direct: d.GetAPIReader()}, ClusterWide: d.Config.ClusterWide(), Children: observe.New(d.GetClient(), children...),
			Reviews: d.GetClient(), Policy: d.Config.Tenancy.PolicyName(config.PolicyRequestNamespace),
		},
		Applier:   d.Applier,
		Events:    recorder,
		Clock:     clock.RealClock{},
		Policy:    d.Config.Requests(),
		Profiling: d.Config.Profiling(),
	})))
	if err != nil {
		return fmt.Errorf("watch requests: %w", err)
	}
	return nil
}

// keptByRequests tells of the ConfigMaps of requests; what is in them is read
// when a reconcile needs it. Those of graphs are selected
// by another label, and one informer knows one selector.
func keptByRequests(d *controller.Deps) (cache.Cache, error) {
	kept, err := d.NewCache(map[client.Object]cache.ByObject{
		&corev1.ConfigMap{}: {Label: controller.Labelled(v1alpha1.LabelRequestName), Transform: apply.TrimConfigMap},
	})
	if err != nil {
		return nil, fmt.Errorf("hold the ConfigMaps of requests: %w", err)
	}
	return kept, d.Add(controller.Everywhere{Cache: kept})
}
