package graphdeployment

import (
	"cmp"
	"context"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/cluster/apply"
	"github.com/dynamo-operator/dynamo-operator/internal/cluster/observe"
	"github.com/dynamo-operator/dynamo-operator/internal/core/dormancy"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/render"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/generation"
	"github.com/dynamo-operator/dynamo-operator/internal/core/snapshot"
)

// signal is the Lease by which a graph is woken; nil if it has none.
type signal struct {
	lease *coordinationv1.Lease
}

// dormancy reads the graph's Lease and has it decided whether the graph sleeps.
func (w Observer) dormancy(ctx context.Context, dgd *v1alpha1.DynamoGraphDeployment, seen *observation, now time.Time) (err error) {
	if seen.lease, err = observe.ActivationLease(ctx, w.Leases, dgd); err != nil {
		return err
	}
	seen.Dormancy = sleeps(dgd, *seen, now)
	return nil
}

// sleeps is nil for a graph that does not scale to zero. What the graph said last is all
// that is remembered, so that a restart of the operator changes nothing.
func sleeps(dgd *v1alpha1.DynamoGraphDeployment, seen observation, now time.Time) *snapshot.Dormancy {
	s, on, why := render.Dormancy(dgd, seen.graph, seen.provider, seen.platform)
	switch {
	case why != "":
		return &snapshot.Dormancy{Settings: s, Unsupported: why}
	case !on:
		return nil
	}
	was := dormancy.Seen{Now: now, Was: dormancy.Told(dgd.Status.Conditions), Rolling: rolling(dgd)}
	if ready := meta.FindStatusCondition(dgd.Status.Conditions, v1alpha1.ConditionReady); ready != nil && ready.Status == metav1.ConditionTrue {
		was.Ready, was.ReadySince = true, ready.LastTransitionTime.Time
	}
	if seen.lease != nil {
		said := dormancy.FromLease(seen.lease)
		was.Signal = &said
	}
	return &snapshot.Dormancy{Settings: s, Decision: dormancy.Decide(s, was)}
}

// rolling says that workers are being replaced. A canary that waits to be approved is, too:
// without replicas its rollout would pass every step at once, and end the stable generation.
func rolling(dgd *v1alpha1.DynamoGraphDeployment) bool {
	last := dgd.Status.Rollout
	return dgd.Status.ObservedGeneration != dgd.Generation || last != nil && !generation.Phase(last.Phase).Ended()
}

// wanted is the graph with the replicas that adapters ask for, or with no workers at all
// while it sleeps.
func (w observation) wanted(scale map[string]int32) *graph.Graph {
	g := w.graph.Scaled(scale)
	if w.Asleep() {
		return g.Asleep()
	}
	return g
}

// dormancyAgain is when the graph may have to be put to sleep.
func (w observation) dormancyAgain() time.Duration {
	if w.Dormancy == nil {
		return 0
	}
	return w.Dormancy.Again
}

// unsignalled leaves the Lease out of what is written once it exists: what it says is
// not ours.
func (w observation) unsignalled(desired []graph.Desired) []graph.Desired {
	if w.lease == nil {
		return desired
	}
	return slices.DeleteFunc(desired, func(d graph.Desired) bool {
		lease, ok := d.Object.(*coordinationv1.Lease)
		return ok && lease.Name == w.lease.Name
	})
}

// unsignal is the Lease of a graph that does not scale to zero any more.
func (w observation) unsignal() []graph.Object {
	if w.lease == nil || w.Dormancy != nil && w.Dormancy.Unsupported == "" {
		return nil
	}
	return []graph.Object{w.lease}
}

// declare has the Lease name the models that workers are told to serve. Activators hold
// requests for those, too: a graph that was changed while it slept has not served them.
func (w observation) declare(shown *graph.Graph) []apply.ChildPatch {
	if w.lease == nil || w.Dormancy == nil || w.Dormancy.Unsupported != "" {
		return nil
	}
	// What is shown is that of before while a rollout has not begun.
	models := dormancy.Declared(slices.Concat(render.Models(w.graph), render.Models(shown)))
	if declared := w.lease.Annotations[v1alpha1.AnnotationActivationDeclared]; models == cmp.Or(declared, "[]") {
		return nil
	}
	return []apply.ChildPatch{{Object: w.lease, Fields: map[string]any{
		"metadata": map[string]any{"annotations": map[string]any{v1alpha1.AnnotationActivationDeclared: models}},
	}}}
}
