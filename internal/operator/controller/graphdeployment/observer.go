package graphdeployment

import (
	"context"
	"slices"
	"strings"
	"time"

	grovev1alpha1 "github.com/ai-dynamo/grove/operator/api/core/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/cluster/observe"
	"github.com/dynamo-operator/dynamo-operator/internal/core/fault"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/render"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout"
	"github.com/dynamo-operator/dynamo-operator/internal/core/snapshot"
	"github.com/dynamo-operator/dynamo-operator/internal/core/status"
	"github.com/dynamo-operator/dynamo-operator/internal/core/validation"
	"github.com/dynamo-operator/dynamo-operator/internal/core/workload"
	"github.com/dynamo-operator/dynamo-operator/internal/core/workload/grove"
	"github.com/dynamo-operator/dynamo-operator/internal/operator/controller"
)

// +kubebuilder:rbac:groups=nvidia.com,resources=dynamographdeployments,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=nvidia.com,resources=dynamographdeployments/status,verbs=patch
// +kubebuilder:rbac:groups=nvidia.com,resources=dynamographdeployments/finalizers,verbs=update
// +kubebuilder:rbac:groups=nvidia.com,resources=dynamocomponentdeployments;dynamographdeploymentscalingadapters,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=serviceaccounts;configmaps,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=persistentvolumeclaims,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=secrets,resourceNames=mpi-run-ssh-secret,verbs=create;patch
// +kubebuilder:rbac:groups=rbac.authorization.k8s.io,resources=roles;rolebindings,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=rbac.authorization.k8s.io,resources=clusterroles,resourceNames=dynamo-operator-planner;dynamo-operator-epp,verbs=bind
// +kubebuilder:rbac:groups=networking.k8s.io,resources=networkpolicies,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=inference.networking.k8s.io,resources=inferencepools,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=resource.k8s.io,resources=resourceclaimtemplates,verbs=get;list;watch;create;patch
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

// Children are the kinds that a graph owns. Claims have no list: they hold data
// and are never pruned, but one that was deleted is made again.
func Children() []observe.Child {
	return []observe.Child{
		{Object: &v1alpha1.DynamoComponentDeployment{}, List: &v1alpha1.DynamoComponentDeploymentList{}},
		{Object: &v1alpha1.DynamoGraphDeploymentScalingAdapter{}, List: &v1alpha1.DynamoGraphDeploymentScalingAdapterList{}},
		{Object: &corev1.ServiceAccount{}, List: &corev1.ServiceAccountList{}},
		{Object: &corev1.ConfigMap{}, List: &corev1.ConfigMapList{}},
		{Object: &corev1.PersistentVolumeClaim{}},
		{Object: &corev1.Service{}, List: &corev1.ServiceList{}},
		{Object: &networkingv1.Ingress{}, List: &networkingv1.IngressList{}},
		{Object: &networkingv1.NetworkPolicy{}, List: &networkingv1.NetworkPolicyList{}},
		{Object: &rbacv1.Role{}, List: &rbacv1.RoleList{}},
		{Object: &rbacv1.RoleBinding{}, List: &rbacv1.RoleBindingList{}},
		{Object: &render.VirtualService{}, List: &render.VirtualServiceList{}, API: snapshot.APIIstio},
		{Object: &render.InferencePool{}, List: &render.InferencePoolList{}, API: snapshot.APIInference},
		{Object: &grovev1alpha1.PodCliqueSet{}, List: &grovev1alpha1.PodCliqueSetList{}, API: snapshot.APIGrove},
	}
}

// Claims are the children that hold data. They are no others' business: what a
// graph no longer wants of these stays.
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
}

// observation is what was seen for one reconcile, and what follows from it.
type observation struct {
	snapshot.Snapshot
	// claims are those that would go with the graph.
	claims   []graph.Object
	platform render.Platform
	provider workload.Provider
	restart  rollout.Step
	// absentClaims are those that the graph expects and that do not exist.
	absentClaims []string
}

// urgency weighs a status: how far a restart is must be written down before the
// next reconcile, a graph that nobody changed and that fails is somebody's alarm, and
// children have settled when nothing was written in this reconcile and every component
// has said something about what it was last told.
func (w observation) urgency(dgd *v1alpha1.DynamoGraphDeployment, now v1alpha1.DynamoGraphDeploymentStatus, err error) controller.Urgency {
	switch {
	case err != nil || !equality.Semantic.DeepEqual(now.Restart, dgd.Status.Restart):
		return controller.Urgent
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

// keepsData reports whether the graph has claims that go with it, or is about to: it
// is held until it is known whether they are to.
func (w observation) keepsData(g *graph.Graph) bool {
	return len(w.claims) > 0 || slices.ContainsFunc(g.Claims, func(c graph.Claim) bool { return c.Create })
}

// orchestration is what runs the graph, for those who say how far it is.
func (w observation) orchestration() status.Orchestration {
	return status.Orchestration{Provider: w.provider, Deadline: w.platform.ProgressDeadline}
}

func (w Observer) observe(ctx context.Context, dgd *v1alpha1.DynamoGraphDeployment, p render.Platform, now time.Time) (seen observation, err error) {
	if p.Capabilities, err = w.Facts.Capabilities(ctx); err != nil {
		return seen, err
	}
	if p.Pod.PullSecrets, err = w.Facts.PullSecrets(ctx, dgd.Namespace); err != nil {
		return seen, err
	}
	if seen.Snapshot, err = w.Children.Children(ctx, dgd, p.Capabilities); err != nil {
		return seen, err
	}
	claims, err := w.Claims.Children(ctx, dgd, nil)
	if err != nil {
		return seen, err
	}
	seen.claims = claims.Owned
	p.Defaults.Running = graph.ReadRunning(dgd, seen.Owned)
	for _, object := range seen.Owned {
		set, ok := object.(*grovev1alpha1.PodCliqueSet)
		if !ok {
			continue
		}
		if seen.Beneath, err = w.beneath(ctx, set, p.Capabilities); err != nil {
			return seen, err
		}
	}
	seen.Taken = now
	seen.provider = workload.Choose(dgd.Annotations, p.Capabilities, running(seen.Snapshot))
	if seen.provider == workload.ProviderGrove {
		p.Queue = render.Queue(dgd.Annotations, p.Capabilities)
		// Elsewhere the components look after their pods.
		if seen.Evidence, err = w.Pods.Inspect(ctx, dgd.Namespace, dgd.Name, ""); err != nil {
			return seen, err
		}
	}
	seen.platform = p
	return seen, nil
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

// inOrder leaves out components that wait for others to be ready. A PodCliqueSet
// keeps the order that it was made with.
func (w observation) inOrder(g *graph.Graph, wanted []graph.Desired) []graph.Desired {
	if w.provider == workload.ProviderGrove {
		return grove.KeepOrder(wanted, w.Snapshot)
	}
	waiting := status.Waiting(g, w.orchestration(), w.Snapshot)
	return slices.DeleteFunc(wanted, func(one graph.Desired) bool {
		dcd, ok := one.Object.(*v1alpha1.DynamoComponentDeployment)
		return ok && len(waiting[dcd.Spec.ServiceName]) > 0
	})
}

// checkQueue checks what a graph needs to find in the cluster before anything is
// made for it.
func (w Observer) checkQueue(ctx context.Context, seen observation) error {
	if seen.platform.Queue == "" {
		return nil
	}
	exists, err := w.Facts.QueueExists(ctx, seen.platform.Queue)
	if err == nil && !exists {
		err = fault.New(fault.Waiting, v1alpha1.ReasonQueueNotFound,
			"the KAI scheduler has no queue %s; make it, or name another in annotation %s", seen.platform.Queue, v1alpha1.AnnotationKaiQueue)
	}
	return err
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
func (w observation) warnings(dgd *v1alpha1.DynamoGraphDeployment, r validation.IngressRules) []string {
	return validation.GraphDeploymentWarnings(dgd, r, validation.Orchestration{
		Provider: w.provider, WithoutKAI: !w.platform.Capabilities.All(snapshot.APIKAI),
	})
}

// migrating says what runs a graph elsewhere than its provider is to; nil when
// nothing does.
func (w observation) migrating() error {
	var left []string
	for _, object := range w.Owned {
		switch object.(type) {
		case *grovev1alpha1.PodCliqueSet:
			if w.provider != workload.ProviderGrove {
				left = append(left, "PodCliqueSet "+object.GetName())
			}
		case *v1alpha1.DynamoComponentDeployment:
			if w.provider != workload.ProviderComponent {
				left = append(left, v1alpha1.KindDynamoComponentDeployment+" "+object.GetName())
			}
		}
	}
	if len(left) == 0 {
		return nil
	}
	return fault.New(fault.Waiting, v1alpha1.ReasonMigrating,
		"moves to provider %s once these are gone: %s", w.provider, strings.Join(left, ", "))
}

// running is the provider that a graph's children show.
func running(s snapshot.Snapshot) workload.Provider {
	for _, object := range s.Owned {
		switch object.(type) {
		case *grovev1alpha1.PodCliqueSet:
			return workload.ProviderGrove
		case *v1alpha1.DynamoComponentDeployment:
			return workload.ProviderComponent
		}
	}
	return ""
}
