package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// DynamoCheckpoint is a snapshot of an engine that has loaded its model, from
// which pods can start. It is accepted; nothing captures one yet, so pods start
// cold.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=dckpt
// +kubebuilder:printcolumn:name="Model",type="string",JSONPath=".spec.identity.model"
// +kubebuilder:printcolumn:name="Backend",type="string",JSONPath=".spec.identity.backendFramework"
// +kubebuilder:printcolumn:name="Phase",type="string",JSONPath=".status.phase"
// +kubebuilder:printcolumn:name="CheckpointID",type="string",JSONPath=".status.checkpointID"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp"
// +kubebuilder:metadata:annotations="helm.sh/resource-policy=keep"
type DynamoCheckpoint struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// +required
	Spec DynamoCheckpointSpec `json:"spec,omitzero"`
	// +optional
	Status DynamoCheckpointStatus `json:"status,omitzero"`
}

// DynamoCheckpointSpec says what to capture and how.
type DynamoCheckpointSpec struct {
	// identity is what makes two checkpoints the same. It cannot change later.
	//
	// +required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="the identity of a checkpoint cannot be changed: create a new one"
	Identity CheckpointIdentity `json:"identity,omitzero"`

	// gpuMemoryService shares the weights in GPU memory among engines.
	//
	// +optional
	GPUMemoryService *GPUMemoryService `json:"gpuMemoryService,omitempty"`

	// job makes the checkpoint.
	//
	// +required
	Job DynamoCheckpointJob `json:"job,omitzero"`
}

// DynamoCheckpointJob makes a checkpoint.
type DynamoCheckpointJob struct {
	// podTemplateSpec is the pod that is captured.
	//
	// +required
	PodTemplateSpec corev1.PodTemplateSpec `json:"podTemplateSpec"`

	// targetContainerName is the container that is captured.
	//
	// +optional
	// +kubebuilder:default=main
	TargetContainerName string `json:"targetContainerName,omitempty"`

	// sharedMemory sizes the memory-backed volume at /dev/shm.
	//
	// +optional
	SharedMemory *SharedMemory `json:"sharedMemory,omitempty"`

	// activeDeadlineSeconds is how long capturing may take.
	//
	// +optional
	// +kubebuilder:default=3600
	ActiveDeadlineSeconds *int64 `json:"activeDeadlineSeconds,omitempty"`

	// backoffLimit is ignored.
	//
	// +optional
	BackoffLimit *int32 `json:"backoffLimit,omitempty"`

	// ttlSecondsAfterFinished is ignored.
	//
	// +optional
	TTLSecondsAfterFinished *int32 `json:"ttlSecondsAfterFinished,omitempty"`
}

// Phases of a checkpoint.
const (
	CheckpointPhasePending = "Pending"
	CheckpointPhaseReady   = "Ready"
)

// DynamoCheckpointStatus is how far the checkpoint has come.
type DynamoCheckpointStatus struct {
	// phase is Pending, Creating, Ready or Failed.
	//
	// +optional
	Phase string `json:"phase,omitempty"`

	// checkpointID is the id of the content.
	//
	// +optional
	CheckpointID string `json:"checkpointID,omitempty"`

	// jobName is the Job that captures it.
	//
	// +optional
	JobName string `json:"jobName,omitempty"`

	// podSnapshotName is the PodSnapshot that holds it.
	//
	// +optional
	PodSnapshotName string `json:"podSnapshotName,omitempty"`

	// createdAt is when it was ready.
	//
	// +optional
	CreatedAt *metav1.Time `json:"createdAt,omitempty"`

	// message says what the checkpoint waits for or why it failed.
	//
	// +optional
	Message string `json:"message,omitempty"`

	// identityHash is deprecated.
	//
	// +optional
	IdentityHash string `json:"identityHash,omitempty"`

	// location is deprecated.
	//
	// +optional
	Location string `json:"location,omitempty"`

	// storageType is deprecated.
	//
	// +optional
	StorageType string `json:"storageType,omitempty"`

	// conditions of the checkpoint.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// DynamoCheckpointList is a list of checkpoints.
//
// +kubebuilder:object:root=true
type DynamoCheckpointList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`

	Items []DynamoCheckpoint `json:"items"`
}
