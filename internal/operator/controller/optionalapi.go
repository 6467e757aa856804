package controller

import (
	"context"
	"fmt"
	"slices"
	"sync"

	grovev1alpha1 "github.com/ai-dynamo/grove/operator/api/core/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/cluster/observe"
	"github.com/dynamo-operator/dynamo-operator/internal/core/snapshot"
	"github.com/dynamo-operator/dynamo-operator/internal/core/workload/grove"
)

// optionalAPIs follows the optional APIs: when one appears, its kinds are watched from
// then on and everybody who may have waited for it is woken. No restart.
type optionalAPIs struct {
	*Deps
	mu sync.Mutex
	// watchedKinds are the kinds that are watched already.
	watchedKinds map[client.Object]bool
}

// SetupOptionalAPIs watches the definitions of optional APIs, or polls discovery
// where the operator may not watch them.
func SetupOptionalAPIs(ctx context.Context, d *Deps) error {
	g := &optionalAPIs{Deps: d, watchedKinds: map[client.Object]bool{}}
	if err := setupDevices(ctx, d, g); err != nil {
		return err
	}
	if !d.Config.ClusterWide() {
		return setupDiscoveryPoller(d, g)
	}
	ours := predicate.NewPredicateFuncs(func(o client.Object) bool {
		return slices.Contains(snapshot.APIs, snapshot.API(o.GetName()))
	})
	err := ctrl.NewControllerManagedBy(d).Named("optional-apis").
		For(observe.Definition(), builder.OnlyMetadata, builder.WithPredicates(ours)).
		WithOptions(controller.Options{MaxConcurrentReconciles: 1}).
		Complete(g)
	if err != nil {
		return fmt.Errorf("watch optional APIs: %w", err)
	}
	return nil
}

// Reconcile looks at one definition that appeared, changed or went away.
func (g *optionalAPIs) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	definition := observe.Definition()
	err := g.GetClient().Get(ctx, types.NamespacedName{Name: request.Name}, definition)
	if client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, err
	}
	if !apierrors.IsNotFound(err) && definition.DeletionTimestamp == nil {
		if err := g.startWatch(ctx, snapshot.API(request.Name)); err != nil {
			return reconcile.Result{}, err
		}
	}
	return reconcile.Result{}, g.wakeEverybody(ctx)
}

// startWatch starts to watch the kinds of an API.
func (g *optionalAPIs) startWatch(ctx context.Context, api snapshot.API) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, w := range g.watched {
		for _, kinds := range []struct {
			of   []observe.Child
			wake handler.EventHandler
		}{
			{w.children, EnqueueOwner(g, w.kind)},
			{w.Beneath, handler.EnqueueRequestsFromMapFunc(graphOfClique(g.GetClient()))},
			{w.Around, w.around(g.GetClient())},
		} {
			for _, c := range kinds.of {
				if c.API != api {
					continue
				}
				if err := g.watch(ctx, w, c, kinds.wake); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// graphOfClique leads from what Grove makes to the graph that has its PodCliqueSet. The
// two may have different names: Grove limits that of a set.
func graphOfClique(cached client.Reader) handler.MapFunc {
	return func(ctx context.Context, made client.Object) []reconcile.Request {
		set := &grovev1alpha1.PodCliqueSet{}
		name := grove.SetOf(made)
		if name == "" || cached.Get(ctx, types.NamespacedName{Namespace: made.GetNamespace(), Name: name}, set) != nil {
			return nil // of somebody else, or gone: the graph hears of that by the set itself
		}
		owner := metav1.GetControllerOf(set)
		if owner == nil || owner.Kind != v1alpha1.KindDynamoGraphDeployment {
			return nil
		}
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: made.GetNamespace(), Name: owner.Name}}}
	}
}

func (g *optionalAPIs) watch(ctx context.Context, w *Watched, c observe.Child, to handler.EventHandler) error {
	if g.watchedKinds[c.Object] {
		return nil
	}
	kind, err := apiutil.GVKForObject(c.Object, g.GetScheme())
	if err != nil {
		return err
	}
	if _, err := g.GetRESTMapper().RESTMapping(kind.GroupKind(), kind.Version); err != nil {
		return fmt.Errorf("%s is defined but not served yet: %w", kind.Kind, err)
	}
	if err := g.Index(ctx, c); err != nil {
		return err
	}
	if err := w.controller.Watch(source.Kind(g.GetCache(), c.Object, g.Batched(w.kind, to), predicate.ResourceVersionChangedPredicate{})); err != nil {
		return fmt.Errorf("watch %s: %w", kind.Kind, err)
	}
	g.watchedKinds[c.Object] = true
	return nil
}

// wakeEverybody has every object looked at again that may have waited for an API.
func (g *optionalAPIs) wakeEverybody(ctx context.Context) error {
	for _, w := range g.watched {
		if err := g.wakeAll(ctx, w); err != nil {
			return err
		}
	}
	return nil
}

// wakeAll has every object of a kind looked at again.
func (g *optionalAPIs) wakeAll(ctx context.Context, w *Watched) error {
	objects, err := objectsOf(ctx, g.GetClient(), w.kindList)
	if err != nil {
		return err
	}
	for _, object := range objects {
		select {
		case w.wake <- event.GenericEvent{Object: object}:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}
