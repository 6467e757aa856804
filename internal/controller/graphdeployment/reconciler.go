// Package graphdeployment reconciles DynamoGraphDeployments: observe, decide
// without touching anything, apply, report.
package graphdeployment

import (
	"context"

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
	"github.com/dynamo-operator/dynamo-operator/internal/snapshot"
	"github.com/dynamo-operator/dynamo-operator/internal/status"
	"github.com/dynamo-operator/dynamo-operator/internal/validation"
)

// +kubebuilder:rbac:groups=nvidia.com,resources=dynamographdeployments,verbs=get;list;watch
// +kubebuilder:rbac:groups=nvidia.com,resources=dynamographdeployments/status,verbs=patch
// +kubebuilder:rbac:groups=nvidia.com,resources=dynamographdeployments/finalizers,verbs=update
// +kubebuilder:rbac:groups=nvidia.com,resources=dynamocomponentdeployments,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=serviceaccounts,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=rbac.authorization.k8s.io,resources=roles;rolebindings,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch
//
// What pods of a graph may do to find each other, held here only to be granted on:
// +kubebuilder:rbac:groups="",resources=endpoints,verbs=get;list;watch
// +kubebuilder:rbac:groups=discovery.k8s.io,resources=endpointslices,verbs=get;list;watch
// +kubebuilder:rbac:groups=nvidia.com,resources=dynamoworkermetadatas,verbs=create;get;list;watch;update;patch;delete

// Children are the kinds that a graph controls.
func Children() []observe.Child {
	return []observe.Child{
		{Object: &v1alpha1.DynamoComponentDeployment{}, List: &v1alpha1.DynamoComponentDeploymentList{}},
		{Object: &corev1.ServiceAccount{}, List: &corev1.ServiceAccountList{}},
		{Object: &rbacv1.Role{}, List: &rbacv1.RoleList{}},
		{Object: &rbacv1.RoleBinding{}, List: &rbacv1.RoleBindingList{}},
	}
}

// Reconciler brings a graph's children about and says how far they are.
type Reconciler struct {
	Client   client.Client
	Observer *observe.Observer
	Applier  *apply.Applier
	Events   events.EventRecorder
	Clock    clock.PassiveClock
	Defaults graph.Defaults
}

// Reconcile makes one pass over a graph.
func (r *Reconciler) Reconcile(ctx context.Context, dgd *v1alpha1.DynamoGraphDeployment) (reconcile.Result, error) {
	if dgd.DeletionTimestamp != nil {
		return reconcile.Result{}, nil // the garbage collector does the rest
	}
	snap, err := r.Observer.Children(ctx, dgd)
	if err != nil {
		return reconcile.Result{}, err
	}
	if err := validation.Fault(validation.GraphDeployment(dgd)); err != nil {
		return r.report(ctx, dgd, nil, snap, err)
	}
	g, err := graph.FromGraphDeployment(dgd, r.Defaults)
	if err != nil {
		return r.report(ctx, dgd, nil, snap, err)
	}
	changes, err := r.Applier.Sync(ctx, dgd, render.Graph(dgd, g), snap.Owned)
	event.Applied(r.Events, dgd, changes)
	return r.report(ctx, dgd, g, snap, err)
}

// report tells what was seen before the writes; the watch on the children
// brings the next truth.
func (r *Reconciler) report(ctx context.Context, dgd *v1alpha1.DynamoGraphDeployment, g *graph.Graph, snap snapshot.Snapshot, err error) (reconcile.Result, error) {
	now := status.Graph(dgd, g, snap, err, metav1.NewTime(r.Clock.Now()))
	return controller.Report(ctx, r.Client, dgd, &dgd.Status, now, err)
}
