// Package graphdeployment reconciles DynamoGraphDeployments: observe, decide
// without touching anything, apply, report.
package graphdeployment

import (
	"context"
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/apply"
	"github.com/dynamo-operator/dynamo-operator/internal/controller"
	"github.com/dynamo-operator/dynamo-operator/internal/event"
	"github.com/dynamo-operator/dynamo-operator/internal/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/render"
	"github.com/dynamo-operator/dynamo-operator/internal/status"
	"github.com/dynamo-operator/dynamo-operator/internal/validation"
	"github.com/dynamo-operator/dynamo-operator/internal/workload"
)

// Reconciler brings a graph's children about and says how far they are.
type Reconciler struct {
	Client   client.Client
	World    World
	Applier  *apply.Applier
	Events   events.EventRecorder
	Clock    clock.PassiveClock
	Platform render.Platform
}

// Reconcile makes one pass over a graph.
func (r *Reconciler) Reconcile(ctx context.Context, dgd *v1alpha1.DynamoGraphDeployment) (reconcile.Result, error) {
	if err := r.Applier.Release(ctx, dgd, v1alpha1.Finalizer); err != nil || dgd.DeletionTimestamp != nil {
		return reconcile.Result{}, err // the garbage collector does the rest
	}
	seen, err := r.World.observe(ctx, dgd, r.Platform)
	if err != nil {
		return reconcile.Result{}, err
	}
	if err := validation.Fault(validation.GraphDeployment(dgd)); err != nil {
		return r.report(ctx, dgd, nil, seen, err)
	}
	g, err := graph.FromGraphDeployment(dgd, r.Platform.Defaults)
	if err != nil {
		return r.report(ctx, dgd, nil, seen, err)
	}
	scale := seen.Scale(g)
	g = g.Scaled(scale)
	seen.restart = status.NextRestart(dgd, g, seen.provider, seen.Snapshot)
	if err := r.World.admitted(ctx, seen); err != nil {
		return r.report(ctx, dgd, g, seen, err)
	}
	wanted, unrendered := render.Graph(dgd, g.WithMarks(seen.restart.Marks), seen.provider, seen.platform)
	wanted, err = r.World.withSSHKey(ctx, g, r.Platform.Pod.SSHSecret, wanted)
	if err != nil {
		return r.report(ctx, dgd, g, seen, err)
	}
	if err := r.record(ctx, dgd, seen.provider); err != nil {
		return r.report(ctx, dgd, g, seen, err)
	}
	if err := r.mirror(ctx, dgd, scale); err != nil {
		return r.report(ctx, dgd, g, seen, err)
	}
	prunable := seen.Owned
	if unrendered != nil {
		prunable = nil // what cannot be rendered any more goes on running
	}
	changes, err := r.Applier.Sync(ctx, dgd, wanted, prunable)
	event.Applied(r.Events, dgd, changes)
	seen.Written = changes.Written()
	return r.report(ctx, dgd, g, seen, errors.Join(unrendered, err))
}

// record writes the choice of provider down, so that it stands whatever is
// installed later.
func (r *Reconciler) record(ctx context.Context, dgd *v1alpha1.DynamoGraphDeployment, chosen workload.Provider) error {
	note := workload.Record(dgd.Annotations, chosen)
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
func (r *Reconciler) report(ctx context.Context, dgd *v1alpha1.DynamoGraphDeployment, g *graph.Graph, seen world, err error) (reconcile.Result, error) {
	now := status.Graph(dgd, g, seen.provider, seen.Snapshot, seen.restart, err, metav1.NewTime(r.Clock.Now()))
	return controller.Report(ctx, r.Client, dgd, &dgd.Status, now, err)
}
