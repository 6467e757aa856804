// Package app is the composition root: every part of the operator is made here,
// and only here. Each controller, server and probe has a file of its own.
package app

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/dynamo-operator/dynamo-operator/internal/apply"
	"github.com/dynamo-operator/dynamo-operator/internal/certificate"
	"github.com/dynamo-operator/dynamo-operator/internal/config"
	"github.com/dynamo-operator/dynamo-operator/internal/metric"
	"github.com/dynamo-operator/dynamo-operator/internal/queue"
	"github.com/dynamo-operator/dynamo-operator/internal/scheme"
	"github.com/dynamo-operator/dynamo-operator/internal/tracing"
	"github.com/dynamo-operator/dynamo-operator/internal/version"
)

// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,verbs=create,namespace=dynamo-system,roleName=dynamo-operator-leader-election
// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,resourceNames=dynamo.nvidia.com,verbs=get;update,namespace=dynamo-system,roleName=dynamo-operator-leader-election
// +kubebuilder:rbac:groups="",resources=events,verbs=create,namespace=dynamo-system,roleName=dynamo-operator-leader-election

// Run is the operator. It returns when ctx ends or something cannot go on.
func Run(ctx context.Context, cfg config.Config, cluster *rest.Config) error {
	counted, err := metric.New(metrics.Registry)
	if err != nil {
		return err
	}
	tracer, err := newTracer(ctx, cfg.Tracing)
	if err != nil {
		return err
	}
	defer flush(tracer)
	keeper := newKeeper(cfg)
	cluster = connection(cfg, cluster, counted.Transport, tracing.Transport)
	scope, err := newScope(cfg, cluster)
	if err != nil {
		return err
	}
	mgr, err := newManager(cfg, cluster, scope, keeper)
	if err != nil {
		return err
	}
	p := &parts{Manager: mgr, config: cfg, metrics: counted, tracer: tracer, lines: &queue.Lines{}, scope: scope, watchdog: newWatchdog(cfg.Controller)}
	if err := p.addControllers(ctx); err != nil {
		return err
	}
	if err := addProbes(ctx, mgr, p.watchdog); err != nil {
		return err
	}
	finish, err := addAdmission(ctx, mgr, cluster, cfg, keeper, counted)
	if err != nil {
		return err
	}
	defer finish()
	work, end := drained(ctx, mgr, p.lines, cfg.Shutdown.Drain.Duration)
	defer end()
	scope.bound(work, cfg.Shutdown.Grace.Duration)
	return errors.Join(mgr.Start(work), scope.release(ctx))
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
		ctrl.Log.Error(err, "send the last traces")
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
func newManager(cfg config.Config, cluster *rest.Config, scope *scope, keeper *certificate.Keeper) (manager.Manager, error) {
	guarded := rest.CopyConfig(cluster)
	guarded.Wrap(scope.writer.Transport)
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
		// Passes that have begun are waited for until the scope ends them.
		GracefulShutdownTimeout: new(cfg.Shutdown.Stop()),
		LeaseDuration:           &cfg.Leader.LeaseDuration.Duration,
		RenewDeadline:           &cfg.Leader.RenewDeadline.Duration,
		RetryPeriod:             &cfg.Leader.RetryPeriod.Duration,
		Controller:              controllerDefaults(cfg),
	}
	if scope.election != nil {
		options.LeaderElectionResourceLockInterface = scope.election
	}
	mgr, err := ctrl.NewManager(guarded, options)
	if err != nil {
		return nil, fmt.Errorf("set up the manager: %w", err)
	}
	scope.report(mgr)
	return mgr, nil
}
