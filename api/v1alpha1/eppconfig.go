package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// EPPConfig configures an endpoint picker, in place or by reference.
//
// +kubebuilder:validation:XValidation:rule="!has(self.config) || !has(self.configMapRef)",message="give either config or configMapRef, not both"
type EPPConfig struct {
	// configMapRef is a key of a ConfigMap that holds the configuration. An
	// empty key means epp-config-dynamo.yaml.
	//
	// +optional
	ConfigMapRef *corev1.ConfigMapKeySelector `json:"configMapRef,omitempty"`

	// config is an EndpointPickerConfig with plugins and schedulingProfiles. It
	// is kept as written, since the parameters of a plugin are known to the
	// plugin alone; apiVersion and kind may be left out.
	//
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	Config *runtime.RawExtension `json:"config,omitempty"`
}
