package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
)

// Component is one component of a graph and, inlined, the spec of a
// DynamoComponentDeployment.
//
// +kubebuilder:validation:XValidation:rule="!has(self.minAvailable) || has(self.scalingAdapter) || (has(self.replicas) && self.replicas == 0) || self.minAvailable <= (has(self.replicas) ? self.replicas : 1)",message="minAvailable cannot be more than replicas",fieldPath=".minAvailable"
// +kubebuilder:validation:XValidation:rule="!has(self.eppConfig) || (has(self.type) && self.type == 'epp')",message="only an endpoint picker has an eppConfig",reason="FieldValueForbidden",fieldPath=".eppConfig"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.minAvailable) || (has(self.minAvailable) && self.minAvailable == oldSelf.minAvailable)",message="minAvailable cannot be changed or removed once it is set",fieldPath=".minAvailable"
type Component struct {
	// name of the component. It appears as it is in label values and in lower
	// case in the names of objects.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9]+(-+[A-Za-z0-9]+)*$`
	Name string `json:"name,omitempty"`

	// type is the role of the component. Without one it gets no defaults.
	//
	// +optional
	Type ComponentType `json:"type,omitempty"`

	// podTemplate of the component. Its container "main" runs the component; the
	// operator adds what it does not set.
	//
	// +optional
	PodTemplate *PodTemplate `json:"podTemplate,omitempty"`

	// replicas is the number of pods, or of groups of nodes if multinode. Unset
	// means 1, or the scaling adapter's number if there is one.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	Replicas *int32 `json:"replicas,omitempty"`

	// minAvailable is how many replicas a gang needs to start; only Grove
	// honours it. It cannot change later.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	MinAvailable *int32 `json:"minAvailable,omitempty"`

	// multinode spreads each replica over several nodes.
	//
	// +optional
	Multinode *Multinode `json:"multinode,omitempty"`

	// sharedMemorySize is the size of the memory-backed volume at /dev/shm: 8Gi
	// if unset, none if zero.
	//
	// +optional
	SharedMemorySize *resource.Quantity `json:"sharedMemorySize,omitempty"`

	// modelRef is the base model the component serves; a DynamoModel finds its
	// pods by it.
	//
	// +optional
	ModelRef *ModelReference `json:"modelRef,omitempty"`

	// scalingAdapter hands replicas over to a DynamoGraphDeploymentScalingAdapter.
	// It is enabled by being present.
	//
	// +optional
	ScalingAdapter *ScalingAdapter `json:"scalingAdapter,omitempty"`

	// eppConfig configures an endpoint picker.
	//
	// +optional
	EPPConfig *EPPConfig `json:"eppConfig,omitempty"`

	// frontendSidecar names the container of podTemplate that is a frontend for
	// this component alone.
	//
	// +optional
	FrontendSidecar string `json:"frontendSidecar,omitempty"`

	// compilationCache keeps the engine's compiled artefacts on a claim.
	//
	// +optional
	CompilationCache *CompilationCache `json:"compilationCache,omitempty"`

	// topologyConstraint packs each replica into a domain that is equal to or
	// narrower than the graph's. It cannot change later.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="the topology constraint of a component cannot be changed"
	TopologyConstraint *ComponentTopologyConstraint `json:"topologyConstraint,omitempty"`

	// globalDynamoNamespace puts the component into the Dynamo namespace
	// "dynamo", which graphs can share.
	//
	// +optional
	GlobalDynamoNamespace bool `json:"globalDynamoNamespace,omitempty"`

	// runtimeVersionOverride is the version of the runtime in the image, as
	// x.y.z, where the tag does not tell.
	//
	// +optional
	// +kubebuilder:validation:Pattern=`^(0|[1-9][0-9]{0,3})\.(0|[1-9][0-9]{0,3})\.(0|[1-9][0-9]{0,3})$`
	RuntimeVersionOverride string `json:"runtimeVersionOverride,omitempty"`

	// experimental settings may change between releases.
	//
	// +optional
	Experimental *ComponentExperimental `json:"experimental,omitempty"`

	// providerOverride has no effect.
	//
	// +optional
	ProviderOverride *ProviderOverride `json:"providerOverride,omitempty"`
}

// ComponentType is the role of a component.
//
// +kubebuilder:validation:Enum=frontend;worker;prefill;decode;planner;epp
type ComponentType string

// The roles of components.
const (
	ComponentTypeFrontend ComponentType = "frontend"
	ComponentTypeWorker   ComponentType = "worker"
	ComponentTypePrefill  ComponentType = "prefill"
	ComponentTypeDecode   ComponentType = "decode"
	ComponentTypePlanner  ComponentType = "planner"
	ComponentTypeEPP      ComponentType = "epp"
)

// Multinode spreads each replica of a component over nodes.
type Multinode struct {
	// nodeCount is the number of nodes of one replica; the GPU limit counts for
	// each of them.
	//
	// +required
	// +kubebuilder:default=2
	// +kubebuilder:validation:Minimum=2
	NodeCount int32 `json:"nodeCount"`

	// leader is what the first pod of a group differs in.
	//
	// +optional
	Leader *MultinodeRole `json:"leader,omitempty"`

	// worker is what the other pods of a group differ in.
	//
	// +optional
	Worker *MultinodeRole `json:"worker,omitempty"`
}

// ModelReference names the base model that a component serves.
type ModelReference struct {
	// name of the model.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	Name string `json:"name"`

	// revision of the model; it has no effect.
	//
	// +optional
	Revision string `json:"revision,omitempty"`
}

// ScalingAdapter has no settings.
type ScalingAdapter struct{}

// EPPConfig configures an endpoint picker, in place or by reference.
//
// +kubebuilder:validation:XValidation:rule="has(self.config) != has(self.configMapRef)",message="give either config or configMapRef"
type EPPConfig struct {
	// configMapRef is a key of a ConfigMap that holds the configuration.
	//
	// +optional
	ConfigMapRef *corev1.ConfigMapKeySelector `json:"configMapRef,omitempty"`

	// config is an EndpointPickerConfig with plugins and schedulingProfiles. It
	// is kept as written.
	//
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	Config *runtime.RawExtension `json:"config,omitempty"`
}

// CompilationCache keeps the engine's compiled artefacts on a claim.
type CompilationCache struct {
	// pvcName is the claim.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	PVCName string `json:"pvcName"`

	// mountPath in the main container. With vLLM it may be left out.
	//
	// +optional
	MountPath string `json:"mountPath,omitempty"`
}

// ComponentTopologyConstraint packs the pods of a replica together.
type ComponentTopologyConstraint struct {
	// packDomain is a level of the graph's topology.
	//
	// +required
	// +kubebuilder:validation:Pattern=`^[a-z0-9]+(-+[a-z0-9]+)*$`
	PackDomain string `json:"packDomain"`
}

// ComponentExperimental holds settings that may change between releases.
type ComponentExperimental struct {
	// gpuMemoryService shares the weights in GPU memory among engines. It is
	// enabled by being present.
	//
	// +optional
	GPUMemoryService *GPUMemoryService `json:"gpuMemoryService,omitempty"`

	// failover keeps a shadow engine ready. It is enabled by being present.
	//
	// +optional
	Failover *Failover `json:"failover,omitempty"`

	// checkpoint starts pods from a snapshot of a running engine.
	//
	// +optional
	Checkpoint *Checkpoint `json:"checkpoint,omitempty"`

	// grove is about Grove alone.
	//
	// +optional
	Grove *GroveSettings `json:"grove,omitempty"`
}

// GroveSettings are about Grove alone.
type GroveSettings struct {
	// forceScalingGroup has no effect: components of one node are cliques.
	//
	// +optional
	ForceScalingGroup bool `json:"forceScalingGroup,omitempty"`
}

// GPUMemoryService shares the weights in GPU memory among engines.
//
// +kubebuilder:validation:XValidation:rule="!has(self.extraClientContainers) || size(self.extraClientContainers) == 0 || !has(self.mode) || self.mode == 'IntraPod'",message="extraClientContainers need mode IntraPod",fieldPath=".extraClientContainers"
// +kubebuilder:validation:XValidation:rule="!has(self.extraClientPods) || size(self.extraClientPods) == 0",message="extraClientPods is reserved",reason="FieldValueForbidden",fieldPath=".extraClientPods"
type GPUMemoryService struct {
	// mode is IntraPod or InterPod.
	//
	// +optional
	// +kubebuilder:default=IntraPod
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
// +kubebuilder:validation:Enum=IntraPod;InterPod
type SharingMode string

// The modes of sharing.
const (
	SharingIntraPod SharingMode = "IntraPod"
	SharingInterPod SharingMode = "InterPod"
)

// Failover keeps a shadow engine ready.
type Failover struct {
	// mode is IntraPod or InterPod.
	//
	// +optional
	// +kubebuilder:default=IntraPod
	Mode SharingMode `json:"mode,omitempty"`

	// numShadows is the number of shadow engines.
	//
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1
	NumShadows int32 `json:"numShadows,omitempty"`
}

// Checkpoint starts pods from a snapshot of a running engine.
//
// +kubebuilder:validation:XValidation:rule="!has(self.job) || !has(self.checkpointRef) || size(self.checkpointRef) == 0",message="job and checkpointRef exclude each other",fieldPath=".job"
type Checkpoint struct {
	// enabled turns checkpoints on.
	//
	// +required
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
