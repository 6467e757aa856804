package operator

import (
	"context"
	"errors"
	"net/http"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/dynamo-operator/dynamo-operator/internal/operator/config"
	"github.com/dynamo-operator/dynamo-operator/internal/operator/controller"
)

// addProbes serves /healthz and /readyz. Webhooks add a check of their own.
func addProbes(ctx context.Context, mgr manager.Manager, dog *controller.Watchdog, stored *storedVersions) error {
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return err
	}
	if err := mgr.AddHealthzCheck("workers", working(mgr, dog)); err != nil {
		return err
	}
	if err := mgr.AddReadyzCheck("running", func(*http.Request) error { return ctx.Err() }); err != nil {
		return err
	}
	return mgr.AddReadyzCheck("caches", synced(mgr, stored))
}

func newWatchdog(cfg config.Controller) *controller.Watchdog {
	return &controller.Watchdog{Clock: clock.RealClock{}, Deadline: cfg.Timeout.Duration, Stuck: cfg.Watchdog.Stuck.Duration, Idle: cfg.Watchdog.Idle.Duration}
}

// working is alive as long as controllers work. The log says why it is not: a
// probe's answer is lost with the container that is restarted for it.
func working(mgr manager.Manager, dog *controller.Watchdog) healthz.Checker {
	return func(*http.Request) error {
		err := dog.Check(leads(mgr))
		if err != nil {
			mgr.GetLogger().Error(err, "liveness probe failed")
		}
		return err
	}
}

// synced is ready once every informer has its first list: from then on what the
// operator decides is decided on the whole. Where that list needs this very
// replica to convert what is stored as v1beta1, it has to be asked before.
func synced(mgr manager.Manager, stored *storedVersions) healthz.Checker {
	return func(r *http.Request) error {
		if stored.needConversion() {
			return nil
		}
		if !mgr.GetCache().WaitForCacheSync(r.Context()) {
			return errors.New("caches are not synced yet")
		}
		return nil
	}
}
