package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// DynamoComponentDeployment is one component of a graph. The operator makes one
// for each component of a graph; it can also stand alone.
//
// +kubebuilder:object:root=true
// +kubebuilder:unservedversion
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=dcd
// +kubebuilder:printcolumn:name="Available",type="string",JSONPath=".status.conditions[?(@.type=='Available')].status"
// +kubebuilder:printcolumn:name="Backend",type="string",JSONPath=".spec.backendFramework"
// +kubebuilder:printcolumn:name="Message",type="string",JSONPath=".status.conditions[?(@.type=='Available')].message",priority=1
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp"
// +kubebuilder:metadata:annotations="helm.sh/resource-policy=keep"
type DynamoComponentDeployment struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// +optional
	Spec DynamoComponentDeploymentSpec `json:"spec,omitzero"`
	// +optional
	Status DynamoComponentDeploymentStatus `json:"status,omitzero"`
}

// DynamoComponentDeploymentSpec is a component of a graph plus the engine that
// the graph chose.
//
// +kubebuilder:validation:XValidation:rule="has(self.backendFramework) == has(oldSelf.backendFramework) && (!has(self.backendFramework) || self.backendFramework == oldSelf.backendFramework)",message="the backend of a component cannot be changed, set or removed after creation: create a new component",fieldPath=".backendFramework"
type DynamoComponentDeploymentSpec struct {
	// backendFramework is the inference engine of this component. If unset it is
	// recognised from the command line. It cannot change later.
	//
	// +optional
	// +kubebuilder:validation:Enum=sglang;vllm;trtllm
	BackendFramework string `json:"backendFramework,omitempty"`

	Component `json:",inline"`
}

// DynamoComponentDeploymentStatus is what was last seen of the component.
type DynamoComponentDeploymentStatus struct {
	// observedGeneration is the generation of the spec this status describes.
	//
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions of the component.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// podSelector selects the pods of the component.
	//
	// +optional
	PodSelector map[string]string `json:"podSelector,omitempty"`

	// component is the progress of the component's workload.
	//
	// +optional
	Component *ComponentReplicaStatus `json:"component,omitempty"`
}

// DynamoComponentDeploymentList is a list of components.
//
// +kubebuilder:object:root=true
type DynamoComponentDeploymentList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`

	Items []DynamoComponentDeployment `json:"items"`
}
