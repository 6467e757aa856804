// Package graphdeployment reconciles DynamoGraphDeployments: observe, decide
// without touching anything, apply, report.
package graphdeployment

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/cluster/apply"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/render"
	"github.com/dynamo-operator/dynamo-operator/internal/core/status"
	"github.com/dynamo-operator/dynamo-operator/internal/core/validation"
	"github.com/dynamo-operator/dynamo-operator/internal/core/workload"
	"github.com/dynamo-operator/dynamo-operator/internal/core/workload/grove"
	"github.com/dynamo-operator/dynamo-operator/internal/operator/controller"
	"github.com/dynamo-operator/dynamo-operator/internal/operator/event"
	"github.com/dynamo-operator/dynamo-operator/internal/operator/tracing"
)

// Reconciler brings a graph's children about and says how far they are.
type Reconciler struct {
	Client   client.Client
	Observer Observer
	Applier  *apply.Applier
	Cleanup  controller.Cleanup
	Events   events.EventRecorder
	Clock    clock.PassiveClock
	// StatusThrottle puts reports off while children are just being made.
	StatusThrottle *controller.StatusThrottle
	Platform       render.Platform
	// Routes judges what the services of graphs are reached by.
	Routes controller.Routes
}

// Reconcile reconciles one graph.
func (r *Reconciler) Reconcile(ctx context.Context, dgd *v1alpha1.DynamoGraphDeployment) (reconcile.Result, error) {
	if dgd.DeletionTimestamp != nil {
		return r.finalize(ctx, dgd)
	}
	seen, err := r.Observer.observe(ctx, dgd, r.Platform, r.Clock.Now())
	if err != nil {
		return reconcile.Result{}, err
	}
	if err := validation.Fault(validation.GraphDeployment(dgd)); err != nil {
		return r.report(ctx, dgd, nil, seen, err)
	}
	g, err := graph.FromGraphDeployment(dgd, seen.platform.Defaults)
	if err != nil {
		return r.report(ctx, dgd, nil, seen, err)
	}
	scale := seen.Scale(g)
	g = g.Scaled(scale)
	seen.restart = status.NextRestart(dgd, g, seen.orchestration(), seen.Snapshot)
	seen.absentClaims, err = r.Observer.Facts.AbsentClaims(ctx, dgd.Namespace, g.Expected())
	if err := errors.Join(err, r.Observer.checkQueue(ctx, seen)); err != nil {
		return r.report(ctx, dgd, g, seen, err)
	}
	shown, refused := r.reachable(ctx, dgd, g.WithMarks(seen.restart.Marks), seen.provider)
	wanted, unrendered := render.Graph(dgd, shown, seen.provider, seen.platform)
	unrendered = errors.Join(unrendered, refused)
	wanted = seen.inOrder(g, wanted)
	key, err := controller.SSHKey(ctx, r.Observer.Facts, g, r.Platform.Pod.SSHSecret)
	if err != nil {
		return r.report(ctx, dgd, g, seen, err)
	}
	wanted = append(wanted, key...)
	if err := errors.Join(r.Cleanup.EnsureFinalizer(ctx, dgd, registrations(g, seen.provider), seen.keepsData(g)), r.record(ctx, dgd, g, seen)); err != nil {
		return r.report(ctx, dgd, g, seen, err)
	}
	tracing.Decided(ctx, "provider", seen.provider, "wanted", len(wanted), "owned", len(seen.Owned), "restart", seen.restart.Marks)
	mirrored := r.mirror(ctx, dgd, scale)
	changes, err := r.sync(ctx, dgd, wanted, seen, unrendered)
	event.Applied(r.Events, dgd, changes)
	seen.Written = changes.Written()
	if apply.OwnerDeleted(err) {
		return reconcile.Result{}, nil
	}
	return r.report(ctx, dgd, g, seen, errors.Join(unrendered, err, mirrored, r.rescale(ctx, dgd, g, seen), seen.unmet(g)))
}

// reachable is a graph without its Ingresses where those are not allowed, and why.
// Where there are components, each is judged by its own controller.
func (r *Reconciler) reachable(ctx context.Context, dgd *v1alpha1.DynamoGraphDeployment, g *graph.Graph, by workload.Provider) (*graph.Graph, error) {
	if by != workload.ProviderGrove {
		return g, nil
	}
	if err := r.Routes.OfGraph(ctx, dgd); err != nil {
		return g.WithoutIngress(), err
	}
	return g, nil
}

// sync writes the children. A graph that moves to another provider is taken down
// there before it is made here: both would need the same names and the same
// GPUs.
func (r *Reconciler) sync(ctx context.Context, dgd *v1alpha1.DynamoGraphDeployment, wanted []graph.Desired, seen observation, unrendered error) (apply.ChangeSet, error) {
	moving := seen.migrating()
	switch {
	case moving != nil && unrendered != nil:
		return nil, moving // what cannot be rendered here goes on running there
	case moving != nil:
		changes, err := r.Applier.Prune(ctx, dgd, wanted, seen.Owned)
		return changes, errors.Join(moving, err)
	case unrendered != nil:
		return r.Applier.Sync(ctx, dgd, wanted, nil) // what cannot be rendered any more goes on running
	default:
		return r.Applier.Sync(ctx, dgd, wanted, seen.Owned)
	}
}

// rescale sets the replicas of what Grove has made from the graph, for services
// whose number somebody gave; any other may be an autoscaler's.
func (r *Reconciler) rescale(ctx context.Context, dgd *v1alpha1.DynamoGraphDeployment, g *graph.Graph, seen observation) error {
	if seen.provider != workload.ProviderGrove {
		return nil
	}
	var given []graph.Component
	for _, c := range g.Components {
		if service := dgd.Spec.Services[c.Name]; c.Adapted || (service != nil && service.Replicas != nil) {
			given = append(given, c)
		}
	}
	var errs []error
	for _, s := range grove.Rescale(given, seen.Snapshot) {
		errs = append(errs, r.Applier.Scale(ctx, s.Object, s.Replicas))
	}
	return errors.Join(errs...)
}

// retain lets the claims of a graph that is to leave them outlive it. That may have
// been said a moment before the graph was deleted, and nobody has looked since.
func (r *Reconciler) retain(ctx context.Context, dgd *v1alpha1.DynamoGraphDeployment) error {
	if dgd.Annotations[v1alpha1.AnnotationRetainPVCs] != "true" || !slices.Contains(dgd.Finalizers, v1alpha1.Finalizer) {
		return nil
	}
	claims, err := r.Observer.Facts.Claims(ctx, dgd)
	if err != nil {
		return err
	}
	return r.Applier.Disown(ctx, dgd, claims)
}

// finalize removes what a graph has outside the cluster, and what is to stay from its
// reach; the garbage collector does the rest. Nothing is validated: what cannot be read has left nothing.
func (r *Reconciler) finalize(ctx context.Context, dgd *v1alpha1.DynamoGraphDeployment) (reconcile.Result, error) {
	var keys []graph.Registration
	if g, err := graph.FromGraphDeployment(dgd, r.Platform.Defaults); err == nil {
		keys = registrations(g, workload.Provider(dgd.Annotations[v1alpha1.AnnotationWorkloadProvider]))
	}
	if err := r.retain(ctx, dgd); err != nil {
		return reconcile.Result{}, err
	}
	wait, err := r.Cleanup.Finalize(ctx, dgd, keys)
	if wait == 0 {
		return reconcile.Result{}, err
	}
	result, err := r.report(ctx, dgd, nil, observation{}, err)
	result.RequeueAfter = wait
	return result, err
}

// registrations are where a graph's components register in etcd. Where it has
// components of its own, they look after that.
func registrations(g *graph.Graph, by workload.Provider) []graph.Registration {
	if by != workload.ProviderGrove {
		return nil
	}
	return g.Registrations()
}

// record writes the choices of provider and contract down, so that they stand
// whatever is installed or configured later. It comes before the first child: a
// cache that is behind shows none, and the choices would be made anew.
func (r *Reconciler) record(ctx context.Context, dgd *v1alpha1.DynamoGraphDeployment, g *graph.Graph, seen observation) error {
	note := workload.Record(dgd.Annotations, seen.provider)
	maps.Copy(note, graph.RecordGraph(dgd, g, seen.platform.Defaults.Running))
	for key, value := range note {
		if written, found := dgd.Annotations[key]; !found || written != value {
			return r.Applier.Annotate(ctx, dgd, note)
		}
	}
	return nil
}

// mirror writes the number in force into the graph, so that a reader of its
// spec sees it. Nothing is rendered from it while the adapter is enabled.
func (r *Reconciler) mirror(ctx context.Context, dgd *v1alpha1.DynamoGraphDeployment, scale map[string]int32) error {
	differing := map[string]any{}
	for name, replicas := range scale {
		if service := dgd.Spec.Services[name]; service == nil || service.Replicas == nil || *service.Replicas != replicas {
			differing[name] = map[string]any{"replicas": replicas}
		}
	}
	if len(differing) == 0 {
		return nil
	}
	return r.Applier.Merge(ctx, dgd, map[string]any{"spec": map[string]any{"services": differing}})
}

// report tells what was seen before the writes; the watch on the children
// brings the next truth.
func (r *Reconciler) report(ctx context.Context, dgd *v1alpha1.DynamoGraphDeployment, g *graph.Graph, seen observation, err error) (reconcile.Result, error) {
	now := status.Graph(dgd, g, seen.orchestration(), seen.Snapshot, seen.restart, err, metav1.NewTime(r.Clock.Now()))
	if result, off := r.StatusThrottle.Defer(dgd, seen.urgency(dgd, now, err), r.Clock.Now()); off {
		return result, nil
	}
	if g != nil && dgd.Status.ObservedGeneration != dgd.Generation {
		event.Warned(r.Events, dgd, seen.warnings(dgd, r.Routes.Rules))
	}
	result, err := controller.PatchStatus(ctx, r.Client, dgd, &dgd.Status, now, err)
	if due := seen.orchestration().Due(g, seen.Snapshot); err == nil && result.IsZero() && !due.IsZero() {
		result.RequeueAfter = max(time.Second, due.Sub(r.Clock.Now()))
	}
	return result, err
}
