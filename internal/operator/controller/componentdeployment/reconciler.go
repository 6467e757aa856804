// Package componentdeployment reconciles DynamoComponentDeployments: a graph of
// one component becomes a workload and Services.
package componentdeployment

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	lwsv1 "sigs.k8s.io/lws/api/leaderworkerset/v1"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/cluster/apply"
	"github.com/dynamo-operator/dynamo-operator/internal/cluster/observe"
	"github.com/dynamo-operator/dynamo-operator/internal/core/deviceclaim"
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

// Children are the kinds that a component owns. Accounts, rights, ConfigMaps,
// InferencePools and templates of claims are those of a component that stands alone.
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
		{Object: &resourcev1.ResourceClaimTemplate{}, List: &resourcev1.ResourceClaimTemplateList{}, API: snapshot.APIDevices},
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

// steps are those of a reconcile over a component, outcome is what one comes to.
type (
	steps   = controller.Steps[*v1alpha1.DynamoComponentDeployment, observation, decision]
	outcome = controller.Outcome[observation, decision]
)

// Reconcile reconciles one component. What an earlier operator made for a graph waits
// until that has adopted it: the graph tells its components which contract they have,
// and pods of another would be replaced.
func (r *Reconciler) Reconcile(ctx context.Context, dcd *v1alpha1.DynamoComponentDeployment) (reconcile.Result, error) {
	if dcd.DeletionTimestamp == nil && graph.ParentGraph(dcd) != "" && apply.Unadopted(dcd) {
		return reconcile.Result{}, nil // the event of its adoption brings the next
	}
	return controller.Run(ctx, dcd, steps{Finalize: r.finalize, Observe: r.observe, Decide: r.decide, Apply: r.apply, Report: r.report})
}

// observation is everything that a decision about a component is made from.
type observation struct {
	snapshot.Snapshot
	// graph is what the user meant. It is nil if invalid says why that cannot be told.
	graph    *graph.Graph
	invalid  error
	platform render.Platform
	// sshKey is one for the namespace, where the component needs it, no graph makes
	// it and there is none; unread says why that is not known.
	sshKey []graph.Desired
	unread error
	// uncounted says why the component cannot be launched: it has the GPUs that it
	// claims, and their number is not known.
	uncounted error
	// refused says why the component may not be reached as it asks to be.
	refused error
}

func (r *Reconciler) observe(ctx context.Context, dcd *v1alpha1.DynamoComponentDeployment) (seen observation, err error) {
	p := r.Platform
	if p.Capabilities, err = r.Facts.Capabilities(ctx); err != nil {
		return seen, err
	}
	if p.Pod.PullSecrets, err = r.Facts.PullSecrets(ctx, dcd.Namespace); err != nil {
		return seen, err
	}
	if p.Pod.Account, err = r.Facts.Account(ctx, dcd.Namespace); err != nil {
		return seen, err
	}
	if seen.Snapshot, err = r.Observer.Children(ctx, dcd, p.Capabilities); err != nil {
		return seen, err
	}
	p.Defaults.Running = graph.ReadRunning(dcd, seen.Owned)
	seen.platform = p
	seen.graph, seen.invalid = intent(dcd, p.Defaults)
	seen.Taken = r.Clock.Now()
	if seen.Evidence, err = r.Pods.Inspect(ctx, dcd.Namespace, cmp.Or(graph.ParentGraph(dcd), dcd.Name), cmp.Or(dcd.Spec.ServiceName, dcd.Name), sets(seen.Snapshot)...); err != nil {
		return seen, err
	}
	if seen.graph == nil {
		return seen, nil
	}
	if seen.graph.Standalone {
		seen.sshKey, seen.unread = controller.SSHKey(ctx, r.Facts, seen.graph, p.Pod.SSHSecret)
	}
	if p.Capabilities.All(snapshot.APIDevices) {
		found, err := r.Facts.DeviceRequests(ctx, dcd.Namespace, deviceclaim.Refs(seen.graph))
		if err != nil {
			return seen, err
		}
		seen.graph, seen.uncounted = deviceclaim.Count(seen.graph, found)
	}
	seen.refused = r.Routes.OfComponent(ctx, dcd)
	return seen, nil
}

// intent is what the user meant, if that is within the rules.
func intent(dcd *v1alpha1.DynamoComponentDeployment, d graph.Defaults) (*graph.Graph, error) {
	if err := validation.Fault(validation.ComponentDeployment(dcd)); err != nil {
		return nil, err
	}
	return graph.FromComponentDeployment(dcd, d)
}

// decision is what follows from an observation: what is to be written, if anything
// is, and what keeps something from being done as it is written.
type decision struct {
	// graph is what the plan carries out; nil if that is nothing.
	graph   *graph.Graph
	plan    *apply.Plan
	problem error
}

// decide is pure: the same component and observation give the same decision.
func (r *Reconciler) decide(dcd *v1alpha1.DynamoComponentDeployment, seen observation) decision {
	if problem := errors.Join(seen.invalid, seen.unread, seen.uncounted); problem != nil {
		return decision{plan: seen.noteTakeover(dcd), problem: problem}
	}
	g := seen.graph
	if seen.refused != nil {
		g = g.WithoutIngress()
	}
	desired, err := render.Component(g, seen.platform)
	d := decision{graph: seen.graph, problem: errors.Join(err, seen.refused), plan: &apply.Plan{
		Finalizer:   r.Cleanup.Needed(g.Registrations()),
		Annotations: graph.RecordComponent(dcd, g, seen.platform.Defaults.Running),
		Children:    append(lws.Turns(g.Components[0], desired, seen.Snapshot), seen.sshKey...),
	}}
	if d.problem == nil {
		d.plan.Owned = owned(g.Components[0], seen.Owned) // what cannot be rendered any more goes on running
	}
	return d
}

// noteTakeover is the plan for a component that cannot be carried out now: nothing, but
// that what the original had carried out is remembered as that.
func (w observation) noteTakeover(dcd *v1alpha1.DynamoComponentDeployment) *apply.Plan {
	return apply.Note(dcd, graph.RecordComponentTakeover(dcd, w.platform.Defaults.Running))
}

// owned are the children that go if they are not wanted. What a graph takes over from a
// frontend may still look like the component's.
func owned(c graph.Component, all []graph.Object) []graph.Object {
	if !c.Fronted() {
		return all
	}
	return slices.DeleteFunc(slices.Clone(all), func(o graph.Object) bool {
		return o.GetName() == graph.ServiceName(c.Graph, c.Name) || o.GetName() == graph.ComponentName(c.Graph, c.Name)
	})
}

func (r *Reconciler) apply(ctx context.Context, dcd *v1alpha1.DynamoComponentDeployment, d decision) (apply.ChangeSet, error) {
	if d.plan == nil {
		return nil, nil
	}
	tracing.Decided(ctx, "wanted", len(d.plan.Children), "owned", len(d.plan.Owned))
	changes, err := r.Applier.Apply(ctx, dcd, *d.plan)
	if !bornOfGraph(dcd) {
		event.Applied(r.Events, dcd, changes)
	}
	return changes, err
}

// report also has the component looked at again when time will tell that nothing
// has moved.
func (r *Reconciler) report(ctx context.Context, dcd *v1alpha1.DynamoComponentDeployment, o outcome) (reconcile.Result, error) {
	seen, err := o.Seen, errors.Join(o.Decided.problem, o.Err)
	if errors.Is(o.Err, apply.ErrOwnerUnwritten) && seen.noteTakeover(dcd) != nil {
		return reconcile.Result{}, err // a status of ours would hide what could not be noted
	}
	seen.Written, seen.Postponed = o.Changes.Written(), o.Changes.Postponed()
	var progress workload.Progress
	if o.Decided.graph != nil {
		progress = render.Progress(o.Decided.graph, seen.Snapshot, seen.platform)
	}
	now := status.Component(dcd, progress, err, metav1.NewTime(r.Clock.Now()))
	if result, off := r.StatusThrottle.Defer(dcd, urgency(dcd, now, seen.Snapshot, err), r.Clock.Now()); off {
		return result, nil
	}
	if dcd.Status.ObservedGeneration != dcd.Generation {
		event.Warned(r.Events, dcd, validation.ComponentDeploymentWarnings(dcd, r.Routes.Rules))
	}
	result, err := controller.Finish(ctx, r.Client, dcd, &dcd.Status, now, false, err)
	if err == nil && result.IsZero() && !progress.Due.IsZero() {
		result.RequeueAfter = max(time.Second, progress.Due.Sub(r.Clock.Now()))
	}
	return result, err
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

// finalize removes what a component has outside the cluster; the garbage collector
// does the rest. Nothing is validated: what cannot be read has left nothing.
func (r *Reconciler) finalize(ctx context.Context, dcd *v1alpha1.DynamoComponentDeployment) (reconcile.Result, error) {
	var keys []graph.Registration
	if g, err := graph.FromComponentDeployment(dcd, r.Platform.Defaults); err == nil {
		keys = g.Registrations()
	}
	wait, err := r.Cleanup.Finalize(ctx, dcd, keys)
	if wait == 0 {
		return reconcile.Result{}, err
	}
	result, err := r.report(ctx, dcd, outcome{Err: err})
	result.RequeueAfter = wait
	return result, err
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
