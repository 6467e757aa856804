package v1alpha1

import (
	"k8s.io/apimachinery/pkg/runtime"
)

// Checkpoint starts pods from a snapshot of a running engine.
type Checkpoint struct {
	// enabled turns checkpoints on.
	//
	// +optional
	// +kubebuilder:default=false
	Enabled bool `json:"enabled"`

	// startupPolicy is Immediate (start cold until a checkpoint is ready) or
	// WaitForCheckpoint.
	//
	// +optional
	// +kubebuilder:default=Immediate
	// +kubebuilder:validation:Enum=Immediate;WaitForCheckpoint
	StartupPolicy string `json:"startupPolicy,omitempty"`

	// deletionPolicy is Delete or Retain.
	//
	// +optional
	// +kubebuilder:default=Delete
	// +kubebuilder:validation:Enum=Delete;Retain
	DeletionPolicy string `json:"deletionPolicy,omitempty"`

	// checkpointRef is an existing DynamoCheckpoint.
	//
	// +optional
	CheckpointRef string `json:"checkpointRef,omitempty"`

	// targetContainerName is the container that is captured.
	//
	// +optional
	// +kubebuilder:default=main
	TargetContainerName string `json:"targetContainerName,omitempty"`

	// job changes the Job that makes the checkpoint.
	//
	// +optional
	Job *CheckpointJob `json:"job,omitempty"`

	// mode is deprecated.
	//
	// +optional
	// +kubebuilder:validation:Enum=Auto;Manual
	Mode string `json:"mode,omitempty"`

	// identity is deprecated.
	//
	// +optional
	Identity *CheckpointIdentity `json:"identity,omitempty"`
}

// Values of a checkpoint's startupPolicy.
const (
	StartupImmediate         = "Immediate"
	StartupWaitForCheckpoint = "WaitForCheckpoint"
)

// CheckpointJob changes the Job that makes a checkpoint.
type CheckpointJob struct {
	// gmsClientContainers are containers that use the GPU memory service.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:Pattern=`^[a-z0-9]+(-+[a-z0-9]+)*$`
	GMSClientContainers []string `json:"gmsClientContainers,omitempty"`

	// podTemplate goes over the template of the Job.
	//
	// +optional
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	PodTemplate *runtime.RawExtension `json:"podTemplate,omitempty"`
}

// CheckpointIdentity is what makes two checkpoints the same.
type CheckpointIdentity struct {
	// model that the engine serves.
	//
	// +required
	Model string `json:"model"`

	// backendFramework is the engine.
	//
	// +required
	// +kubebuilder:validation:Enum=sglang;vllm;trtllm
	BackendFramework string `json:"backendFramework"`

	// dynamoVersion of the runtime.
	//
	// +optional
	DynamoVersion string `json:"dynamoVersion,omitempty"`

	// tensorParallelSize of the engine.
	//
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	TensorParallelSize int32 `json:"tensorParallelSize,omitempty"`

	// pipelineParallelSize of the engine.
	//
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	PipelineParallelSize int32 `json:"pipelineParallelSize,omitempty"`

	// dtype of the weights.
	//
	// +optional
	Dtype string `json:"dtype,omitempty"`

	// maxModelLen is the longest context.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	MaxModelLen int32 `json:"maxModelLen,omitempty"`

	// extraParameters are further distinctions.
	//
	// +optional
	ExtraParameters map[string]string `json:"extraParameters,omitempty"`
}

// CheckpointStatus is the checkpoint of a service.
type CheckpointStatus struct {
	// checkpointName is the DynamoCheckpoint.
	//
	// +optional
	CheckpointName string `json:"checkpointName,omitempty"`

	// checkpointID is the id of its content.
	//
	// +optional
	CheckpointID string `json:"checkpointID,omitempty"`

	// identityHash is the hash of its identity.
	//
	// +optional
	IdentityHash string `json:"identityHash,omitempty"`

	// ready is true once pods can start from it.
	//
	// +optional
	Ready bool `json:"ready,omitempty"`
}
