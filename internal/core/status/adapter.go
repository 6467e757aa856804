package status

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/dormancy"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
)

// Adapter computes the status of a scaling adapter from its graph, which is nil
// when there is none, and from how many pods of its service end.
func Adapter(a *v1alpha1.DynamoGraphDeploymentScalingAdapter, dgd *v1alpha1.DynamoGraphDeployment, ending int, now metav1.Time) v1alpha1.DynamoGraphDeploymentScalingAdapterStatus {
	s := *a.Status.DeepCopy()
	s.ObservedGeneration = a.Generation
	ref := a.Spec.DGDRef
	s.Selector = fmt.Sprintf("%s=%s,%s=%s", v1alpha1.LabelGraphName, ref.Name, v1alpha1.LabelComponent, ref.ServiceName)
	replicas := int32(0)
	if dgd != nil {
		replicas = dgd.Status.Services[ref.ServiceName].Replicas
	}
	if replicas != s.Replicas {
		s.Replicas, s.LastScaleTime = replicas, &now
	}
	is := active(a, dgd)
	s.WantedReplicas, s.GrantedReplicas, s.DrainingReplicas = nil, nil, nil
	if is.ok {
		nodes := int(dgd.Spec.Services[ref.ServiceName].GetNumberOfNodes())
		s.WantedReplicas, s.GrantedReplicas, s.DrainingReplicas = new(a.Spec.Replicas), new(granted(a, dgd)), new(int32((ending+nodes-1)/nodes))
	}
	setCondition(&s.Conditions, v1alpha1.ConditionActive, is, a.Generation, now)
	return s
}

// granted are the replicas that are left of those that an adapter asks for: by budgets, as
// the graph tells, and by sleep, which is no number of anybody's.
func granted(a *v1alpha1.DynamoGraphDeploymentScalingAdapter, dgd *v1alpha1.DynamoGraphDeployment) int32 {
	service := a.Spec.DGDRef.ServiceName
	if dormancy.Told(dgd.Status.Conditions) == dormancy.Dormant && graph.RoleOf(string(dgd.Spec.Services[service].ComponentType)).RunsEngine() {
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
