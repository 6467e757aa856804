// Package graphdeployment reconciles DynamoGraphDeployments: observe, decide
// without touching anything, apply, report.
package graphdeployment

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/cluster/apply"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/render"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/managed"
	"github.com/dynamo-operator/dynamo-operator/internal/core/status"
	"github.com/dynamo-operator/dynamo-operator/internal/core/workload"
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

// steps are those of a reconcile over a graph, outcome is what one comes to.
type (
	steps   = controller.Steps[*v1alpha1.DynamoGraphDeployment, observation, decision]
	outcome = controller.Outcome[observation, decision]
)

// Reconcile reconciles one graph.
func (r *Reconciler) Reconcile(ctx context.Context, dgd *v1alpha1.DynamoGraphDeployment) (reconcile.Result, error) {
	return controller.Run(ctx, dgd, steps{Finalize: r.finalize, Observe: r.observe, Decide: r.decide, Apply: r.apply, Report: r.report})
}

func (r *Reconciler) observe(ctx context.Context, dgd *v1alpha1.DynamoGraphDeployment) (observation, error) {
	return r.Observer.observe(ctx, dgd, r.Platform, r.Routes, r.Clock.Now())
}

// decision is what follows from an observation.
type decision struct {
	// graph has the replicas that adapters ask for; nil if the graph cannot be read.
	graph   *graph.Graph
	restart rollout.Step
	// workers is what is done about their generations.
	workers managed.Decision
	// plan is nil if nothing is to be written.
	plan *apply.Plan
	// problem keeps something from being done as it is written. unmet is what pods
	// will wait for all the same, and comes after whatever writing met with.
	problem, unmet error
}

// decide is pure: the same graph and observation give the same decision.
func (r *Reconciler) decide(dgd *v1alpha1.DynamoGraphDeployment, seen observation) decision {
	if seen.graph == nil {
		return decision{plan: seen.noteTakeover(dgd), problem: seen.invalid}
	}
	scale := seen.Scale(seen.graph)
	workers := seen.managed(dgd, seen.wanted(scale).Limited(seen.granted), r.Observer.Rollouts.Settings)
	g := workers.Graph
	d := decision{graph: g, workers: workers, restart: seen.restart}
	if d.problem = errors.Join(seen.unread, seen.queueAbsent(), seen.unlaunchable()); d.problem != nil {
		d.plan = seen.noteTakeover(dgd)
		return d
	}
	shown := workers.Shown(g.WithMarks(d.restart.Marks))
	if seen.refused != nil {
		shown = shown.WithoutIngress()
	}
	desired, err := render.Graph(dgd, shown, seen.provider, seen.platform)
	unrendered, moving := errors.Join(err, seen.refused), seen.migrating()
	changed, records := patches(workers, seen.revisions)
	d.plan = &apply.Plan{
		Finalizer:   r.Cleanup.Needed(registrations(g, seen.builder)) || seen.keepsData(g),
		Annotations: record(dgd, g, seen), NoAnnotations: workers.Retract,
		Released:   seen.claims,
		OwnerPatch: mirror(dgd, g, scale),
		Children:   slices.Concat(records, seen.builder.InOrder(g, seen.carried(workers, seen.unsignalled(desired)), seen.Snapshot), seen.sshKey),
		Patches:    slices.Concat(changed, seen.declare(shown)),
		// A graph that moves to another provider is taken down there before it is made
		// here: both would need the same names and the same GPUs.
		PruneOnly: moving != nil,
		Scale:     slices.Concat(workers.Scale, rescale(dgd, shown, workers.Carried(), seen)),
	}
	if unrendered == nil {
		d.plan.Owned = slices.Concat(workers.Pruned(seen.Owned), seen.unsignal()) // what cannot be rendered any more goes on running
	}
	d.problem, d.unmet = errors.Join(unrendered, moving), errors.Join(seen.unmet(g), seen.devices)
	return d
}

// noteTakeover is the plan for a graph that cannot be carried out now: nothing, but that
// what the original had carried out is remembered as that.
func (w observation) noteTakeover(dgd *v1alpha1.DynamoGraphDeployment) *apply.Plan {
	return apply.Note(dgd, graph.RecordTakeover(dgd, w.platform.Defaults.Running))
}

// record has the choices of provider and contract stand on the graph, whatever is
// installed or configured later.
func record(dgd *v1alpha1.DynamoGraphDeployment, g *graph.Graph, seen observation) map[string]string {
	choices := workload.Record(dgd.Annotations, seen.provider)
	maps.Copy(choices, graph.RecordGraph(dgd, g, seen.platform.Defaults.Running))
	return choices
}

func (r *Reconciler) apply(ctx context.Context, dgd *v1alpha1.DynamoGraphDeployment, d decision) (apply.ChangeSet, error) {
	if d.plan == nil {
		return nil, nil
	}
	tracing.Decided(ctx, "provider", d.plan.Annotations[v1alpha1.AnnotationWorkloadProvider],
		"wanted", len(d.plan.Children), "owned", len(d.plan.Owned), "restart", d.restart.Marks)
	changes, err := r.Applier.Apply(ctx, dgd, *d.plan)
	r.Observer.Expected.expect(dgd.UID, d.workers.Expect, changes.Written(), err != nil, r.Clock.Now())
	event.Applied(r.Events, dgd, changes)
	return changes, err
}

func (r *Reconciler) report(ctx context.Context, dgd *v1alpha1.DynamoGraphDeployment, o outcome) (reconcile.Result, error) {
	seen, d, err := o.Seen, o.Decided, errors.Join(o.Decided.problem, o.Err, o.Decided.unmet)
	if errors.Is(o.Err, apply.ErrOwnerUnwritten) && seen.noteTakeover(dgd) != nil {
		return reconcile.Result{}, err // a status of ours would hide what could not be noted
	}
	seen.Written = o.Changes.Written()
	now := status.Graph(dgd, d.graph, seen.builder, seen.Snapshot, d.restart, d.workers.State, err, metav1.NewTime(r.Clock.Now()))
	if result, off := r.StatusThrottle.Defer(dgd, seen.urgency(dgd, now, err), r.Clock.Now()); off {
		return r.again(result, seen, d), nil
	}
	if d.graph != nil && dgd.Status.ObservedGeneration != dgd.Generation {
		event.Warned(r.Events, dgd, seen.warnings(ctx, dgd, r.Routes.Rules, r.Observer))
	}
	result, err := controller.Finish(ctx, r.Client, dgd, &dgd.Status, now, false, err)
	if due := status.Due(d.graph, seen.builder, seen.Snapshot); err == nil && result.IsZero() && !due.IsZero() {
		result.RequeueAfter = max(time.Second, due.Sub(r.Clock.Now()))
	}
	if err != nil {
		return result, err
	}
	return r.again(result, seen, d), nil
}

// pollPeriod is how often a graph is looked at while its workers are rolled out: no
// watch tells that a pod is gone at last, or what frontends know.
const pollPeriod = time.Second

// again has a graph looked at soon while its workers are rolled out, or while a budget
// may have to be divided anew.
func (r *Reconciler) again(result reconcile.Result, seen observation, d decision) reconcile.Result {
	soon := seen.again
	if at := seen.dormancyAgain(); at > 0 && (soon == 0 || at < soon) {
		soon = at
	}
	if d.workers.State.Active() {
		soon = pollPeriod
	}
	if soon > 0 && (result.RequeueAfter == 0 || result.RequeueAfter > soon) {
		result.RequeueAfter = soon
	}
	return result
}

// rescale lists what others have made from the graph's children and is to have
// another number of replicas, for services whose number somebody gave; any other
// may be an autoscaler's, unless it is rolled out. What stays as it is stored is left
// to that.
func rescale(dgd *v1alpha1.DynamoGraphDeployment, g *graph.Graph, carried workload.Carried, seen observation) []workload.Rescaling {
	rescaler, ok := seen.builder.(workload.Rescaler)
	if !ok {
		return nil
	}
	var given []graph.Component
	for _, c := range g.Components {
		service := dgd.Spec.Services[c.Name]
		if slices.Contains(carried.Left, c.Name) {
			continue
		}
		if c.Adapted || (service != nil && service.Replicas != nil) || slices.Contains(carried.Rolling, c.Name) {
			given = append(given, c)
		}
	}
	return rescaler.Rescale(given, seen.Snapshot)
}

// mirror has the number in force stand in the graph, so that a reader of its spec
// sees it. Nothing is rendered from it while the adapter is enabled, so a graph that was
// taken over stays one.
func mirror(dgd *v1alpha1.DynamoGraphDeployment, g *graph.Graph, scale map[string]int32) map[string]any {
	differing := map[string]any{}
	for name, replicas := range scale {
		if service := dgd.Spec.Services[name]; service == nil || service.Replicas == nil || *service.Replicas != replicas {
			differing[name] = map[string]any{"replicas": replicas}
		}
	}
	if len(differing) == 0 {
		return nil
	}
	patch := map[string]any{"spec": map[string]any{"services": differing}}
	if g.TakenOver != "" {
		patch["metadata"] = map[string]any{"annotations": map[string]any{v1alpha1.AnnotationAdoptedGeneration: strconv.FormatInt(dgd.Generation+1, 10)}}
	}
	return patch
}

// finalizeClaims deletes the claims that were created for a graph, unless they are to be
// retained. That may have been said a moment before the graph was deleted, in whatever
// way: until now the garbage collector had no reason to touch them.
func (r *Reconciler) finalizeClaims(ctx context.Context, dgd *v1alpha1.DynamoGraphDeployment, cliqueSet string) error {
	if !slices.Contains(dgd.Finalizers, v1alpha1.Finalizer) {
		return nil
	}
	claims, err := r.Observer.Facts.Claims(ctx, dgd)
	if err != nil || len(claims) == 0 {
		return err
	}
	if dgd.Annotations[v1alpha1.AnnotationRetainPVCs] == "true" {
		return r.Applier.ReleaseFromOwner(ctx, dgd, claims)
	}
	if orphaned, err := r.Observer.Facts.Orphaned(ctx, dgd, cliqueSet); err != nil || orphaned {
		return err
	}
	others, err := r.Observer.Facts.LiveGraphs(ctx, dgd.Namespace)
	if err != nil {
		return err
	}
	for _, object := range claims {
		if claim, ok := object.(*corev1.PersistentVolumeClaim); ok && claim.DeletionTimestamp == nil && graph.CreatedFor(claim, dgd) {
			err = errors.Join(err, r.finalizeClaim(ctx, claim, others))
		}
	}
	return err
}

// finalizeClaim deletes a claim, unless another graph asked for the same: its pods would keep
// the claim from going, and those that come would not be placed while it goes.
func (r *Reconciler) finalizeClaim(ctx context.Context, claim *corev1.PersistentVolumeClaim, others []*v1alpha1.DynamoGraphDeployment) error {
	switch heir, asAsked := graph.Heir(claim, others); {
	case heir == nil:
		return r.Applier.Discard(ctx, claim)
	case asAsked:
		return r.Applier.HandOver(ctx, claim, heir)
	default:
		return nil
	}
}

// finalize removes what the garbage collector does not: claims, and what a graph has
// outside the cluster. Nothing is validated: what cannot be read has left nothing.
func (r *Reconciler) finalize(ctx context.Context, dgd *v1alpha1.DynamoGraphDeployment) (reconcile.Result, error) {
	var keys []graph.Registration
	cliqueSet := dgd.Name
	if g, err := graph.FromGraphDeployment(dgd, r.Platform.Defaults); err == nil {
		keys = registrations(g, r.Platform.GraphBuilder(dgd, workload.Provider(dgd.Annotations[v1alpha1.AnnotationWorkloadProvider])))
		cliqueSet = g.CliqueSet
	}
	if err := r.finalizeClaims(ctx, dgd, cliqueSet); err != nil {
		return reconcile.Result{}, err
	}
	wait, err := r.Cleanup.Finalize(ctx, dgd, keys)
	if wait == 0 {
		return reconcile.Result{}, err
	}
	result, err := r.report(ctx, dgd, outcome{Err: err})
	result.RequeueAfter = wait
	return result, err
}

// registrations are where a graph's components register in etcd. Where it has
// components of its own, they look after that.
func registrations(g *graph.Graph, by workload.GraphBuilder) []graph.Registration {
	if _, owns := by.(workload.PodOwner); !owns {
		return nil
	}
	return g.Registrations()
}
