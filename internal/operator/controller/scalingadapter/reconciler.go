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
	"github.com/dynamo-operator/dynamo-operator/internal/core/status"
	"github.com/dynamo-operator/dynamo-operator/internal/operator/controller"
)

// +kubebuilder:rbac:groups=nvidia.com,resources=dynamographdeploymentscalingadapters,verbs=get;list;watch
// +kubebuilder:rbac:groups=nvidia.com,resources=dynamographdeploymentscalingadapters/status,verbs=patch

// Reconciler reports on scaling adapters.
type Reconciler struct {
	Client client.Client
	Clock  clock.PassiveClock
}

// steps are those of a reconcile over an adapter: what is decided is its status.
type (
	steps   = controller.Steps[*v1alpha1.DynamoGraphDeploymentScalingAdapter, *v1alpha1.DynamoGraphDeployment, v1alpha1.DynamoGraphDeploymentScalingAdapterStatus]
	outcome = controller.Outcome[*v1alpha1.DynamoGraphDeployment, v1alpha1.DynamoGraphDeploymentScalingAdapterStatus]
)

// Reconcile reconciles one adapter.
func (r *Reconciler) Reconcile(ctx context.Context, a *v1alpha1.DynamoGraphDeploymentScalingAdapter) (reconcile.Result, error) {
	return controller.Run(ctx, a, steps{Observe: r.graph, Decide: r.status, Report: r.report})
}

// graph reads the graph of an adapter; nil if there is none.
func (r *Reconciler) graph(ctx context.Context, a *v1alpha1.DynamoGraphDeploymentScalingAdapter) (*v1alpha1.DynamoGraphDeployment, error) {
	dgd := &v1alpha1.DynamoGraphDeployment{}
	err := r.Client.Get(ctx, types.NamespacedName{Namespace: a.Namespace, Name: a.Spec.DGDRef.Name}, dgd)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return dgd, err
}

func (r *Reconciler) status(a *v1alpha1.DynamoGraphDeploymentScalingAdapter, dgd *v1alpha1.DynamoGraphDeployment) v1alpha1.DynamoGraphDeploymentScalingAdapterStatus {
	return status.Adapter(a, dgd, metav1.NewTime(r.Clock.Now()))
}

func (r *Reconciler) report(ctx context.Context, a *v1alpha1.DynamoGraphDeploymentScalingAdapter, o outcome) (reconcile.Result, error) {
	return controller.Finish(ctx, r.Client, a, &a.Status, o.Decided, false, nil)
}
