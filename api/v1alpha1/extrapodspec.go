package v1alpha1

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
)

// ExtraPodSpec is a pod spec that goes over the one the operator makes, with
// the main container set apart from the sidecars in containers.
type ExtraPodSpec struct {
	// PodSpec is nil if only the main container is given.
	*corev1.PodSpec `json:",inline"`

	// mainContainer goes over the main container, which is called main unless it
	// has a name here.
	//
	// +optional
	MainContainer *corev1.Container `json:"mainContainer,omitempty"`
}

// MarshalJSON leaves out what the user did not write. The core types would say
// "containers: null", "name: \"\"" and "resources: {}", and a field that is
// sent is a field that is owned.
func (s ExtraPodSpec) MarshalJSON() ([]byte, error) {
	// The outer fields hide those of the same name in the embedded structs.
	type container struct {
		corev1.Container `json:",inline"`
		Name             string                      `json:"name,omitempty"`
		Resources        corev1.ResourceRequirements `json:"resources,omitzero"`
	}
	wire := struct {
		*corev1.PodSpec `json:",inline"`
		Containers      []corev1.Container `json:"containers,omitempty"`
		MainContainer   *container         `json:"mainContainer,omitempty"`
	}{PodSpec: s.PodSpec}
	if s.PodSpec != nil {
		wire.Containers = s.Containers
	}
	if c := s.MainContainer; c != nil {
		wire.MainContainer = &container{Container: *c, Name: c.Name, Resources: c.Resources}
	}
	return json.Marshal(wire)
}
