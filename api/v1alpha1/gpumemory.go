package v1alpha1

import (
	"k8s.io/apimachinery/pkg/runtime"
)

// GPUMemoryService shares the weights in GPU memory among engines.
type GPUMemoryService struct {
	// enabled turns it on.
	//
	// +required
	Enabled bool `json:"enabled"`

	// mode is intraPod or interPod.
	//
	// +optional
	// +kubebuilder:default=intraPod
	Mode SharingMode `json:"mode,omitempty"`

	// deviceClassName is the class of the claimed devices.
	//
	// +optional
	// +kubebuilder:default=gpu.nvidia.com
	DeviceClassName string `json:"deviceClassName,omitempty"`

	// extraClientContainers are further containers that use the service.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:Pattern=`^[a-z0-9]+(-+[a-z0-9]+)*$`
	ExtraClientContainers []string `json:"extraClientContainers,omitempty"`

	// extraClientPods is reserved.
	//
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=32
	ExtraClientPods []ClientPod `json:"extraClientPods,omitempty"`
}

// ClientPod is a pod that uses the GPU memory service.
type ClientPod struct {
	// name of the pod.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	Name string `json:"name"`

	// podTemplate of the pod.
	//
	// +optional
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	PodTemplate *runtime.RawExtension `json:"podTemplate,omitempty"`
}

// SharingMode is where the engines are that share GPU memory.
//
// +kubebuilder:validation:Enum=intraPod;interPod
type SharingMode string

// The modes of sharing.
const (
	SharingIntraPod SharingMode = "intraPod"
	SharingInterPod SharingMode = "interPod"
)

// Failover keeps a shadow engine ready.
type Failover struct {
	// enabled turns it on.
	//
	// +required
	Enabled bool `json:"enabled"`

	// mode is intraPod or interPod.
	//
	// +optional
	// +kubebuilder:default=intraPod
	Mode SharingMode `json:"mode,omitempty"`

	// numShadows is the number of shadow engines.
	//
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	NumShadows int32 `json:"numShadows,omitempty"`
}
