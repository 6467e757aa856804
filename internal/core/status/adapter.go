package status

import (
	"cmp"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/dormancy"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
)

// Adapter computes the status of a scaling adapter from its graph, which is nil
// when there is none, and from how many pods of its service end. What the graph's
// status tells of the service is told again, not found out anew.
func Adapter(a *v1alpha1.DynamoGraphDeploymentScalingAdapter, dgd *v1alpha1.DynamoGraphDeployment, ending int, now metav1.Time) v1alpha1.DynamoGraphDeploymentScalingAdapterStatus {
	s := *a.Status.DeepCopy()
	s.ObservedGeneration = a.Generation
	ref := a.Spec.DGDRef
	service := v1alpha1.ServiceReplicaStatus{}
	if dgd != nil {
		service = dgd.Status.Services[ref.ServiceName]
	}
	s.Selector = selector(ref, service.ComponentKind)
	replicas := service.Replicas
	if replicas != s.Replicas {
		s.Replicas, s.LastScaleTime = replicas, &now
	}
	is := active(a, dgd)
	setCondition(&s.Conditions, v1alpha1.ConditionActive, is, a.Generation, now)
	s.WantedReplicas, s.GrantedReplicas, s.DrainingReplicas = nil, nil, nil
	s.ReadyReplicas, s.StartingReplicas, s.Startup, s.LimitedBy = nil, nil, nil, ""
	if is.ok {
		nodes := int(dgd.Spec.Services[ref.ServiceName].GetNumberOfNodes())
		s.WantedReplicas, s.GrantedReplicas, s.DrainingReplicas = new(a.Spec.Replicas), new(granted(a, dgd)), new(int32((ending+nodes-1)/nodes))
		s.ReadyReplicas, s.StartingReplicas = running(service)
		s.Startup, s.LimitedBy = service.Startup.DeepCopy(), limitedBy(a, dgd)
	}
	repeat(&s.Conditions, v1alpha1.ConditionScalingLimited, dgd, s.LimitedBy != "", a.Generation, now)
	repeat(&s.Conditions, v1alpha1.ConditionDormant, dgd, is.ok && sleeps(a, dgd), a.Generation, now)
	return s
}

// selector selects one pod of each replica, as an autoscaler multiplies what pods use by
// how many they are: of a group its leader. Pods of a scaling group of Grove's carry nothing
// that tells leaders of all replicas.
func selector(ref v1alpha1.GraphServiceRef, kind v1alpha1.ComponentKind) string {
	pods := fmt.Sprintf("%s=%s,%s=%s", v1alpha1.LabelGraphName, ref.Name, v1alpha1.LabelComponent, ref.ServiceName)
	if kind == v1alpha1.ComponentKindLeaderWorkerSet {
		pods += fmt.Sprintf(",%s=%s", v1alpha1.LabelGroupRole, v1alpha1.RoleLeader)
	}
	return pods
}

// running are the replicas of a service that are ready, and those that are not yet; nil
// while nobody has told. A scaling group of Grove's reports those that are available.
func running(service v1alpha1.ServiceReplicaStatus) (ready, starting *int32) {
	told := cmp.Or(service.ReadyReplicas, service.AvailableReplicas)
	if told == nil {
		return nil, nil
	}
	return new(*told), new(max(0, service.Replicas-*told))
}

// limitedBy is whose budget limits, as the graph tells. It may tell of what was asked for
// before: an adapter that gets what it asks for now is not limited.
func limitedBy(a *v1alpha1.DynamoGraphDeploymentScalingAdapter, dgd *v1alpha1.DynamoGraphDeployment) string {
	if granted(a, dgd) >= a.Spec.Replicas {
		return ""
	}
	return dgd.Status.Services[a.Spec.DGDRef.ServiceName].LimitedBy
}

// sleeps reports whether the service of an adapter does so with its graph.
func sleeps(a *v1alpha1.DynamoGraphDeploymentScalingAdapter, dgd *v1alpha1.DynamoGraphDeployment) bool {
	return graph.RoleOf(string(dgd.Spec.Services[a.Spec.DGDRef.ServiceName].ComponentType)).RunsEngine()
}

// repeat has a condition of the graph if it is about the adapter's service, and otherwise
// none.
func repeat(conditions *[]metav1.Condition, kind string, dgd *v1alpha1.DynamoGraphDeployment, about bool, generation int64, now metav1.Time) {
	var told *metav1.Condition
	if about {
		told = meta.FindStatusCondition(dgd.Status.Conditions, kind)
	}
	if told == nil {
		meta.RemoveStatusCondition(conditions, kind)
		return
	}
	setCondition(conditions, kind, condition{told.Status == metav1.ConditionTrue, told.Reason, told.Message}, generation, now)
}

// granted are the replicas that are left of those that an adapter asks for: by budgets, as
// the graph tells, and by sleep, which is no number of anybody's.
func granted(a *v1alpha1.DynamoGraphDeploymentScalingAdapter, dgd *v1alpha1.DynamoGraphDeployment) int32 {
	service := a.Spec.DGDRef.ServiceName
	if dormancy.Told(dgd.Status.Conditions) == dormancy.Dormant && sleeps(a, dgd) {
		return 0
	}
	return min(a.Spec.Replicas, ptr.Deref(dgd.Status.Services[service].GrantedReplicas, a.Spec.Replicas))
}

// active tells whether the adapter decides about its service, and if not, why.
func active(a *v1alpha1.DynamoGraphDeploymentScalingAdapter, dgd *v1alpha1.DynamoGraphDeployment) condition {
	ref := a.Spec.DGDRef
	if dgd == nil {
		return condition{false, v1alpha1.ReasonGraphNotFound, fmt.Sprintf("there is no graph %s", ref.Name)}
	}
	service, found := dgd.Spec.Services[ref.ServiceName]
	switch {
	case !found:
		return condition{false, v1alpha1.ReasonServiceNotFound, fmt.Sprintf("graph %s has no service %s", ref.Name, ref.ServiceName)}
	case service == nil || service.ScalingAdapter == nil || !service.ScalingAdapter.Enabled:
		return condition{false, v1alpha1.ReasonAdapterDisabled, fmt.Sprintf("service %s does not enable scalingAdapter", ref.ServiceName)}
	case !metav1.IsControlledBy(a, dgd):
		return condition{false, v1alpha1.ReasonAdapterNotOwned, fmt.Sprintf("service %s is scaled by the adapter that the operator made for it", ref.ServiceName)}
	default:
		return condition{true, v1alpha1.ReasonScalingActive, fmt.Sprintf("service %s is to have %d replicas", ref.ServiceName, a.Spec.Replicas)}
	}
}
