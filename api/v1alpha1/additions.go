package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// What the original added to this version after January 2026.

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

// ServiceTopologyConstraint packs the pods of a replica together.
type ServiceTopologyConstraint struct {
	// packDomain is a level of the graph's topology.
	//
	// +required
	// +kubebuilder:validation:Pattern=`^[a-z0-9]+(-+[a-z0-9]+)*$`
	PackDomain string `json:"packDomain"`
}

// TopologyConstraint packs a graph into a domain of a cluster topology.
type TopologyConstraint struct {
	// topologyProfile is the topology.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	TopologyProfile string `json:"topologyProfile"`

	// packDomain is a level of the topology.
	//
	// +optional
	// +kubebuilder:validation:Pattern=`^[a-z0-9]+(-+[a-z0-9]+)*$`
	PackDomain string `json:"packDomain,omitempty"`
}

// GraphExperimental holds settings that may change between releases.
type GraphExperimental struct {
	// kvTransferPolicy keeps transfers of KV caches within a domain.
	//
	// +optional
	KVTransferPolicy *KVTransferPolicy `json:"kvTransferPolicy,omitempty"`
}

// KVTransferPolicy keeps transfers of KV caches within a domain.
//
// +kubebuilder:validation:XValidation:rule="has(self.labelKey) != has(self.clusterTopologyName)",message="give either labelKey or clusterTopologyName"
// +kubebuilder:validation:XValidation:rule="has(self.preferredWeight) == (has(self.enforcement) && self.enforcement == 'preferred')",message="a preferredWeight belongs to enforcement preferred",fieldPath=".preferredWeight"
type KVTransferPolicy struct {
	// labelKey is the label of nodes that holds the domain.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	LabelKey string `json:"labelKey,omitempty"`

	// clusterTopologyName is the topology that knows the domain.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	ClusterTopologyName string `json:"clusterTopologyName,omitempty"`

	// domain is the level within which caches are transferred.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	Domain string `json:"domain"`

	// enforcement is required or preferred.
	//
	// +optional
	// +kubebuilder:default=required
	// +kubebuilder:validation:Enum=required;preferred
	Enforcement string `json:"enforcement,omitempty"`

	// preferredWeight is the weight of the preference.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1
	PreferredWeight *float64 `json:"preferredWeight,omitempty"`
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

// RollingUpdateStatus is the progress of a rollout.
type RollingUpdateStatus struct {
	// phase is empty, Pending, InProgress, Completed or Failed.
	//
	// +optional
	Phase string `json:"phase,omitempty"`

	// startTime of the rollout.
	//
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`

	// endTime of the rollout.
	//
	// +optional
	EndTime *metav1.Time `json:"endTime,omitempty"`

	// updatedServices are those that are done.
	//
	// +optional
	// +listType=atomic
	UpdatedServices []string `json:"updatedServices,omitempty"`
}

// PlacementStatus is how well the pods are placed.
type PlacementStatus struct {
	// score is 1 at best.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1
	Score *float64 `json:"score,omitempty"`

	// state is Reported, Partial, Unsupported or Unknown.
	//
	// +optional
	State string `json:"state,omitempty"`
}
