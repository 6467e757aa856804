package app

import (
	"context"
	"fmt"
	"reflect"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/recorder"

	"github.com/dynamo-operator/dynamo-operator/internal/apply"
	"github.com/dynamo-operator/dynamo-operator/internal/config"
	"github.com/dynamo-operator/dynamo-operator/internal/controller"
	"github.com/dynamo-operator/dynamo-operator/internal/event"
	"github.com/dynamo-operator/dynamo-operator/internal/metric"
	"github.com/dynamo-operator/dynamo-operator/internal/observe"
	"github.com/dynamo-operator/dynamo-operator/internal/queue"
	"github.com/dynamo-operator/dynamo-operator/internal/snapshot"
	"github.com/dynamo-operator/dynamo-operator/internal/tracing"
)

// controllers are all that the operator runs, a function and a line each. Guests
// follow optional APIs for those before them.
var controllers = []func(context.Context, *parts) error{
	addGraphs,
	addComponents,
	addAdapters,
	addModels,
	addRequests,
	addAccounts,
	addPolicies,
	addGuests,
	addInventory,
	addTenancy,
}

// parts are what controllers are made from.
type parts struct {
	manager.Manager
	scope   *scope
	config  config.Config
	metrics *metric.Metrics
	tracer  *tracing.Tracer
	lines   *queue.Lines
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
func (p *parts) GetEventRecorder(name string) recorder.EventRecorder {
	return event.Sanitised(p.Manager.GetEventRecorder(name))
}

func (p *parts) addControllers(ctx context.Context) (err error) {
	if p.applier, err = apply.New(apply.Lean(p.GetClient()), p.GetAPIReader(), partly()...); err != nil {
		return err
	}
	p.facts = observe.Facts{Cached: p.GetClient(), Direct: p.GetAPIReader(), Registries: observe.NewRegistries(), Served: &atomic.Pointer[snapshot.Capabilities]{}}
	if err := p.forgetSecrets(ctx); err != nil {
		return err
	}
	p.indexed, p.causes = map[reflect.Type]bool{}, map[string]*queue.Causes{}
	for _, add := range controllers {
		if err := add(ctx, p); err != nil {
			return err
		}
	}
	return nil
}

// forgetSecrets drops what is remembered of pull secrets that are deleted.
func (p *parts) forgetSecrets(ctx context.Context) error {
	informer, err := p.GetCache().GetInformer(ctx, &corev1.Secret{})
	if err != nil {
		return fmt.Errorf("follow pull secrets: %w", err)
	}
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{DeleteFunc: func(gone any) {
		if last, missed := gone.(toolscache.DeletedFinalStateUnknown); missed {
			gone = last.Obj
		}
		if secret, ok := gone.(metav1.Object); ok {
			p.facts.Registries.Forget(secret.GetUID())
		}
	}})
	return err
}

// index prepares the informers for a controller's children. Several controllers
// may have children of one kind.
func (p *parts) index(ctx context.Context, children ...observe.Child) error {
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
