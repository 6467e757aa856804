package operator

import (
	"context"
	"reflect"
	"sync/atomic"

	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/recorder"

	"github.com/dynamo-operator/dynamo-operator/internal/cluster/apply"
	"github.com/dynamo-operator/dynamo-operator/internal/cluster/observe"
	"github.com/dynamo-operator/dynamo-operator/internal/core/snapshot"
	"github.com/dynamo-operator/dynamo-operator/internal/operator/config"
	"github.com/dynamo-operator/dynamo-operator/internal/operator/controller"
	"github.com/dynamo-operator/dynamo-operator/internal/operator/event"
	"github.com/dynamo-operator/dynamo-operator/internal/operator/metric"
	"github.com/dynamo-operator/dynamo-operator/internal/operator/queue"
	"github.com/dynamo-operator/dynamo-operator/internal/operator/tracing"
)

// controllers are all that the operator runs, a function and a line each. Guests
// follow optional APIs for those before them.
var controllers = []func(context.Context, *deps) error{
	addGraphs,
	addComponents,
	addAdapters,
	addModels,
	addRequests,
	addAccounts,
	addPolicies,
	addOptionalAPIs,
	addInventory,
	addTenancy,
}

// deps are what controllers are made from.
type deps struct {
	manager.Manager
	scope   *scope
	config  config.Config
	metrics *metric.Metrics
	tracer  *tracing.Tracer
	queues  *queue.Queues
	// watchdog knows whether controllers still work.
	watchdog *controller.Watchdog
	causes   map[string]*queue.Causes
	applier  *apply.Applier
	facts    observe.Facts
	// pods is made for the first controller that needs it.
	pods *observe.Inspector
	// watched are the controllers that take on kinds of optional APIs when those
	// appear.
	watched []*watched
	indexed map[reflect.Type]bool
	// enforced is made for the first who asks for policies.
	enforced *policies
	// registered is true once graphs and components are indexed by where in etcd
	// they register.
	registered bool
}

// GetEventRecorder is the manager's, for notes that may quote a tenant.
func (p *deps) GetEventRecorder(name string) recorder.EventRecorder {
	return event.Sanitised(p.Manager.GetEventRecorder(name))
}

func (p *deps) addControllers(ctx context.Context) (err error) {
	if p.applier, err = apply.New(apply.ApplyWithoutResponse(p.GetClient()), p.GetAPIReader(), partiallyCached()...); err != nil {
		return err
	}
	p.facts = observe.Facts{Cached: p.GetClient(), Direct: p.GetAPIReader(), Served: &atomic.Pointer[snapshot.Capabilities]{}}
	p.indexed, p.causes = map[reflect.Type]bool{}, map[string]*queue.Causes{}
	for _, add := range controllers {
		if err := add(ctx, p); err != nil {
			return err
		}
	}
	return nil
}

// index prepares the informers for a controller's children. Several controllers
// may have children of one kind.
func (p *deps) index(ctx context.Context, children ...observe.Child) error {
	for _, c := range children {
		kind := reflect.TypeOf(c.Object)
		if c.List == nil || p.indexed[kind] {
			continue // watched but not listed, or of two controllers
		}
		if err := observe.Index(ctx, p.GetFieldIndexer(), c); err != nil {
			return err
		}
		p.indexed[kind] = true
	}
	return nil
}
