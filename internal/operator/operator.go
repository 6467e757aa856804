// Package operator wires the operator together: manager, caches, servers, probes
// and controllers. Each controller is set up in its own folder.
package operator

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/dynamo-operator/dynamo-operator/internal/cluster/apply"
	"github.com/dynamo-operator/dynamo-operator/internal/cluster/observe"
	"github.com/dynamo-operator/dynamo-operator/internal/cluster/scheme"
	"github.com/dynamo-operator/dynamo-operator/internal/core/snapshot"
	"github.com/dynamo-operator/dynamo-operator/internal/core/version"
	"github.com/dynamo-operator/dynamo-operator/internal/operator/certificate"
	"github.com/dynamo-operator/dynamo-operator/internal/operator/config"
	"github.com/dynamo-operator/dynamo-operator/internal/operator/controller"
	"github.com/dynamo-operator/dynamo-operator/internal/operator/metric"
	"github.com/dynamo-operator/dynamo-operator/internal/operator/namespacescope"
	"github.com/dynamo-operator/dynamo-operator/internal/operator/queue"
	"github.com/dynamo-operator/dynamo-operator/internal/operator/tracing"
)

// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,verbs=create,namespace=dynamo-system,roleName=dynamo-operator-leader-election
// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,resourceNames=dynamo.nvidia.com,verbs=get;update,namespace=dynamo-system,roleName=dynamo-operator-leader-election
// +kubebuilder:rbac:groups="",resources=events,verbs=create,namespace=dynamo-system,roleName=dynamo-operator-leader-election

// Run is the operator. It returns when ctx ends or something cannot go on.
func Run(ctx context.Context, cfg config.Config, cluster *rest.Config) error {
	counted := metric.New(metrics.Registry)
	tracer, err := newTracer(ctx, cfg.Tracing)
	if err != nil {
		return err
	}
	defer flush(tracer)
	keeper := newKeeper(cfg)
	cluster = connection(cfg, cluster, counted.Transport, tracing.Transport)
	scope, err := namespacescope.NewScope(cfg, cluster)
	if err != nil {
		return err
	}
	mgr, err := newManager(cfg, cluster, scope, keeper)
	if err != nil {
		return err
	}
	applier, err := apply.New(apply.ApplyWithoutResponse(mgr.GetClient()), mgr.GetAPIReader(), partiallyCached()...)
	if err != nil {
		return err
	}
	d := &controller.Deps{
		Manager: mgr, Config: cfg, Metrics: counted, Tracer: tracer, Queues: &queue.Queues{}, Scope: scope, Watchdog: newWatchdog(cfg.Controller),
		Applier: applier, NewCache: func(selectors map[client.Object]cache.ByObject) (cache.Cache, error) {
			return cacheLike(mgr, cfg, selectors)
		},
		Facts: observe.Facts{Cached: mgr.GetClient(), Direct: mgr.GetAPIReader(), Registries: observe.NewRegistries(), Served: &atomic.Pointer[snapshot.Capabilities]{}, Devices: &atomic.Bool{}},
	}
	if err := setUpControllers(ctx, d); err != nil {
		return err
	}
	stored := &storedVersions{}
	if err := addProbes(ctx, mgr, d.Watchdog, stored); err != nil {
		return err
	}
	finish, err := addAdmission(ctx, mgr, cluster, cfg, keeper, d.Facts.Capabilities, counted, stored)
	if err != nil {
		return err
	}
	defer finish()
	work, end := drained(ctx, mgr, d.Queues, cfg.Shutdown.Drain.Duration)
	defer end()
	scope.Bound(work, cfg.Shutdown.Grace.Duration)
	return errors.Join(mgr.Start(work), scope.Release(ctx))
}

func newTracer(ctx context.Context, cfg config.Tracing) (*tracing.Tracer, error) {
	if cfg.Endpoint == "" {
		return tracing.Off(), nil
	}
	return tracing.To(ctx, cfg.Endpoint, cfg.Ratio, version.String())
}

// flush sends the last traces, without holding up the end for a collector that
// is gone.
func flush(tracer *tracing.Tracer) {
	ctx, cancel := context.WithTimeout(context.Background(), config.FlushTimeout)
	defer cancel()
	if err := tracer.Stop(ctx); err != nil {
		ctrl.Log.Error(err, "trace flush failed")
	}
}

// connection is how the operator talks to the API server.
func connection(cfg config.Config, cluster *rest.Config, around ...transport.WrapperFunc) *rest.Config {
	cluster = rest.CopyConfig(cluster)
	cluster.QPS, cluster.Burst = cfg.Controller.QPS, cfg.Controller.Burst
	cluster.UserAgent = apply.FieldManager
	for _, wrap := range around {
		cluster.Wrap(wrap)
	}
	return cluster
}

// newManager makes what runs the controllers. What they write goes through the
// scope's writer.
func newManager(cfg config.Config, cluster *rest.Config, scope *namespacescope.Scope, keeper *certificate.Keeper) (manager.Manager, error) {
	guarded := rest.CopyConfig(cluster)
	guarded.Wrap(scope.Writer.Transport)
	options := manager.Options{
		Scheme:                        scheme.New(),
		Cache:                         stores(cfg),
		NewCache:                      newCache,
		Metrics:                       metricsServer(cfg, keeper),
		HealthProbeBindAddress:        orOff(cfg.Server.HealthAddress),
		PprofBindAddress:              cfg.Server.ProfileAddress,
		LeaderElection:                cfg.Leader.Enabled,
		LeaderElectionID:              cfg.Leader.ID,
		LeaderElectionReleaseOnCancel: cfg.Leader.ReleaseOnStop,
		// Reconciles that have begun are waited for until the scope ends them.
		GracefulShutdownTimeout: new(cfg.Shutdown.Stop()),
		LeaseDuration:           &cfg.Leader.LeaseDuration.Duration,
		RenewDeadline:           &cfg.Leader.RenewDeadline.Duration,
		RetryPeriod:             &cfg.Leader.RetryPeriod.Duration,
		Controller:              controller.ControllerDefaults(cfg),
	}
	if scope.Election != nil {
		options.LeaderElectionResourceLockInterface = scope.Election
	}
	mgr, err := ctrl.NewManager(guarded, options)
	if err != nil {
		return nil, fmt.Errorf("set up the manager: %w", err)
	}
	scope.Report(mgr)
	return mgr, nil
}
