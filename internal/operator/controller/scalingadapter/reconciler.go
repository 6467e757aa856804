// Package scalingadapter reconciles DynamoGraphDeploymentScalingAdapters. They
// are read by the graph that owns them; all there is to do here is to say what
// came of it.
package scalingadapter

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/cluster/observe"
	"github.com/dynamo-operator/dynamo-operator/internal/core/status"
	"github.com/dynamo-operator/dynamo-operator/internal/operator/controller"
)

// +kubebuilder:rbac:groups=nvidia.com,resources=dynamographdeploymentscalingadapters,verbs=get;list;watch
// +kubebuilder:rbac:groups=nvidia.com,resources=dynamographdeploymentscalingadapters/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=pods,verbs=list;watch

// Reconciler reports on scaling adapters.
type Reconciler struct {
	Client client.Client
	Facts  observe.Facts
	Clock  clock.PassiveClock
}

// observation is what an adapter is about.
type observation struct {
	graph *v1alpha1.DynamoGraphDeployment // nil if there is none
	// ending are the pods of the service that do.
	ending int
}

// steps are those of a reconcile over an adapter: what is decided is its status.
type (
	steps   = controller.Steps[*v1alpha1.DynamoGraphDeploymentScalingAdapter, observation, v1alpha1.DynamoGraphDeploymentScalingAdapterStatus]
	outcome = controller.Outcome[observation, v1alpha1.DynamoGraphDeploymentScalingAdapterStatus]
)

// Reconcile reconciles one adapter.
func (r *Reconciler) Reconcile(ctx context.Context, a *v1alpha1.DynamoGraphDeploymentScalingAdapter) (reconcile.Result, error) {
	return controller.Run(ctx, a, steps{Observe: r.observe, Decide: r.status, Report: r.report})
}

func (r *Reconciler) observe(ctx context.Context, a *v1alpha1.DynamoGraphDeploymentScalingAdapter) (observation, error) {
	dgd, ref := &v1alpha1.DynamoGraphDeployment{}, a.Spec.DGDRef
	err := r.Client.Get(ctx, types.NamespacedName{Namespace: a.Namespace, Name: ref.Name}, dgd)
	if apierrors.IsNotFound(err) {
		return observation{}, nil
	} else if err != nil {
		return observation{}, err
	}
	pods, err := r.Facts.PodsByService(ctx, a.Namespace, ref.Name)
	return observation{dgd, pods[ref.ServiceName].Ending}, err
}

func (r *Reconciler) status(a *v1alpha1.DynamoGraphDeploymentScalingAdapter, seen observation) v1alpha1.DynamoGraphDeploymentScalingAdapterStatus {
	return status.Adapter(a, seen.graph, seen.ending, metav1.NewTime(r.Clock.Now()))
}

func (r *Reconciler) report(ctx context.Context, a *v1alpha1.DynamoGraphDeploymentScalingAdapter, o outcome) (reconcile.Result, error) {
	return controller.Finish(ctx, r.Client, a, &a.Status, o.Decided, false, nil)
}
