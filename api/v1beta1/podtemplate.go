package v1beta1

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MainContainer is the name of the container that runs the component itself.
const MainContainer = "main"

// PodTemplate is a core pod template that is written without empty structs.
type PodTemplate struct {
	corev1.PodTemplateSpec `json:",inline"`
}

// MarshalJSON leaves out what the user did not write. The core types would say
// "metadata: {}", "resources: {}" and "containers: null", and a field that is
// sent is a field that is owned.
func (t PodTemplate) MarshalJSON() ([]byte, error) {
	// The outer fields hide those of the same name in the embedded structs.
	type container struct {
		corev1.Container `json:",inline"`
		Resources        corev1.ResourceRequirements `json:"resources,omitzero"`
	}
	type podSpec struct {
		corev1.PodSpec `json:",inline"`
		InitContainers []container `json:"initContainers,omitempty"`
		Containers     []container `json:"containers"`
	}
	wrap := func(all []corev1.Container) []container {
		if len(all) == 0 {
			return nil
		}
		wrapped := make([]container, len(all))
		for i := range all {
			wrapped[i] = container{Container: all[i], Resources: all[i].Resources}
		}
		return wrapped
	}
	containers := wrap(t.Spec.Containers)
	if containers == nil {
		containers = []container{} // required, so it is written as empty, not as null
	}
	return json.Marshal(struct {
		Metadata metav1.ObjectMeta `json:"metadata,omitzero"`
		Spec     podSpec           `json:"spec"`
	}{
		Metadata: t.ObjectMeta,
		Spec:     podSpec{PodSpec: t.Spec, InitContainers: wrap(t.Spec.InitContainers), Containers: containers},
	})
}
