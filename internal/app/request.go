package app

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/apply"
	"github.com/dynamo-operator/dynamo-operator/internal/config"
	"github.com/dynamo-operator/dynamo-operator/internal/controller/request"
	"github.com/dynamo-operator/dynamo-operator/internal/observe"
)

func addRequests(ctx context.Context, p *parts) error {
	children := request.Children()
	if err := p.index(ctx, children...); err != nil {
		return err
	}
	kept, err := keptByRequests(p)
	if err != nil {
		return err
	}
	kind := client.Object(&v1alpha1.DynamoGraphDeploymentRequest{})
	recorder := p.GetEventRecorder("dynamographdeploymentrequest")
	b := p.controllerOf(kind).
		Watches(&v1alpha1.DynamoGraphDeployment{}, handler.EnqueueRequestsFromMapFunc(request.OfGraph(p.GetClient()))).
		WatchesRawSource(source.Kind(kept, client.Object(&corev1.ConfigMap{}), ownerHandler(p, kind), predicate.ResourceVersionChangedPredicate{}))
	for _, c := range children {
		b = b.Watches(c.Object, ownerHandler(p, kind), builder.WithPredicates(predicate.ResourceVersionChangedPredicate{}))
	}
	err = b.Complete(p.guarded(kind, recorder, reconcile.AsReconciler(p.GetClient(), &request.Reconciler{
		Client: p.GetClient(),
		World: observe.Requests{
			Facts: p.facts, Kept: observe.Outlined{Reader: kept, Direct: p.GetAPIReader()}, ClusterWide: p.config.ClusterWide(), Children: observe.New(p.GetClient(), children...),
			Reviews: p.GetClient(), Policy: p.config.Tenancy.PolicyName(config.PolicyRequestNamespace),
		},
		Applier:   p.applier,
		Events:    recorder,
		Clock:     clock.RealClock{},
		Policy:    p.config.Requests(),
		Profiling: p.config.Profiling(),
	})))
	if err != nil {
		return fmt.Errorf("watch requests: %w", err)
	}
	return nil
}

// keptByRequests tells of the ConfigMaps of requests; what is in them is read
// when a pass needs it. Those of graphs are selected
// by another label, and one informer knows one selector.
func keptByRequests(p *parts) (cache.Cache, error) {
	named, err := labels.NewRequirement(v1alpha1.LabelRequestName, selection.Exists, nil)
	if err != nil {
		return nil, err
	}
	options := stores(p.config)
	options.Scheme, options.Mapper, options.HTTPClient = p.GetScheme(), p.GetRESTMapper(), p.GetHTTPClient()
	options.ByObject = map[client.Object]cache.ByObject{
		&corev1.ConfigMap{}: {Label: labels.NewSelector().Add(*named), Transform: apply.TrimConfigMap},
	}
	kept, err := newCache(p.GetConfig(), options)
	if err != nil {
		return nil, fmt.Errorf("hold the ConfigMaps of requests: %w", err)
	}
	return kept, p.Add(everywhere{kept})
}

// everywhere runs on replicas that do not lead, too: their controllers wait for
// it to be ready when their turn comes.
type everywhere struct{ cache.Cache }

// NeedLeaderElection is false.
func (everywhere) NeedLeaderElection() bool { return false }
