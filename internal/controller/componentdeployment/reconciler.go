// Package componentdeployment reconciles DynamoComponentDeployments: a graph of
// one component becomes a workload and a Service.
package componentdeployment

import (
	"context"
	"errors"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
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
	"github.com/dynamo-operator/dynamo-operator/internal/observe"
	"github.com/dynamo-operator/dynamo-operator/internal/render"
	"github.com/dynamo-operator/dynamo-operator/internal/render/pod"
	"github.com/dynamo-operator/dynamo-operator/internal/snapshot"
	"github.com/dynamo-operator/dynamo-operator/internal/status"
	"github.com/dynamo-operator/dynamo-operator/internal/validation"
	"github.com/dynamo-operator/dynamo-operator/internal/workload"
)

// +kubebuilder:rbac:groups=nvidia.com,resources=dynamocomponentdeployments,verbs=get;list;watch
// +kubebuilder:rbac:groups=nvidia.com,resources=dynamocomponentdeployments/status,verbs=patch
// +kubebuilder:rbac:groups=nvidia.com,resources=dynamocomponentdeployments/finalizers,verbs=update
// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=services,verbs=get;list;watch;create;patch;delete

// Children are the kinds that a component controls. The accounts and rights
// among them are those of a component that stands alone.
func Children() []observe.Child {
	return []observe.Child{
		{Object: &appsv1.Deployment{}, List: &appsv1.DeploymentList{}},
		{Object: &corev1.Service{}, List: &corev1.ServiceList{}},
		{Object: &corev1.ServiceAccount{}, List: &corev1.ServiceAccountList{}},
		{Object: &rbacv1.Role{}, List: &rbacv1.RoleList{}},
		{Object: &rbacv1.RoleBinding{}, List: &rbacv1.RoleBindingList{}},
	}
}

// Reconciler brings a component's children about and says how far they are.
type Reconciler struct {
	Client   client.Client
	Observer *observe.Observer
	Applier  *apply.Applier
	Events   events.EventRecorder
	Clock    clock.PassiveClock
	Defaults graph.Defaults
	Platform pod.Platform
}

// Reconcile makes one pass over a component.
func (r *Reconciler) Reconcile(ctx context.Context, dcd *v1alpha1.DynamoComponentDeployment) (reconcile.Result, error) {
	if dcd.DeletionTimestamp != nil {
		return reconcile.Result{}, nil // the garbage collector does the rest
	}
	snap, err := r.Observer.Children(ctx, dcd)
	if err != nil {
		return reconcile.Result{}, err
	}
	if err := validation.Fault(validation.ComponentDeployment(dcd)); err != nil {
		return r.report(ctx, dcd, nil, snap, err)
	}
	g, err := graph.FromComponentDeployment(dcd, r.Defaults)
	if err != nil {
		return r.report(ctx, dcd, nil, snap, err)
	}
	want, unrendered := render.Component(g, r.Platform)
	prunable := snap.Owned
	if unrendered != nil {
		prunable = nil // what cannot be rendered any more goes on running
	}
	changes, err := r.Applier.Sync(ctx, dcd, want, prunable)
	event.Applied(r.Events, dcd, changes)
	return r.report(ctx, dcd, g, snap, errors.Join(unrendered, err))
}

// report tells what was seen before the writes; the watch on the children
// brings the next truth.
func (r *Reconciler) report(ctx context.Context, dcd *v1alpha1.DynamoComponentDeployment, g *graph.Graph, snap snapshot.Snapshot, err error) (reconcile.Result, error) {
	var progress workload.Progress
	if g != nil {
		progress = render.Progress(g, snap)
	}
	now := status.Component(dcd, progress, err, metav1.NewTime(r.Clock.Now()))
	return controller.Report(ctx, r.Client, dcd, &dcd.Status, now, err)
}
