package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
)

// FrontendSidecar is a frontend in the pods of a service.
type FrontendSidecar struct {
	// image of the container.
	//
	// +required
	Image string `json:"image"`

	// args of the container.
	//
	// +optional
	// +listType=atomic
	Args []string `json:"args,omitempty"`

	// envFromSecret is a Secret whose keys become variables of the container.
	//
	// +optional
	EnvFromSecret *string `json:"envFromSecret,omitempty"`

	// envs of the container.
	//
	// +optional
	// +listType=atomic
	Envs []corev1.EnvVar `json:"envs,omitempty"`
}
