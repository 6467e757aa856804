package controller

import (
	"context"
	"reflect"

	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/recorder"

	"github.com/dynamo-operator/dynamo-operator/internal/cluster/apply"
	"github.com/dynamo-operator/dynamo-operator/internal/cluster/etcd"
	"github.com/dynamo-operator/dynamo-operator/internal/cluster/observe"
	"github.com/dynamo-operator/dynamo-operator/internal/operator/config"
	"github.com/dynamo-operator/dynamo-operator/internal/operator/event"
	"github.com/dynamo-operator/dynamo-operator/internal/operator/metric"
	"github.com/dynamo-operator/dynamo-operator/internal/operator/namespacescope"
	"github.com/dynamo-operator/dynamo-operator/internal/operator/queue"
	"github.com/dynamo-operator/dynamo-operator/internal/operator/tracing"
)

// Deps are what the controllers of all kinds are set up from.
type Deps struct {
	manager.Manager
	Config  config.Config
	Metrics *metric.Metrics
	Tracer  *tracing.Tracer
	Queues  *queue.Queues
	// Watchdog knows whether controllers still work.
	Watchdog *Watchdog
	// Scope says what the operator may write to.
	Scope   *namespacescope.Scope
	Applier *apply.Applier
	Facts   observe.Facts
	// NewCache makes a cache like the manager's, with other selectors.
	NewCache func(selectors map[client.Object]cache.ByObject) (cache.Cache, error)

	causes map[string]*queue.Causes
	// pods is made for the first controller that needs it.
	pods *observe.Inspector
	// watched are the controllers that take on kinds of optional APIs when those
	// appear.
	watched []*Watched
	indexed map[reflect.Type]bool
	// enforced is made for the first who asks for policies.
	enforced *policies
	// registered is true once graphs and components are indexed by where in etcd
	// they register.
	registered bool
}

// GetEventRecorder is the manager's, for notes that may quote a tenant.
func (d *Deps) GetEventRecorder(name string) recorder.EventRecorder {
	return event.Sanitised(d.Manager.GetEventRecorder(name))
}

// Index prepares the informers for a controller's children. Several controllers
// may have children of one kind.
func (d *Deps) Index(ctx context.Context, children ...observe.Child) error {
	for _, c := range children {
		kind := reflect.TypeOf(c.Object)
		if c.List == nil || d.indexed[kind] {
			continue // watched but not listed, or of two controllers
		}
		if err := observe.Index(ctx, d.GetFieldIndexer(), c); err != nil {
			return err
		}
		if d.indexed == nil {
			d.indexed = map[reflect.Type]bool{}
		}
		d.indexed[kind] = true
	}
	return nil
}

// NewCleanup removes the keys of graphs that find each other by etcd, if the
// operator was told where that is.
func (d *Deps) NewCleanup(ctx context.Context, recorder events.EventRecorder) (Cleanup, error) {
	c := Cleanup{
		Limit: d.Config.Discovery.CleanupDeadline.Duration, Applier: d.Applier, Events: recorder, Clock: clock.RealClock{}, Began: &FirstSeen{},
		Others: observe.Registrations{Cached: d.GetClient(), ClusterWide: d.Config.ClusterWide()},
	}
	if d.Config.Endpoints.Etcd == "" {
		return c, nil
	}
	if !d.registered {
		if err := observe.IndexRegistrations(ctx, d.GetFieldIndexer()); err != nil {
			return c, err
		}
		d.registered = true
	}
	store, err := etcd.New(d.Config.Endpoints.Etcd)
	if err != nil {
		return c, err
	}
	c.Store = store
	return c, nil
}
