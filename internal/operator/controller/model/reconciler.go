// Package model reconciles DynamoModels: it finds the engines of the base model
// and has a LoRA adapter loaded into each, or unloaded from it. Calls run beside
// the reconciles: a reconcile starts them, and their outcomes wake the next one.
package model

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
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

// Reconcile reconciles one model.
func (r *Reconciler) Reconcile(ctx context.Context, dm *v1alpha1.DynamoModel) (reconcile.Result, error) {
	if dm.DeletionTimestamp != nil {
		return r.finalize(ctx, dm)
	}
	if err := validation.Fault(validation.Model(dm)); err != nil {
		return r.report(ctx, dm, loraplan.World{}, loraplan.Plan{}, err)
	}
	if dm.Spec.ModelType != v1alpha1.ModelTypeLoRA {
		if err := r.Applier.RemoveFinalizer(ctx, dm, v1alpha1.Finalizer); err != nil {
			return reconcile.Result{}, err
		}
	}
	w, err := r.Models.World(ctx, dm)
	if err != nil {
		return reconcile.Result{}, err
	}
	plan := r.plan(dm, wanted(dm), w)
	if w.Rival != "" {
		plan.Calls = nil
		return r.report(ctx, dm, w, plan, fault.New(fault.Waiting, v1alpha1.ReasonNameConflict,
			"DynamoModel %s fetches an adapter of the name %s from elsewhere; engines know adapters by name alone", w.Rival, dm.Spec.ModelName))
	}
	if len(plan.Note) > 0 || noted(dm) != nil {
		if err := r.Applier.HoldWithNote(ctx, dm, v1alpha1.Finalizer, v1alpha1.AnnotationLoadedAdapters, loraplan.EncodeNote(plan.Note)); err != nil {
			return later(err)
		}
	}
	r.start(dm, plan.Calls)
	return r.report(ctx, dm, w, plan, nil)
}

// finalize unloads the adapter wherever it may be. Engines that are gone took it
// with them; those that do not answer are left behind at the deadline.
func (r *Reconciler) finalize(ctx context.Context, dm *v1alpha1.DynamoModel) (reconcile.Result, error) {
	if !held(dm) {
		return reconcile.Result{}, nil
	}
	if noted(dm) == nil {
		return reconcile.Result{}, r.Applier.RemoveFinalizer(ctx, dm, v1alpha1.Finalizer)
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
		return r.report(ctx, dm, w, plan, nil)
	}
	if err := r.Applier.RemoveFinalizer(ctx, dm, v1alpha1.Finalizer); err != nil {
		return reconcile.Result{}, err
	}
	r.memory.forget(dm.UID)
	r.deleted.Forget(dm.UID)
	event.ModelUnloaded(r.Events, dm, abandoned(plan))
	return reconcile.Result{}, nil
}

// later ends a reconcile that could not write down what it was about to do. That the
// informer is behind is no error; nothing was done yet.
func later(err error) (reconcile.Result, error) {
	if apierrors.IsConflict(err) {
		return reconcile.Result{RequeueAfter: settleTime}, nil
	}
	return reconcile.Result{}, err
}

func (r *Reconciler) plan(dm *v1alpha1.DynamoModel, adapter *loraplan.Adapter, w loraplan.World) loraplan.Plan {
	in := loraplan.Intent{Adapter: adapter, Noted: noted(dm)}
	return r.memory.plan(dm.UID, held(dm), func(m loraplan.Memory) loraplan.Plan {
		return loraplan.Next(in, w, m, r.Recheck, r.Clock.Now())
	})
}

// report tells what was known before the calls; their outcomes bring the next
// truth.
func (r *Reconciler) report(ctx context.Context, dm *v1alpha1.DynamoModel, w loraplan.World, p loraplan.Plan, err error) (reconcile.Result, error) {
	was := *dm.Status.DeepCopy()
	now := r.Clock.Now()
	is := status.Model(dm, w, p, err, metav1.NewTime(now))
	result, err := controller.PatchStatus(ctx, r.Client, dm, &dm.Status, is, err)
	if err != nil {
		return result, err
	}
	event.ModelTurned(r.Events, dm, was, is)
	if !p.Wake.IsZero() {
		result.RequeueAfter = max(p.Wake.Sub(now), time.Millisecond)
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

// noted are the adapters that engines may hold on behalf of a model. Earlier
// operators left the finalizer alone.
func noted(dm *v1alpha1.DynamoModel) []loraplan.Adapter {
	if note := loraplan.DecodeNote(dm.Annotations[v1alpha1.AnnotationLoadedAdapters]); len(note) > 0 {
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
