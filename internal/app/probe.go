package app

import (
	"context"
	"errors"
	"net/http"

	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// addProbes serves /healthz and /readyz. Webhooks add a check of their own.
func addProbes(ctx context.Context, mgr manager.Manager) error {
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return err
	}
	if err := mgr.AddReadyzCheck("running", func(*http.Request) error { return ctx.Err() }); err != nil {
		return err
	}
	return mgr.AddReadyzCheck("caches", synced(mgr))
}

// synced is ready once every informer has its first list: from then on what the
// operator decides is decided on the whole.
func synced(mgr manager.Manager) healthz.Checker {
	return func(r *http.Request) error {
		if !mgr.GetCache().WaitForCacheSync(r.Context()) {
			return errors.New("caches are not synced yet")
		}
		return nil
	}
}
