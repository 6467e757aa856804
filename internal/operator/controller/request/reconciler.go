// Package request reconciles DynamoGraphDeploymentRequests: observe, decide
// without touching anything, apply, report.
package request

import (
	"context"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/cluster/apply"
	"github.com/dynamo-operator/dynamo-operator/internal/cluster/observe"
	"github.com/dynamo-operator/dynamo-operator/internal/core/fault"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/render"
	"github.com/dynamo-operator/dynamo-operator/internal/core/requestplan"
	"github.com/dynamo-operator/dynamo-operator/internal/core/snapshot"
	"github.com/dynamo-operator/dynamo-operator/internal/core/status"
	"github.com/dynamo-operator/dynamo-operator/internal/operator/controller"
	"github.com/dynamo-operator/dynamo-operator/internal/operator/event"
)

// +kubebuilder:rbac:groups=nvidia.com,resources=dynamographdeploymentrequests,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=nvidia.com,resources=dynamographdeploymentrequests/status,verbs=patch
// +kubebuilder:rbac:groups=nvidia.com,resources=dynamographdeploymentrequests/finalizers,verbs=update
// +kubebuilder:rbac:groups=nvidia.com,resources=dynamographdeployments,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=batch,resources=jobs,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=pods,verbs=list
// +kubebuilder:rbac:groups="",resources=nodes,verbs=list,roleName=dynamo-operator-manager-cluster
// +kubebuilder:rbac:groups=rbac.authorization.k8s.io,resources=clusterroles,resourceNames=dynamo-operator-profiler,verbs=bind

// Children are the kinds that a request owns: its Job, and the graphs that a
// profiler tries out. Its ConfigMaps are known by name.
func Children() []observe.Child {
	return []observe.Child{
		{Object: &batchv1.Job{}, List: &batchv1.JobList{}},
		{Object: &v1alpha1.DynamoGraphDeployment{}, List: &v1alpha1.DynamoGraphDeploymentList{}},
	}
}

// Reconciler brings a request from a goal to a graph.
type Reconciler struct {
	Client    client.Client
	World     observe.Requests
	Applier   *apply.Applier
	Events    events.EventRecorder
	Clock     clock.PassiveClock
	Policy    requestplan.Policy
	Profiling render.Profiling
}

// steps are those of a reconcile over a request, outcome is what one comes to.
type (
	steps   = controller.Steps[*v1alpha1.DynamoGraphDeploymentRequest, observation, decision]
	outcome = controller.Outcome[observation, decision]
)

// Reconcile reconciles one request.
func (r *Reconciler) Reconcile(ctx context.Context, dgdr *v1alpha1.DynamoGraphDeploymentRequest) (reconcile.Result, error) {
	return controller.Run(ctx, dgdr, steps{Finalize: r.finalize, Observe: r.observe, Decide: r.decide, Apply: r.apply, Report: r.report})
}

// finalize lets a request go that an earlier operator holds.
func (r *Reconciler) finalize(ctx context.Context, dgdr *v1alpha1.DynamoGraphDeploymentRequest) (reconcile.Result, error) {
	return reconcile.Result{}, r.Applier.Release(ctx, dgdr)
}

// observation is everything that a decision about a request is made from.
type observation struct {
	world       requestplan.Sight
	pullSecrets snapshot.PullSecrets
	taken       time.Time
}

func (r *Reconciler) observe(ctx context.Context, dgdr *v1alpha1.DynamoGraphDeploymentRequest) (seen observation, err error) {
	seen.taken = r.Clock.Now()
	if seen.world, err = r.World.Around(ctx, dgdr); err != nil {
		return seen, err
	}
	seen.pullSecrets, err = r.World.PullSecrets(ctx, dgdr.Namespace)
	return seen, err
}

// decision is the next step of a request, and what it takes.
type decision struct {
	step requestplan.Step
	plan apply.Plan
}

// decide is pure: the same request and observation give the same decision.
func (r *Reconciler) decide(dgdr *v1alpha1.DynamoGraphDeploymentRequest, seen observation) decision {
	p := r.Profiling
	p.PullSecrets = seen.pullSecrets
	step := requestplan.Next(dgdr, seen.world, r.Policy, seen.taken)
	return decision{step, apply.Plan{Children: render.Request(dgdr, step, p), Owned: step.Discard}}
}

func (r *Reconciler) apply(ctx context.Context, dgdr *v1alpha1.DynamoGraphDeploymentRequest, d decision) (apply.ChangeSet, error) {
	changes, err := r.Applier.Apply(ctx, dgdr, d.plan)
	event.Applied(r.Events, dgdr, changes)
	return changes, err
}

func (r *Reconciler) report(ctx context.Context, dgdr *v1alpha1.DynamoGraphDeploymentRequest, o outcome) (reconcile.Result, error) {
	step, err := requestplan.After(dgdr, o.Decided.step, permanent(o.Err))
	before := dgdr.Status.DeepCopy()
	after := status.Request(dgdr, step, metav1.NewTime(o.Seen.taken))
	// What begins is accepted as it is written now, or not at all: what was accepted in
	// the meantime, from another spec, stays.
	done, err := controller.Finish(ctx, r.Client, dgdr, &dgdr.Status, after, step.Begins, err)
	if err == nil {
		event.Turned(r.Events, dgdr, before.Conditions, after.Conditions)
		done.RequeueAfter = max(done.RequeueAfter, step.After)
	}
	return done, err
}

// permanent marks what the API server will never take. Everything else is
// worth another try.
func permanent(err error) error {
	if apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) {
		return fault.New(fault.Invalid, v1alpha1.ReasonValidationFailed, "%v", err)
	}
	return err
}

// OfGraph leads from a graph to the request that it was made for.
func OfGraph(reader client.Reader) func(context.Context, client.Object) []reconcile.Request {
	return func(ctx context.Context, made client.Object) []reconcile.Request {
		namespace := made.GetLabels()[v1alpha1.LabelRequestNamespace]
		if namespace == "" {
			return nil
		}
		var list v1alpha1.DynamoGraphDeploymentRequestList
		if err := reader.List(ctx, &list, client.InNamespace(namespace)); err != nil {
			return nil // the informer is not synced yet; its first list wakes every request
		}
		var requests []reconcile.Request
		for i := range list.Items {
			if graph.OfRequest(made, &list.Items[i]) {
				requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
			}
		}
		return requests
	}
}
