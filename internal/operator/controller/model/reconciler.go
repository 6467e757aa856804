// Package model reconciles DynamoModels: it finds the engines of the base model
// and has a LoRA adapter loaded into each, or unloaded from it. Calls run beside
// the reconciles: a reconcile starts them, and their outcomes wake the next one.
package model

import (
	"context"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/cluster/apply"
	"github.com/dynamo-operator/dynamo-operator/internal/cluster/lora"
	"github.com/dynamo-operator/dynamo-operator/internal/cluster/observe"
	"github.com/dynamo-operator/dynamo-operator/internal/core/fault"
	"github.com/dynamo-operator/dynamo-operator/internal/core/loraplan"
	"github.com/dynamo-operator/dynamo-operator/internal/core/status"
	"github.com/dynamo-operator/dynamo-operator/internal/core/validation"
	"github.com/dynamo-operator/dynamo-operator/internal/operator/controller"
	"github.com/dynamo-operator/dynamo-operator/internal/operator/event"
)

// +kubebuilder:rbac:groups=nvidia.com,resources=dynamomodels,verbs=list;watch;patch
// +kubebuilder:rbac:groups=nvidia.com,resources=dynamomodels/status,verbs=patch
// +kubebuilder:rbac:groups=discovery.k8s.io,resources=endpointslices,verbs=list;watch
// +kubebuilder:rbac:groups="",resources=pods,verbs=list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Reconciler brings adapters into engines and says where they are.
type Reconciler struct {
	Client  client.Client
	Models  observe.Models
	Applier *apply.Applier
	Caller  *lora.Caller
	Backoff loraplan.Backoff
	// Recheck is how long an engine is believed to hold what it was last seen to.
	Recheck time.Duration
	// UnloadDeadline is how long a deletion waits for engines.
	UnloadDeadline time.Duration
	Events         events.EventRecorder
	Clock          clock.PassiveClock
	// Wake has a model looked at again after a while.
	Wake func(types.NamespacedName, time.Duration)

	memory memory
	// deleted is when deletions were first seen.
	deleted controller.FirstSeen
}

// steps are those of a reconcile over a model, outcome is what one comes to.
type (
	steps   = controller.Steps[*v1alpha1.DynamoModel, loraplan.World, decision]
	outcome = controller.Outcome[loraplan.World, decision]
)

// Reconcile reconciles one model.
func (r *Reconciler) Reconcile(ctx context.Context, dm *v1alpha1.DynamoModel) (reconcile.Result, error) {
	return controller.Run(ctx, dm, steps{Finalize: r.finalize, Observe: r.Models.World, Decide: r.decide, Apply: r.apply, Report: r.report})
}

// decision is which calls to engines come next in the world as far as it counts,
// or why there are none.
type decision struct {
	world   loraplan.World
	plan    loraplan.Plan
	problem error
}

// decide keeps what follows from a plan in memory, and touches nothing else.
func (r *Reconciler) decide(dm *v1alpha1.DynamoModel, w loraplan.World) decision {
	if err := validation.Fault(validation.Model(dm)); err != nil {
		return decision{problem: err}
	}
	d := decision{world: w, plan: r.plan(dm, effective(dm, w), w)}
	switch {
	case w.Rival != "":
		d.problem = fault.New(fault.Waiting, v1alpha1.ReasonNameConflict,
			"DynamoModel %s fetches an adapter of the name %s from elsewhere; engines know adapters by name alone", w.Rival, dm.Spec.ModelName)
	case w.Holder != "":
		d.problem = fault.New(fault.Waiting, v1alpha1.ReasonNameConflict,
			"DynamoModel %s has an adapter of the name %s from elsewhere to unload first; engines know adapters by name alone", w.Holder, dm.Spec.ModelName)
	}
	return d
}

// apply writes down which adapters engines may hold before it has them called.
func (r *Reconciler) apply(ctx context.Context, dm *v1alpha1.DynamoModel, d decision) (apply.ChangeSet, error) {
	if f, known := fault.From(d.problem); known && f.Class == fault.Invalid {
		return nil, nil
	}
	lora := dm.Spec.ModelType == v1alpha1.ModelTypeLoRA
	plan := apply.Plan{Finalizer: len(d.plan.Note) > 0 || noted(dm) != nil || (lora && held(dm))}
	switch note := loraplan.EncodeNote(d.plan.Note); {
	case note != "":
		plan.Annotations = map[string]string{v1alpha1.AnnotationLoadedAdapters: note}
	case lora && held(dm):
		plan.Annotations = map[string]string{v1alpha1.AnnotationLoadedAdapters: loraplan.NothingNoted}
	default:
		plan.NoAnnotations = []string{v1alpha1.AnnotationLoadedAdapters}
	}
	changes, err := r.Applier.Apply(ctx, dm, plan)
	if err == nil {
		r.start(dm, d.plan.Calls)
	}
	return changes, err
}

// finalize unloads the adapter wherever it may be. Engines that are gone took it
// with them; those that do not answer are left behind at the deadline.
func (r *Reconciler) finalize(ctx context.Context, dm *v1alpha1.DynamoModel) (reconcile.Result, error) {
	if !held(dm) {
		return reconcile.Result{}, nil
	}
	if noted(dm) == nil {
		r.memory.forget(dm.UID)
		return reconcile.Result{}, r.Applier.Release(ctx, dm)
	}
	w, err := r.Models.World(ctx, dm)
	if err != nil {
		return reconcile.Result{}, err
	}
	plan := r.plan(dm, nil, w)
	// Counted from when we first saw the deletion: the object's own time is of the
	// API server's clock, and ours may be ahead of it by more than the deadline.
	left := r.UnloadDeadline - r.Clock.Now().Sub(r.deleted.Time(dm.UID, r.Clock.Now()))
	if len(plan.Pending) > 0 && left > 0 {
		r.start(dm, plan.Calls)
		if plan.Wake.IsZero() || plan.Wake.Sub(r.Clock.Now()) > left {
			plan.Wake = r.Clock.Now().Add(left)
		}
		return r.report(ctx, dm, outcome{Decided: decision{world: w, plan: plan}})
	}
	if err := r.Applier.Release(ctx, dm); err != nil {
		return reconcile.Result{}, err
	}
	r.memory.forget(dm.UID)
	r.deleted.Forget(dm.UID)
	event.ModelUnloaded(r.Events, dm, abandoned(plan))
	return reconcile.Result{}, nil
}

func (r *Reconciler) plan(dm *v1alpha1.DynamoModel, adapter *loraplan.Adapter, w loraplan.World) loraplan.Plan {
	in := loraplan.Intent{Adapter: adapter, Noted: noted(dm)}
	return r.memory.plan(dm.UID, held(dm), func(m loraplan.Memory) loraplan.Plan {
		return loraplan.Next(in, w, m, r.Recheck, r.Clock.Now())
	})
}

// report tells what was known before the calls; their outcomes bring the next
// truth. It tells nothing where what was about to be done could not be written down:
// nothing was done.
func (r *Reconciler) report(ctx context.Context, dm *v1alpha1.DynamoModel, o outcome) (reconcile.Result, error) {
	if o.Err != nil {
		return reconcile.Result{}, o.Err
	}
	d, now := o.Decided, r.Clock.Now()
	was, is := *dm.Status.DeepCopy(), status.Model(dm, d.world, d.plan, d.problem, metav1.NewTime(now))
	result, err := controller.Finish(ctx, r.Client, dm, &dm.Status, is, false, d.problem)
	if err != nil {
		return result, err
	}
	event.ModelTurned(r.Events, dm, was, is)
	if !d.plan.Wake.IsZero() {
		result.RequeueAfter = max(d.plan.Wake.Sub(now), time.Millisecond)
	}
	return result, nil
}

// held is a model whose adapter may be in engines: the finalizer is written
// before the first call.
func held(dm *v1alpha1.DynamoModel) bool {
	return slices.Contains(dm.Finalizers, v1alpha1.Finalizer)
}

// wanted is the adapter that engines should hold; nil if the model has none.
func wanted(dm *v1alpha1.DynamoModel) *loraplan.Adapter {
	if dm.Spec.ModelType != v1alpha1.ModelTypeLoRA || dm.Spec.Source == nil {
		return nil
	}
	return &loraplan.Adapter{Name: dm.Spec.ModelName, URI: dm.Spec.Source.URI}
}

// effective is the adapter that engines should hold as things are. A model whose name is
// another's, or still held for another, gives up what it holds and loads nothing:
// engines would take the one for the other.
func effective(dm *v1alpha1.DynamoModel, w loraplan.World) *loraplan.Adapter {
	if w.Rival != "" || w.Holder != "" {
		return nil
	}
	return wanted(dm)
}

// noted are the adapters that engines may hold on behalf of a model. Earlier
// operators left the finalizer alone.
func noted(dm *v1alpha1.DynamoModel) []loraplan.Adapter {
	text := dm.Annotations[v1alpha1.AnnotationLoadedAdapters]
	if text == loraplan.NothingNoted {
		return nil
	}
	if note := loraplan.DecodeNote(text); len(note) > 0 {
		return note
	}
	if adapter := wanted(dm); adapter != nil && held(dm) && loraplan.NameFault(adapter.Name) == "" {
		return []loraplan.Adapter{*adapter}
	}
	return nil
}

func abandoned(p loraplan.Plan) string {
	if len(p.Pending) == 0 {
		return ""
	}
	first := p.Pending[0]
	return fmt.Sprintf("%d endpoints did not unload in time, the first is %s: %s", len(p.Pending), first.Endpoint.Pod, first.Problem)
}
