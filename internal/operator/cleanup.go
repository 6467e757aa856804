package operator

import (
	"context"

	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"

	"github.com/dynamo-operator/dynamo-operator/internal/cluster/etcd"
	"github.com/dynamo-operator/dynamo-operator/internal/cluster/observe"
	"github.com/dynamo-operator/dynamo-operator/internal/operator/controller"
)

// cleanup is what removes the keys of graphs that find each other by etcd, if
// the operator was told where that is.
func (p *deps) cleanup(ctx context.Context, recorder events.EventRecorder) (controller.Cleanup, error) {
	f := controller.Cleanup{Limit: p.config.Discovery.CleanupDeadline.Duration, Applier: p.applier, Events: recorder, Clock: clock.RealClock{}, Began: &controller.FirstSeen{},
		Others: observe.Registrations{Cached: p.GetClient(), ClusterWide: p.config.ClusterWide()}}
	if p.config.Endpoints.Etcd == "" {
		return f, nil
	}
	if !p.registered {
		if err := observe.IndexRegistrations(ctx, p.GetFieldIndexer()); err != nil {
			return f, err
		}
		p.registered = true
	}
	store, err := etcd.New(p.config.Endpoints.Etcd)
	if err != nil {
		return f, err
	}
	f.Store = store
	return f, nil
}
