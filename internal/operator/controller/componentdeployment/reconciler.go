// Package componentdeployment reconciles DynamoComponentDeployments: a graph of
// one component becomes a workload and Services.
package componentdeployment

import (
	"cmp"
	"context"
	"errors"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	lwsv1 "sigs.k8s.io/lws/api/leaderworkerset/v1"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/cluster/apply"
	"github.com/dynamo-operator/dynamo-operator/internal/cluster/observe"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/render"
	"github.com/dynamo-operator/dynamo-operator/internal/core/snapshot"
	"github.com/dynamo-operator/dynamo-operator/internal/core/status"
	"github.com/dynamo-operator/dynamo-operator/internal/core/validation"
	"github.com/dynamo-operator/dynamo-operator/internal/core/workload"
	"github.com/dynamo-operator/dynamo-operator/internal/core/workload/lws"
	"github.com/dynamo-operator/dynamo-operator/internal/operator/controller"
	"github.com/dynamo-operator/dynamo-operator/internal/operator/event"
	"github.com/dynamo-operator/dynamo-operator/internal/operator/tracing"
)

// +kubebuilder:rbac:groups=nvidia.com,resources=dynamocomponentdeployments,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=nvidia.com,resources=dynamocomponentdeployments/status,verbs=patch
// +kubebuilder:rbac:groups=nvidia.com,resources=dynamocomponentdeployments/finalizers,verbs=update
// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=services,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=networking.k8s.io,resources=ingresses,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=networking.istio.io,resources=virtualservices,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=leaderworkerset.x-k8s.io,resources=leaderworkersets,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=scheduling.volcano.sh,resources=podgroups,verbs=get;list;watch;create;patch;delete

// Children are the kinds that a component owns. Accounts, rights, ConfigMaps and
// InferencePools are those of a component that stands alone.
func Children() []observe.Child {
	return []observe.Child{
		{Object: &appsv1.Deployment{}, List: &appsv1.DeploymentList{}},
		{Object: &corev1.Service{}, List: &corev1.ServiceList{}},
		{Object: &networkingv1.Ingress{}, List: &networkingv1.IngressList{}},
		{Object: &corev1.ServiceAccount{}, List: &corev1.ServiceAccountList{}},
		{Object: &corev1.ConfigMap{}, List: &corev1.ConfigMapList{}},
		{Object: &rbacv1.Role{}, List: &rbacv1.RoleList{}},
		{Object: &rbacv1.RoleBinding{}, List: &rbacv1.RoleBindingList{}},
		{Object: &render.VirtualService{}, List: &render.VirtualServiceList{}, API: snapshot.APIIstio},
		{Object: &render.InferencePool{}, List: &render.InferencePoolList{}, API: snapshot.APIInference},
		{Object: &lws.PodGroup{}, List: &lws.PodGroupList{}, API: snapshot.APIVolcano},
		{Object: &lwsv1.LeaderWorkerSet{}, List: &lwsv1.LeaderWorkerSetList{}, API: snapshot.APILeaderWorkerSet},
	}
}

// Reconciler brings a component's children about and says how far they are.
type Reconciler struct {
	Client   client.Client
	Observer *observe.Observer
	Facts    observe.Facts
	Pods     *observe.Inspector
	Applier  *apply.Applier
	Cleanup  controller.Cleanup
	Events   events.EventRecorder
	Clock    clock.PassiveClock
	// StatusThrottle puts reports off while children are just being made.
	StatusThrottle *controller.StatusThrottle
	Platform       render.Platform
	// Routes judges what components are reached by.
	Routes controller.Routes
}

// Reconcile reconciles one component.
func (r *Reconciler) Reconcile(ctx context.Context, dcd *v1alpha1.DynamoComponentDeployment) (reconcile.Result, error) {
	if dcd.DeletionTimestamp != nil {
		return r.leave(ctx, dcd)
	}
	snap, platform, err := r.observe(ctx, dcd)
	if err != nil {
		return reconcile.Result{}, err
	}
	if err := validation.Fault(validation.ComponentDeployment(dcd)); err != nil {
		return r.report(ctx, dcd, workload.Progress{}, err)
	}
	g, err := graph.FromComponentDeployment(dcd, platform.Defaults)
	if err != nil {
		return r.report(ctx, dcd, workload.Progress{}, err)
	}
	if err := errors.Join(r.Cleanup.EnsureFinalizer(ctx, dcd, g.Registrations(), false), r.record(ctx, dcd, g, platform.Defaults.Running)); err != nil {
		return r.report(ctx, dcd, workload.Progress{}, err)
	}
	refused := r.Routes.OfComponent(ctx, dcd)
	if refused != nil {
		g = g.WithoutIngress()
	}
	wanted, unrendered := render.Component(g, platform)
	unrendered = errors.Join(unrendered, refused)
	key, err := r.sshKey(ctx, g)
	if err != nil {
		return r.report(ctx, dcd, workload.Progress{}, err)
	}
	wanted = append(lws.Turns(g.Components[0], wanted, snap), key...)
	prunable := snap.Owned
	if unrendered != nil {
		prunable = nil // what cannot be rendered any more goes on running
	}
	tracing.Decided(ctx, "wanted", len(wanted), "owned", len(snap.Owned))
	changes, err := r.Applier.Sync(ctx, dcd, wanted, prunable)
	if !bornOfGraph(dcd) {
		event.Applied(r.Events, dcd, changes)
	}
	snap.Written, snap.Postponed = changes.Written(), changes.Postponed()
	if apply.OwnerDeleted(err) {
		return reconcile.Result{}, nil
	}
	err = errors.Join(unrendered, err)
	progress := render.Progress(g, snap, platform)
	if result, off := r.StatusThrottle.Defer(dcd, urgency(dcd, r.status(dcd, progress, err), snap, err), r.Clock.Now()); off {
		return result, nil
	}
	return r.report(ctx, dcd, progress, err)
}

// record writes the contract down that a component stands alone under, so that it
// stands whatever is configured later.
func (r *Reconciler) record(ctx context.Context, dcd *v1alpha1.DynamoComponentDeployment, g *graph.Graph, running graph.Running) error {
	note := graph.RecordComponent(dcd, g, running)
	for key, value := range note {
		if written, found := dcd.Annotations[key]; !found || written != value {
			return r.Applier.Annotate(ctx, dcd, note)
		}
	}
	return nil
}

// sshKey is the key that a component needs and that no graph makes for it.
func (r *Reconciler) sshKey(ctx context.Context, g *graph.Graph) ([]graph.Desired, error) {
	if !g.Standalone {
		return nil, nil
	}
	return controller.SSHKey(ctx, r.Facts, g, r.Platform.Pod.SSHSecret)
}

func urgency(dcd *v1alpha1.DynamoComponentDeployment, now v1alpha1.DynamoComponentDeploymentStatus, s snapshot.Snapshot, err error) controller.Urgency {
	switch {
	case err != nil:
		return controller.Urgent
	case dcd.Status.ObservedGeneration == dcd.Generation && controller.BecameFalse(dcd.Status.Conditions, now.Conditions, v1alpha1.ConditionAvailable):
		return controller.Urgent
	case len(s.Written) > 0:
		return controller.InProgress
	default:
		return controller.Settled
	}
}

// bornOfGraph reports whether this is the first reconcile over a component of a graph:
// that its children are made is no news to those who read that it was.
func bornOfGraph(dcd *v1alpha1.DynamoComponentDeployment) bool {
	return dcd.Status.ObservedGeneration == 0 && graph.ParentGraph(dcd) != ""
}

// leave removes what a component has outside the cluster; the garbage collector
// does the rest. Nothing is validated: what cannot be read has left nothing.
func (r *Reconciler) leave(ctx context.Context, dcd *v1alpha1.DynamoComponentDeployment) (reconcile.Result, error) {
	var keys []graph.Registration
	if g, err := graph.FromComponentDeployment(dcd, r.Platform.Defaults); err == nil {
		keys = g.Registrations()
	}
	wait, err := r.Cleanup.Finalize(ctx, dcd, keys)
	if wait == 0 {
		return reconcile.Result{}, err
	}
	result, err := r.report(ctx, dcd, workload.Progress{}, err)
	result.RequeueAfter = wait
	return result, err
}

func (r *Reconciler) observe(ctx context.Context, dcd *v1alpha1.DynamoComponentDeployment) (s snapshot.Snapshot, p render.Platform, err error) {
	p = r.Platform
	if p.Capabilities, err = r.Facts.Capabilities(ctx); err != nil {
		return s, p, err
	}
	if p.Pod.PullSecrets, err = r.Facts.PullSecrets(ctx, dcd.Namespace); err != nil {
		return s, p, err
	}
	if p.Pod.Account, err = r.Facts.Account(ctx, dcd.Namespace); err != nil {
		return s, p, err
	}
	if s, err = r.Observer.Children(ctx, dcd, p.Capabilities); err != nil {
		return s, p, err
	}
	p.Defaults.Running = graph.ReadRunning(dcd, s.Owned)
	s.Taken = r.Clock.Now()
	s.Evidence, err = r.Pods.Inspect(ctx, dcd.Namespace, cmp.Or(graph.ParentGraph(dcd), dcd.Name), cmp.Or(dcd.Spec.ServiceName, dcd.Name), sets(s)...)
	return s, p, err
}

// sets names the LeaderWorkerSets among a component's children.
func sets(s snapshot.Snapshot) []string {
	var names []string
	for _, object := range s.Owned {
		if set, ok := object.(*lwsv1.LeaderWorkerSet); ok {
			names = append(names, set.Name)
		}
	}
	return names
}

func (r *Reconciler) status(dcd *v1alpha1.DynamoComponentDeployment, p workload.Progress, err error) v1alpha1.DynamoComponentDeploymentStatus {
	return status.Component(dcd, p, err, metav1.NewTime(r.Clock.Now()))
}

// report tells what was seen before the writes; the watch on the children
// brings the next truth, and the clock that nothing has moved.
func (r *Reconciler) report(ctx context.Context, dcd *v1alpha1.DynamoComponentDeployment, p workload.Progress, err error) (reconcile.Result, error) {
	if dcd.Status.ObservedGeneration != dcd.Generation {
		event.Warned(r.Events, dcd, validation.ComponentDeploymentWarnings(dcd, r.Routes.Rules))
	}
	result, err := controller.PatchStatus(ctx, r.Client, dcd, &dcd.Status, r.status(dcd, p, err), err)
	if err == nil && result.IsZero() && !p.Due.IsZero() {
		result.RequeueAfter = max(time.Second, p.Due.Sub(r.Clock.Now()))
	}
	return result, err
}
