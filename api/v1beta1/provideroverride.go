package v1beta1

import "k8s.io/apimachinery/pkg/runtime"

// ProviderOverride is a part of the workload in the words of what runs it. It has no
// effect: the operator writes topology constraints from topologyConstraint alone.
type ProviderOverride struct {
	// apiVersion of what is overridden.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	APIVersion string `json:"apiVersion"`

	// target is the part of it.
	//
	// +optional
	Target string `json:"target,omitempty"`

	// value goes over that part. It is kept as written.
	//
	// +required
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Type=object
	Value runtime.RawExtension `json:"value"`
}

// MultinodeRole is what the pods of one role in a group of nodes differ in.
type MultinodeRole struct {
	// providerOverride has no effect.
	//
	// +optional
	ProviderOverride *ProviderOverride `json:"providerOverride,omitempty"`
}
