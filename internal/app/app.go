// Package app is the composition root: every part of the operator is made here,
// and only here.
package app

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/apply"
	"github.com/dynamo-operator/dynamo-operator/internal/config"
	"github.com/dynamo-operator/dynamo-operator/internal/controller/componentdeployment"
	"github.com/dynamo-operator/dynamo-operator/internal/controller/graphdeployment"
	"github.com/dynamo-operator/dynamo-operator/internal/controller/scalingadapter"
	"github.com/dynamo-operator/dynamo-operator/internal/observe"
	"github.com/dynamo-operator/dynamo-operator/internal/scheme"
	"github.com/dynamo-operator/dynamo-operator/internal/snapshot"
)

// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,verbs=get;create;update

// Run is the operator. It returns when ctx ends or something cannot go on.
func Run(ctx context.Context, cfg config.Config, cluster *rest.Config) error {
	mgr, err := newManager(cfg, cluster)
	if err != nil {
		return err
	}
	if err := addControllers(ctx, mgr, cfg); err != nil {
		return err
	}
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return err
	}
	if err := mgr.AddReadyzCheck("caches", synced(mgr)); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

func newManager(cfg config.Config, cluster *rest.Config) (manager.Manager, error) {
	cluster = rest.CopyConfig(cluster)
	cluster.QPS, cluster.Burst = cfg.Controller.QPS, cfg.Controller.Burst
	cluster.UserAgent = apply.FieldManager
	mgr, err := ctrl.NewManager(cluster, manager.Options{
		Scheme:                        scheme.New(),
		Cache:                         stores(cfg),
		Metrics:                       metricsserver.Options{BindAddress: orOff(cfg.Server.MetricsAddress)},
		HealthProbeBindAddress:        orOff(cfg.Server.HealthAddress),
		LeaderElection:                cfg.Leader.Enabled,
		LeaderElectionID:              "dynamo.nvidia.com",
		LeaderElectionNamespace:       cfg.Leader.Namespace,
		LeaderElectionReleaseOnCancel: true,
		Controller:                    controllerDefaults(cfg),
	})
	if err != nil {
		return nil, fmt.Errorf("set up the manager: %w", err)
	}
	return mgr, nil
}

// stores says what the informers hold. Of Secrets and ConfigMaps, which may be
// many and large, only those that concern us.
func stores(cfg config.Config) cache.Options {
	ofGraphs, err := labels.NewRequirement(v1alpha1.LabelGraphName, selection.Exists, nil)
	if err != nil {
		panic(err) // the label's name is a constant
	}
	options := cache.Options{
		DefaultTransform: apply.Trim,
		ByObject: map[client.Object]cache.ByObject{
			&corev1.Secret{}:    {Field: fields.OneTermEqualSelector("type", string(corev1.SecretTypeDockerConfigJson))},
			&corev1.ConfigMap{}: {Label: labels.NewSelector().Add(*ofGraphs)},
		},
	}
	if cfg.Namespace != "" {
		options.DefaultNamespaces = map[string]cache.Config{cfg.Namespace: {}}
	}
	return options
}

// partly are the kinds of which the informers do not hold all objects.
func partly() []client.Object {
	return []client.Object{&corev1.Secret{}, &corev1.ConfigMap{}}
}

// orOff spells an address that was left empty the way the servers know.
func orOff(address string) string {
	if address == "" {
		return "0"
	}
	return address
}

func addControllers(ctx context.Context, mgr manager.Manager, cfg config.Config) error {
	graphs, components, beneath := graphdeployment.Children(), componentdeployment.Children(), graphdeployment.Beneath()
	if err := observe.Index(ctx, mgr.GetFieldIndexer(), required(append(graphs, components...))...); err != nil {
		return err
	}
	applier, err := apply.New(mgr.GetClient(), mgr.GetAPIReader(), partly()...)
	if err != nil {
		return err
	}
	facts := observe.Facts{Cached: mgr.GetClient(), Direct: mgr.GetAPIReader()}
	platform := cfg.Platform()

	graphKind := observe.Child{Object: &v1alpha1.DynamoGraphDeployment{}, List: &v1alpha1.DynamoGraphDeploymentList{}}
	graphWatch, err := watch(mgr, graphKind, graphs, reconcile.AsReconciler(mgr.GetClient(), &graphdeployment.Reconciler{
		Client: mgr.GetClient(),
		World: graphdeployment.World{
			Children: observe.New(mgr.GetClient(), graphs...),
			Beneath:  observe.New(mgr.GetClient(), beneath...),
			Facts:    facts,
		},
		Applier:  applier,
		Events:   mgr.GetEventRecorder("dynamographdeployment"),
		Clock:    clock.RealClock{},
		Platform: platform,
	}))
	if err != nil {
		return err
	}
	componentKind := observe.Child{Object: &v1alpha1.DynamoComponentDeployment{}, List: &v1alpha1.DynamoComponentDeploymentList{}}
	componentWatch, err := watch(mgr, componentKind, components, reconcile.AsReconciler(mgr.GetClient(), &componentdeployment.Reconciler{
		Client:   mgr.GetClient(),
		Observer: observe.New(mgr.GetClient(), components...),
		Facts:    facts,
		Applier:  applier,
		Events:   mgr.GetEventRecorder("dynamocomponentdeployment"),
		Clock:    clock.RealClock{},
		Platform: platform,
	}))
	if err != nil {
		return err
	}
	err = ctrl.NewControllerManagedBy(mgr).
		For(&v1alpha1.DynamoGraphDeploymentScalingAdapter{}, builder.WithPredicates(intent())).
		Watches(&v1alpha1.DynamoGraphDeployment{}, handler.EnqueueRequestsFromMapFunc(scalingadapter.OfGraph(mgr.GetClient()))).
		Complete(reconcile.AsReconciler(mgr.GetClient(), &scalingadapter.Reconciler{Client: mgr.GetClient(), Clock: clock.RealClock{}}))
	if err != nil {
		return fmt.Errorf("watch scaling adapters: %w", err)
	}
	graphWatch.beneath = beneath
	graphWatch.around = []observe.Child{{Object: observe.Queue(), API: snapshot.APIKAI}}
	return watchGuests(mgr, graphWatch, componentWatch)
}
