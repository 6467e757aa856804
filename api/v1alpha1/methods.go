package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// What Go clients of the API ask most often. None of it calls the cluster.

// GetState is the state in status.
func (d *DynamoGraphDeployment) GetState() string { return string(d.Status.State) }

// SetState sets the state in status.
func (d *DynamoGraphDeployment) SetState(state string) { d.Status.State = GraphState(state) }

// AddStatusCondition adds a condition, or replaces the one of its type. The
// transition time moves only with the status.
func (d *DynamoGraphDeployment) AddStatusCondition(condition metav1.Condition) {
	meta.SetStatusCondition(&d.Status.Conditions, condition)
}

// IsReady reports whether all services of the current generation are ready.
func (d *DynamoGraphDeployment) IsReady() bool {
	return d.Status.ObservedGeneration == d.Generation && meta.IsStatusConditionTrue(d.Status.Conditions, ConditionReady)
}

// HasAnyMultinodeService reports whether a service spans nodes.
func (d *DynamoGraphDeployment) HasAnyMultinodeService() bool {
	for _, service := range d.Spec.SortedServices() {
		if service.IsMultinode() {
			return true
		}
	}
	return false
}

// HasEPPService reports whether the graph has an endpoint picker.
func (d *DynamoGraphDeployment) HasEPPService() bool {
	for _, service := range d.Spec.SortedServices() {
		if service.ComponentType == ComponentTypeEPP {
			return true
		}
	}
	return false
}

// IsMultinode reports whether each replica spans nodes.
func (s *SharedSpec) IsMultinode() bool { return s.GetNumberOfNodes() > 1 }

// GetNumberOfNodes is how many nodes a replica is on.
func (s *SharedSpec) GetNumberOfNodes() int32 {
	if s.Multinode == nil {
		return 1
	}
	return max(1, s.Multinode.NodeCount)
}

// AddStatusCondition adds a condition, or replaces the one of its type.
func (d *DynamoComponentDeployment) AddStatusCondition(condition metav1.Condition) {
	meta.SetStatusCondition(&d.Status.Conditions, condition)
}

// IsReady reports whether the current generation is available.
func (d *DynamoComponentDeployment) IsReady() bool {
	return d.Status.ObservedGeneration == d.Generation && meta.IsStatusConditionTrue(d.Status.Conditions, ConditionAvailable)
}

// GetState is the state in status.
func (r *DynamoGraphDeploymentRequest) GetState() string { return string(r.Status.State) }

// SetState sets the state in status.
func (r *DynamoGraphDeploymentRequest) SetState(state string) { r.Status.State = RequestState(state) }

// AddStatusCondition adds a condition, or replaces the one of its type.
func (r *DynamoGraphDeploymentRequest) AddStatusCondition(condition metav1.Condition) {
	meta.SetStatusCondition(&r.Status.Conditions, condition)
}

// IsLoRA reports whether the model is loaded into engines that serve another.
func (m *DynamoModel) IsLoRA() bool { return m.Spec.ModelType == ModelTypeLoRA }

// IsReady reports whether endpoints serve the model: all of them for a LoRA
// adapter, any for a base model.
func (m *DynamoModel) IsReady() bool {
	return m.Status.ObservedGeneration == m.Generation && meta.IsStatusConditionTrue(m.Status.Conditions, ConditionEndpointsReady)
}

// GetState is Ready or NotReady.
func (m *DynamoModel) GetState() string {
	if m.IsReady() {
		return "Ready"
	}
	return "NotReady"
}

// GetConditions returns the conditions of the status.
func (d *DynamoGraphDeployment) GetConditions() []metav1.Condition { return d.Status.Conditions }

// SetConditions replaces the conditions of the status.
func (d *DynamoGraphDeployment) SetConditions(conditions []metav1.Condition) {
	d.Status.Conditions = conditions
}

// GetConditions returns the conditions of the status.
func (d *DynamoComponentDeployment) GetConditions() []metav1.Condition { return d.Status.Conditions }

// SetConditions replaces the conditions of the status.
func (d *DynamoComponentDeployment) SetConditions(conditions []metav1.Condition) {
	d.Status.Conditions = conditions
}

// GetConditions returns the conditions of the status.
func (a *DynamoGraphDeploymentScalingAdapter) GetConditions() []metav1.Condition {
	return a.Status.Conditions
}

// SetConditions replaces the conditions of the status.
func (a *DynamoGraphDeploymentScalingAdapter) SetConditions(conditions []metav1.Condition) {
	a.Status.Conditions = conditions
}

// GetConditions returns the conditions of the status.
func (m *DynamoModel) GetConditions() []metav1.Condition { return m.Status.Conditions }

// SetConditions replaces the conditions of the status.
func (m *DynamoModel) SetConditions(conditions []metav1.Condition) { m.Status.Conditions = conditions }

// GetConditions returns the conditions of the status.
func (r *DynamoGraphDeploymentRequest) GetConditions() []metav1.Condition { return r.Status.Conditions }

// SetConditions replaces the conditions of the status.
func (r *DynamoGraphDeploymentRequest) SetConditions(conditions []metav1.Condition) {
	r.Status.Conditions = conditions
}

// GetConditions returns the conditions of the status.
func (c *DynamoCheckpoint) GetConditions() []metav1.Condition { return c.Status.Conditions }

// SetConditions replaces the conditions of the status.
func (c *DynamoCheckpoint) SetConditions(conditions []metav1.Condition) {
	c.Status.Conditions = conditions
}
