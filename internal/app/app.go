// Package app is the composition root: every part of the operator is made here,
// and only here.
package app

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/apply"
	"github.com/dynamo-operator/dynamo-operator/internal/config"
	"github.com/dynamo-operator/dynamo-operator/internal/controller/componentdeployment"
	"github.com/dynamo-operator/dynamo-operator/internal/controller/graphdeployment"
	"github.com/dynamo-operator/dynamo-operator/internal/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/observe"
	"github.com/dynamo-operator/dynamo-operator/internal/render/pod"
)

// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,verbs=get;create;update

// Scheme knows every kind that the operator reads or writes.
func Scheme() *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(s); err != nil {
			panic(err) // two kinds of one name: a mistake in the program
		}
	}
	return s
}

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
	stores := cache.Options{DefaultTransform: apply.Trim}
	if cfg.Namespace != "" {
		stores.DefaultNamespaces = map[string]cache.Config{cfg.Namespace: {}}
	}
	mgr, err := ctrl.NewManager(cluster, manager.Options{
		Scheme:                        Scheme(),
		Cache:                         stores,
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

// orOff spells an address that was left empty the way the servers know.
func orOff(address string) string {
	if address == "" {
		return "0"
	}
	return address
}

func addControllers(ctx context.Context, mgr manager.Manager, cfg config.Config) error {
	children := append(graphdeployment.Children(), componentdeployment.Children()...)
	if err := observe.Index(ctx, mgr.GetFieldIndexer(), children...); err != nil {
		return err
	}
	applier := apply.New(mgr.GetClient(), mgr.GetAPIReader())
	defaults := graph.Defaults{Discovery: cfg.Discovery.Backend}

	graphs := &graphdeployment.Reconciler{
		Client:   mgr.GetClient(),
		Observer: observe.New(mgr.GetClient(), graphdeployment.Children()...),
		Applier:  applier,
		Events:   mgr.GetEventRecorder("dynamographdeployment"),
		Clock:    clock.RealClock{},
		Defaults: defaults,
	}
	if err := watch(mgr, &v1alpha1.DynamoGraphDeployment{}, graphdeployment.Children(),
		reconcile.AsReconciler(mgr.GetClient(), graphs)); err != nil {
		return err
	}

	components := &componentdeployment.Reconciler{
		Client:   mgr.GetClient(),
		Observer: observe.New(mgr.GetClient(), componentdeployment.Children()...),
		Applier:  applier,
		Events:   mgr.GetEventRecorder("dynamocomponentdeployment"),
		Clock:    clock.RealClock{},
		Defaults: defaults,
		Platform: pod.Platform{
			NATS: cfg.Endpoints.NATS, Etcd: cfg.Endpoints.Etcd,
			ModelExpress: cfg.Endpoints.ModelExpress, Prometheus: cfg.Endpoints.Prometheus,
		},
	}
	return watch(mgr, &v1alpha1.DynamoComponentDeployment{}, componentdeployment.Children(),
		reconcile.AsReconciler(mgr.GetClient(), components))
}
