package graphdeployment

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	grovev1alpha1 "github.com/ai-dynamo/grove/operator/api/core/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/cluster/observe"
	"github.com/dynamo-operator/dynamo-operator/internal/core/deviceclaim"
	"github.com/dynamo-operator/dynamo-operator/internal/core/dormancy"
	"github.com/dynamo-operator/dynamo-operator/internal/core/fault"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/render"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/pairing"
	"github.com/dynamo-operator/dynamo-operator/internal/core/snapshot"
	"github.com/dynamo-operator/dynamo-operator/internal/core/validation"
	"github.com/dynamo-operator/dynamo-operator/internal/core/workload"
	"github.com/dynamo-operator/dynamo-operator/internal/core/workload/orchestrator"
	"github.com/dynamo-operator/dynamo-operator/internal/operator/controller"
)

// +kubebuilder:rbac:groups=nvidia.com,resources=dynamographdeployments,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=nvidia.com,resources=dynamographdeployments/status,verbs=patch
// +kubebuilder:rbac:groups=nvidia.com,resources=dynamographdeployments/finalizers,verbs=update
// +kubebuilder:rbac:groups=nvidia.com,resources=dynamocomponentdeployments;dynamographdeploymentscalingadapters,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=serviceaccounts;configmaps,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=persistentvolumeclaims,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=secrets,resourceNames=mpi-run-ssh-secret,verbs=create;patch
// +kubebuilder:rbac:groups=rbac.authorization.k8s.io,resources=roles;rolebindings,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=rbac.authorization.k8s.io,resources=clusterroles,resourceNames=dynamo-operator-planner;dynamo-operator-epp,verbs=bind
// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,verbs=get;list;watch;create;patch;delete,roleName=dynamo-operator-activation
// +kubebuilder:rbac:groups=networking.k8s.io,resources=networkpolicies,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=policy,resources=poddisruptionbudgets,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=inference.networking.k8s.io,resources=inferencepools,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=resource.k8s.io,resources=resourceclaimtemplates,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=grove.io,resources=podcliquesets,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=grove.io,resources=podcliques;podcliquescalinggroups,verbs=list;watch
// +kubebuilder:rbac:groups=grove.io,resources=podcliques/scale;podcliquescalinggroups/scale,verbs=patch
// +kubebuilder:rbac:groups=scheduling.run.ai,resources=queues,verbs=list;watch,roleName=dynamo-operator-manager-cluster
// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions,verbs=list;watch,roleName=dynamo-operator-manager-cluster
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch
//
// What pods of a graph may do to find each other, held here only to be granted on:
// +kubebuilder:rbac:groups="",resources=endpoints;pods,verbs=get;list;watch
// +kubebuilder:rbac:groups=discovery.k8s.io,resources=endpointslices,verbs=get;list;watch
// +kubebuilder:rbac:groups=nvidia.com,resources=dynamoworkermetadatas,verbs=create;get;list;watch;update;patch;delete

// Children are the kinds that a graph owns.
func Children() []observe.Child {
	return []observe.Child{
		{Object: &v1alpha1.DynamoComponentDeployment{}, List: &v1alpha1.DynamoComponentDeploymentList{}},
		{Object: &v1alpha1.DynamoGraphDeploymentScalingAdapter{}, List: &v1alpha1.DynamoGraphDeploymentScalingAdapterList{}},
		{Object: &corev1.ServiceAccount{}, List: &corev1.ServiceAccountList{}},
		{Object: &corev1.ConfigMap{}, List: &corev1.ConfigMapList{}},
		{Object: &corev1.Service{}, List: &corev1.ServiceList{}},
		{Object: &networkingv1.Ingress{}, List: &networkingv1.IngressList{}},
		{Object: &networkingv1.NetworkPolicy{}, List: &networkingv1.NetworkPolicyList{}},
		{Object: &policyv1.PodDisruptionBudget{}, List: &policyv1.PodDisruptionBudgetList{}},
		{Object: &rbacv1.Role{}, List: &rbacv1.RoleList{}},
		{Object: &rbacv1.RoleBinding{}, List: &rbacv1.RoleBindingList{}},
		{Object: &render.VirtualService{}, List: &render.VirtualServiceList{}, API: snapshot.APIIstio},
		{Object: &render.InferencePool{}, List: &render.InferencePoolList{}, API: snapshot.APIInference},
		{Object: &resourcev1.ResourceClaimTemplate{}, List: &resourcev1.ResourceClaimTemplateList{}, API: snapshot.APIDevices},
		{Object: &grovev1alpha1.PodCliqueSet{}, List: &grovev1alpha1.PodCliqueSetList{}, API: snapshot.APIGrove},
	}
}

// Revisions are the records of what a graph's workers were rolled out from, where they
// come in generations.
func Revisions() observe.Child {
	return observe.Child{Object: &appsv1.ControllerRevision{}, List: &appsv1.ControllerRevisionList{}}
}

// Claims hold data and are never pruned: what a graph no longer wants of these stays
// until the graph is deleted.
func Claims() observe.Child {
	return observe.Child{Object: &corev1.PersistentVolumeClaim{}, List: &corev1.PersistentVolumeClaimList{}}
}

// Beneath are the kinds that Grove makes from a graph's PodCliqueSet.
func Beneath() []observe.Child {
	return []observe.Child{
		{Object: &grovev1alpha1.PodClique{}, List: &grovev1alpha1.PodCliqueList{}, API: snapshot.APIGrove},
		{Object: &grovev1alpha1.PodCliqueScalingGroup{}, List: &grovev1alpha1.PodCliqueScalingGroupList{}, API: snapshot.APIGrove},
	}
}

// Observer reads what a reconcile over a graph needs to know.
type Observer struct {
	Children *observe.Observer
	Claims   *observe.Observer
	Beneath  *observe.Observer
	Facts    observe.Facts
	Pods     *observe.Inspector
	Rollouts Rollouts
	// NodeLabels are the labels of nodes that pods are given; nil where nobody knows.
	NodeLabels []string
	// Frontends are asked while workers are rolled out; nil asks none.
	Frontends Frontends
	// Workers are asked what became of requests while candidates are compared; nil asks none.
	Workers Workers
	// Budgets grants replicas; nil grants all.
	Budgets *Ledger
	// Leases holds those by which graphs are woken; nil knows none.
	Leases client.Reader
	// Admissions are what frontends said of late.
	Admissions *Admissions
	// Crashes are those of candidates.
	Crashes *Crashes
	// Expected are steps of rollouts that are on their way back to us.
	Expected *Expectations
}

// observation is everything that a decision about a graph is made from.
type observation struct {
	snapshot.Snapshot
	// graph is what the user meant. It is nil if invalid says why that cannot be told.
	graph    *graph.Graph
	invalid  error
	platform render.Platform
	provider workload.Provider
	builder  workload.GraphBuilder
	// claims are those that were created for the graph, absentClaims those that it
	// expects and that do not exist.
	claims       []graph.Object
	absentClaims []string
	// hasQueue is true if the queue that pods are scheduled from exists.
	hasQueue bool
	// sshKey is one for the namespace, where the graph needs it and there is none.
	sshKey []graph.Desired
	// devices says which templates and claims do not exist by which pods claim devices,
	// and uncounted what cannot be launched without.
	devices, uncounted error
	// refused says why the graph may not be reached as it asks to be.
	refused error
	// unread says what of all this could not be read.
	unread error

	generations
	budgeted
	signal
}

// urgency weighs a status: how far a restart or a rollout is must be written down before the
// next reconcile, a graph that nobody changed and that fails is somebody's alarm, and
// children have settled when nothing was written in this reconcile and every component
// has said something about what it was last told.
func (w observation) urgency(dgd *v1alpha1.DynamoGraphDeployment, now v1alpha1.DynamoGraphDeploymentStatus, err error) controller.Urgency {
	switch {
	case err != nil || !equality.Semantic.DeepEqual(now.Restart, dgd.Status.Restart) || !equality.Semantic.DeepEqual(now.Rollout, dgd.Status.Rollout):
		return controller.Urgent
	case dormancy.Told(now.Conditions) != dormancy.Told(dgd.Status.Conditions):
		return controller.Urgent // others count on what a sleeping graph does not hold
	case dgd.Status.ObservedGeneration == dgd.Generation && controller.BecameFalse(dgd.Status.Conditions, now.Conditions, v1alpha1.ConditionReady):
		return controller.Urgent
	case len(w.Written) > 0 || slices.ContainsFunc(w.Owned, func(o graph.Object) bool {
		dcd, ok := o.(*v1alpha1.DynamoComponentDeployment)
		return ok && dcd.Status.ObservedGeneration != dcd.Generation
	}):
		return controller.InProgress
	default:
		return controller.Settled
	}
}

// keepsData reports whether claims were created for the graph, or are about to be: its
// finalizer decides whether they go with it.
func (w observation) keepsData(g *graph.Graph) bool {
	return len(w.claims) > 0 || slices.ContainsFunc(g.Claims, func(c graph.Claim) bool { return c.Create })
}

func (w Observer) observe(ctx context.Context, dgd *v1alpha1.DynamoGraphDeployment, p render.Platform, routes controller.Routes, now time.Time) (seen observation, err error) {
	if p.Capabilities, err = w.Facts.Capabilities(ctx); err != nil {
		return seen, err
	}
	if p.Pod.PullSecrets, err = w.Facts.PullSecrets(ctx, dgd.Namespace); err != nil {
		return seen, err
	}
	if seen.Snapshot, err = w.Children.Children(ctx, dgd, p.Capabilities); err != nil {
		return seen, err
	}
	seen.Owned = slices.DeleteFunc(seen.Owned, func(o graph.Object) bool { return !graph.MadeFor(o, dgd) })
	claims, err := w.Claims.Children(ctx, dgd, nil)
	if err != nil {
		return seen, err
	}
	seen.claims = claims.Owned
	p.Defaults.Running = graph.ReadRunning(dgd, seen.Owned)
	seen.graph, seen.invalid = intent(dgd, p.Defaults)
	for _, object := range seen.Owned {
		set, ok := object.(*grovev1alpha1.PodCliqueSet)
		if !ok {
			continue
		}
		below, err := w.beneath(ctx, set, p.Capabilities)
		if err != nil {
			return seen, err
		}
		seen.Beneath = append(seen.Beneath, below...)
	}
	seen.Taken = now
	seen.provider = workload.Choose(dgd.Annotations, p.Capabilities, orchestrator.Running(seen.Snapshot))
	p.Queue = render.Queue(dgd.Annotations, p.Capabilities)
	seen.platform, seen.builder = p, p.GraphBuilder(dgd, seen.provider)
	seen.graph = pairing.Of(dgd, seen.graph, seen.provider, p.Defaults.Running, p.Generations)
	// Elsewhere the components look after their pods and routes.
	_, ownsPods := seen.builder.(workload.PodOwner)
	if ownsPods {
		if seen.Evidence, err = w.Pods.Inspect(ctx, dgd.Namespace, dgd.Name, ""); err != nil {
			return seen, err
		}
	}
	if seen.graph == nil {
		return seen, nil
	}
	if ownsPods || seen.graph.Paired {
		seen.refused = routes.OfGraph(ctx, dgd)
	}
	w.needs(ctx, &seen)
	if err := w.dormancy(ctx, dgd, &seen, now); err != nil {
		return seen, err
	}
	if err := w.budgets(ctx, dgd, &seen, now); err != nil {
		return seen, err
	}
	err = w.generations(ctx, dgd, &seen, now)
	return seen, err
}

// budgets has replicas granted, where the graph counts against a budget.
func (w Observer) budgets(ctx context.Context, dgd *v1alpha1.DynamoGraphDeployment, seen *observation, now time.Time) error {
	granted, limits, err := w.Budgets.grant(ctx, dgd, seen.wanted(seen.Scale(seen.graph)), now)
	seen.budgeted, seen.Granted = granted, granted.granted
	seen.Limited, seen.LimitedBy = limited(limits), limitedBy(limits)
	return err
}

// intent is what the user meant, if that is within the rules.
func intent(dgd *v1alpha1.DynamoGraphDeployment, d graph.Defaults) (*graph.Graph, error) {
	if err := validation.Fault(validation.GraphDeployment(dgd)); err != nil {
		return nil, err
	}
	return graph.FromGraphDeployment(dgd, d)
}

// needs reads what the graph needs to find around it.
func (w Observer) needs(ctx context.Context, seen *observation) {
	var claimErr, queueErr, keyErr, deviceErr error
	seen.absentClaims, claimErr = w.Facts.AbsentClaims(ctx, seen.graph.Namespace, seen.graph.Expected())
	if name := seen.queue(); name != "" {
		seen.hasQueue, queueErr = w.Facts.QueueExists(ctx, name)
	}
	seen.sshKey, keyErr = controller.SSHKey(ctx, w.Facts, seen.graph, seen.platform.Pod.SSHSecret)
	if seen.platform.Capabilities.All(snapshot.APIDevices) {
		var found deviceclaim.Requests
		if found, deviceErr = w.Facts.DeviceRequests(ctx, seen.graph.Namespace, deviceclaim.Refs(seen.graph)); deviceErr == nil {
			seen.devices = deviceclaim.Absent(seen.graph, found)
			seen.graph, seen.uncounted = deviceclaim.Count(seen.graph, found)
		}
	}
	seen.unread = errors.Join(claimErr, queueErr, keyErr, deviceErr)
}

// queue is the one that pods are scheduled from; empty for none.
func (w observation) queue() string {
	if queuer, ok := w.builder.(workload.Queuer); ok {
		return queuer.SchedulingQueue()
	}
	return ""
}

// beneath reads what Grove made from a set: cliques and scaling groups, and the
// cliques of those.
func (w Observer) beneath(ctx context.Context, owner graph.Object, have snapshot.Capabilities) ([]graph.Object, error) {
	below, err := w.Beneath.Children(ctx, owner, have)
	if err != nil {
		return nil, err
	}
	all := below.Owned
	for _, object := range below.Owned {
		if group, ok := object.(*grovev1alpha1.PodCliqueScalingGroup); ok {
			cliques, err := w.beneath(ctx, group, have)
			if err != nil {
				return nil, err
			}
			all = append(all, cliques...)
		}
	}
	return all, nil
}

// queueAbsent says that the queue does not exist which pods are scheduled from;
// nothing is made for a graph before it does.
func (w observation) queueAbsent() error {
	if w.queue() == "" || w.hasQueue {
		return nil
	}
	return fault.New(fault.Waiting, v1alpha1.ReasonQueueNotFound,
		"the KAI scheduler has no queue %s; make it, or name another in annotation %s", w.queue(), v1alpha1.AnnotationKaiQueue)
}

// unlaunchable says which engines cannot be launched yet, where the graph itself
// launches them; elsewhere their components say so.
func (w observation) unlaunchable() error {
	if _, ownsPods := w.builder.(workload.PodOwner); !ownsPods {
		return nil
	}
	return w.uncounted
}

// claimsAgain is when claims are looked for again: no watch tells of one that the
// graph does not own.
const claimsAgain = 30 * time.Second

// unmet says which claims that services mount do not exist; nil if all do.
func (w observation) unmet(g *graph.Graph) error {
	mounted := slices.DeleteFunc(slices.Clone(w.absentClaims), func(name string) bool { return !g.Mounts(name) })
	if len(mounted) == 0 {
		return nil
	}
	return fault.New(fault.Waiting, v1alpha1.ReasonClaimNotFound,
		"PersistentVolumeClaim %s does not exist; make it, or have it made by create in spec.pvcs", strings.Join(mounted, ", ")).Again(claimsAgain)
}

// warnings tell what of a graph will not be as it is written, here.
func (w observation) warnings(ctx context.Context, dgd *v1alpha1.DynamoGraphDeployment, r validation.IngressRules, o Observer) []string {
	told := validation.GraphDeploymentWarnings(dgd, r, validation.Orchestration{
		Provider: w.provider, WithoutKAI: !w.platform.Capabilities.All(snapshot.APIKAI), InPlace: !o.Rollouts.Generations, Unfit: w.unfit, NodeLabels: o.NodeLabels,
		Contract: graph.ContractRules{Forced: w.graph.Contract}, // children may have told it
	})
	return append(told, validation.NeighbourWarnings(w.graph, o.neighbours(ctx, dgd, w))...)
}

// neighbours are the other graphs of the namespace, as far as they can be read; what is
// only told of them waits for nobody.
func (w Observer) neighbours(ctx context.Context, dgd *v1alpha1.DynamoGraphDeployment, seen observation) []*graph.Graph {
	list, err := w.Facts.Graphs(ctx, dgd.Namespace)
	if err != nil {
		return nil
	}
	defaults := seen.platform.Defaults
	defaults.Running = graph.Running{}
	var others []*graph.Graph
	for _, other := range list {
		if other.Name == dgd.Name || other.DeletionTimestamp != nil {
			continue
		}
		if g, err := graph.FromGraphDeployment(other, defaults); err == nil {
			provider := workload.Provider(other.Annotations[v1alpha1.AnnotationWorkloadProvider])
			others = append(others, pairing.Of(other, g, provider, defaults.Running, seen.platform.Generations))
		}
	}
	return others
}

// migrating says what runs a graph elsewhere than its provider is to; nil when
// nothing does.
func (w observation) migrating() error {
	var left []string
	for _, ref := range orchestrator.Elsewhere(w.provider, w.Snapshot) {
		left = append(left, ref.Kind+" "+ref.Name)
	}
	if len(left) == 0 {
		return nil
	}
	return fault.New(fault.Waiting, v1alpha1.ReasonMigrating,
		"moves to provider %s once these are gone: %s", w.provider, strings.Join(left, ", "))
}
