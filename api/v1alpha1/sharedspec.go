package v1alpha1

import (
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// SharedSpec is one service of a graph and, inlined, the spec of a component.
// Every field is optional.
//
// Fields are nullable where no rule or default reads them: server-side apply
// refuses an explicit null elsewhere, and published manifests carry some.
//
// +kubebuilder:validation:XValidation:rule="!has(self.componentType) || self.componentType != 'epp' || (has(self.eppConfig) && (has(self.eppConfig.config) || has(self.eppConfig.configMapRef)))",message="an endpoint picker needs eppConfig.config or eppConfig.configMapRef",reason="FieldValueRequired",fieldPath=".eppConfig"
type SharedSpec struct {
	// annotations for the service's pods; some keys are switches of the operator.
	//
	// +optional
	// +nullable
	Annotations map[string]string `json:"annotations,omitempty"`

	// labels for the service's pods.
	//
	// +optional
	// +nullable
	Labels map[string]string `json:"labels,omitempty"`

	// serviceName is the component's name. In a graph it is the service's key,
	// whatever is written here.
	//
	// +optional
	// +nullable
	ServiceName string `json:"serviceName,omitempty"`

	// componentType is the role of the service: frontend, worker, prefill,
	// decode, planner or epp. Any other value means no particular role.
	//
	// +optional
	// +nullable
	ComponentType ComponentType `json:"componentType,omitempty"`

	// subComponentType refines the role; the planner looks for prefill and
	// decode here.
	//
	// +optional
	// +nullable
	SubComponentType string `json:"subComponentType,omitempty"`

	// dynamoNamespace is no longer used: the operator derives the namespace from
	// the graph's name and namespace.
	//
	// +optional
	// +nullable
	DynamoNamespace *string `json:"dynamoNamespace,omitempty"`

	// globalDynamoNamespace puts the service into the Dynamo namespace "dynamo",
	// which graphs can share.
	//
	// +optional
	// +nullable
	GlobalDynamoNamespace bool `json:"globalDynamoNamespace,omitempty"`

	// resources of the main container; they go over those in extraPodSpec key by
	// key.
	//
	// +optional
	// +nullable
	Resources *Resources `json:"resources,omitempty"`

	// autoscaling is no longer used: point an autoscaler at the service's
	// DynamoGraphDeploymentScalingAdapter instead.
	//
	// +optional
	// +nullable
	Autoscaling *Autoscaling `json:"autoscaling,omitempty"`

	// envs of the main container; they win over the graph's and over those in
	// extraPodSpec by name.
	//
	// +optional
	// +nullable
	// +listType=atomic
	Envs []corev1.EnvVar `json:"envs,omitempty" patchStrategy:"merge" patchMergeKey:"name"`

	// envFromSecret is a Secret whose keys become variables of the main
	// container.
	//
	// +optional
	// +nullable
	EnvFromSecret *string `json:"envFromSecret,omitempty"`

	// volumeMounts mount claims into the main container.
	//
	// +optional
	// +nullable
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	VolumeMounts []VolumeMount `json:"volumeMounts,omitempty"`

	// ingress exposes the service outside the cluster. A frontend without it
	// gets the operator's default.
	//
	// +optional
	// +nullable
	Ingress *IngressSpec `json:"ingress,omitempty"`

	// modelRef is the base model the service serves; a DynamoModel finds its
	// pods by it.
	//
	// +optional
	// +nullable
	ModelRef *ModelReference `json:"modelRef,omitempty"`

	// sharedMemory sizes the memory-backed volume at /dev/shm; 8Gi by default.
	//
	// +optional
	// +nullable
	SharedMemory *SharedMemory `json:"sharedMemory,omitempty"`

	// extraPodMetadata goes over all other labels and annotations of the pods.
	//
	// +optional
	// +nullable
	ExtraPodMetadata *ExtraPodMetadata `json:"extraPodMetadata,omitempty"`

	// extraPodSpec goes over the pods that the operator would make.
	//
	// +optional
	// +nullable
	ExtraPodSpec *ExtraPodSpec `json:"extraPodSpec,omitempty"`

	// livenessProbe replaces the default one of the main container.
	//
	// +optional
	// +nullable
	LivenessProbe *corev1.Probe `json:"livenessProbe,omitempty"`

	// readinessProbe replaces the default one of the main container.
	//
	// +optional
	// +nullable
	ReadinessProbe *corev1.Probe `json:"readinessProbe,omitempty"`

	// replicas is the number of pods, or of groups of nodes if multinode. Unset
	// means 1, or the scaling adapter's number if that is enabled.
	//
	// +optional
	// +nullable
	// +kubebuilder:validation:Minimum=0
	Replicas *int32 `json:"replicas,omitempty"`

	// multinode spreads each replica over several nodes.
	//
	// +optional
	// +nullable
	Multinode *Multinode `json:"multinode,omitempty"`

	// scalingAdapter hands replicas over to a DynamoGraphDeploymentScalingAdapter.
	//
	// +optional
	// +nullable
	ScalingAdapter *ScalingAdapter `json:"scalingAdapter,omitempty"`

	// eppConfig configures an endpoint picker; it is read only if componentType
	// is epp.
	//
	// +optional
	EPPConfig *EPPConfig `json:"eppConfig,omitempty"`

	// frontendSidecar runs a frontend for this service alone in each of its pods.
	//
	// +optional
	// +nullable
	FrontendSidecar *FrontendSidecar `json:"frontendSidecar,omitempty"`

	// gpuMemoryService shares the weights in GPU memory among engines.
	//
	// +optional
	// +nullable
	GPUMemoryService *GPUMemoryService `json:"gpuMemoryService,omitempty"`

	// failover keeps a shadow engine ready.
	//
	// +optional
	// +nullable
	Failover *Failover `json:"failover,omitempty"`

	// checkpoint starts pods from a snapshot of a running engine.
	//
	// +optional
	// +nullable
	Checkpoint *Checkpoint `json:"checkpoint,omitempty"`

	// topologyConstraint packs each replica into a domain that is equal to or
	// narrower than the graph's.
	//
	// +optional
	// +nullable
	TopologyConstraint *ServiceTopologyConstraint `json:"topologyConstraint,omitempty"`

	// minAvailable is how many replicas a gang needs to start; only Grove
	// honours it.
	//
	// +optional
	// +nullable
	// +kubebuilder:validation:Minimum=1
	MinAvailable *int32 `json:"minAvailable,omitempty"`

	// runtimeVersionOverride is the version of the runtime in the image, as
	// x.y.z, where the tag does not tell.
	//
	// +optional
	// +nullable
	// +kubebuilder:validation:Pattern=`^(0|[1-9][0-9]{0,3})\.(0|[1-9][0-9]{0,3})\.(0|[1-9][0-9]{0,3})$`
	RuntimeVersionOverride string `json:"runtimeVersionOverride,omitempty"`

	// providerOverride has no effect.
	//
	// +optional
	// +nullable
	ProviderOverride *ProviderOverride `json:"providerOverride,omitempty"`
}

// ComponentType is the role of a service.
type ComponentType string

// The roles the operator knows. Other values are legal and mean no particular
// role; ComponentTypeMain and ComponentTypeDefault are the customary ones.
const (
	ComponentTypeFrontend ComponentType = "frontend"
	ComponentTypeWorker   ComponentType = "worker"
	ComponentTypePrefill  ComponentType = "prefill"
	ComponentTypeDecode   ComponentType = "decode"
	ComponentTypePlanner  ComponentType = "planner"
	ComponentTypeEPP      ComponentType = "epp"
	ComponentTypeMain     ComponentType = "main"
	ComponentTypeDefault  ComponentType = "default"
)

// The refinements of a worker's role that the planner looks for.
const (
	SubComponentTypePrefill = "prefill"
	SubComponentTypeDecode  = "decode"
)

// Resources of a main container.
type Resources struct {
	// requests are what the scheduler sets aside.
	//
	// +optional
	// +nullable
	Requests *ResourceItem `json:"requests,omitempty"`

	// limits are what the container may use.
	//
	// +optional
	// +nullable
	Limits *ResourceItem `json:"limits,omitempty"`

	// claims refer to resourceClaims of extraPodSpec.
	//
	// +optional
	// +nullable
	// +listType=atomic
	Claims []corev1.ResourceClaim `json:"claims,omitempty"`
}

// ResourceItem is a set of quantities, each a string.
type ResourceItem struct {
	// cpu, such as "4" or "500m".
	//
	// +optional
	// +nullable
	CPU string `json:"cpu,omitempty"`

	// memory, such as "16Gi".
	//
	// +optional
	// +nullable
	Memory string `json:"memory,omitempty"`

	// gpu is the number of GPUs per node.
	//
	// +optional
	// +nullable
	GPU string `json:"gpu,omitempty"`

	// gpuType is the resource name of the GPUs, nvidia.com/gpu by default. That in
	// limits counts, and that in requests where limits have none.
	//
	// +optional
	// +nullable
	GPUType string `json:"gpuType,omitempty"`

	// custom quantities by resource name; they go over the others.
	//
	// +optional
	// +nullable
	Custom map[string]string `json:"custom,omitempty"`
}

// Autoscaling is accepted and ignored.
type Autoscaling struct {
	// +optional
	Enabled bool `json:"enabled,omitempty"`
	// +optional
	MinReplicas int32 `json:"minReplicas,omitempty"`
	// +optional
	MaxReplicas int32 `json:"maxReplicas,omitempty"`
	// +optional
	Behavior *autoscalingv2.HorizontalPodAutoscalerBehavior `json:"behavior,omitempty"`
	// +optional
	// +listType=atomic
	Metrics []autoscalingv2.MetricSpec `json:"metrics,omitempty"`
}

// VolumeMount mounts a claim into the main container.
//
// +kubebuilder:validation:XValidation:rule="(has(self.useAsCompilationCache) && self.useAsCompilationCache) || (has(self.mountPoint) && size(self.mountPoint) > 0)",message="a mount needs a mountPoint unless it is the compilation cache",reason="FieldValueRequired",fieldPath=".mountPoint"
type VolumeMount struct {
	// name of the claim and of the volume. It need not be among the graph's pvcs.
	//
	// +required
	Name string `json:"name"`

	// mountPoint is the path in the container.
	//
	// +optional
	MountPoint string `json:"mountPoint,omitempty"`

	// useAsCompilationCache keeps the engine's compiled artefacts here. With
	// vLLM the mountPoint may then be left out.
	//
	// +optional
	// +kubebuilder:default=false
	UseAsCompilationCache bool `json:"useAsCompilationCache,omitempty"`
}

// IngressSpec exposes a service outside the cluster.
//
// +kubebuilder:validation:XValidation:rule="!has(self.enabled) || !self.enabled || (has(self.host) && size(self.host) > 0)",message="an enabled ingress needs a host",reason="FieldValueRequired",fieldPath=".host"
type IngressSpec struct {
	// enabled makes an Ingress if ingressControllerClassName is given, and a
	// VirtualService if useVirtualService and virtualServiceGateway are.
	//
	// +optional
	Enabled bool `json:"enabled,omitempty"`

	// host is the middle of the host name: hostPrefix + host + "." + hostSuffix.
	//
	// +optional
	Host string `json:"host,omitempty"`

	// hostPrefix is put before the host without a separator.
	//
	// +optional
	// +nullable
	HostPrefix *string `json:"hostPrefix,omitempty"`

	// hostSuffix is the domain; by default the operator's, or "local".
	//
	// +optional
	// +nullable
	HostSuffix *string `json:"hostSuffix,omitempty"`

	// ingressControllerClassName is the class of the Ingress; by default the
	// operator's, unless useVirtualService is set. Without one, or with an empty
	// one, no Ingress is made.
	//
	// +optional
	// +nullable
	IngressControllerClassName *string `json:"ingressControllerClassName,omitempty"`

	// tls of the Ingress; by default the operator's. An empty secretName turns it
	// off.
	//
	// +optional
	// +nullable
	TLS *IngressTLS `json:"tls,omitempty"`

	// useVirtualService makes an Istio VirtualService; an Ingress beside it only if
	// a class is given. What gives nothing but a host has both, as far as the
	// operator is configured for them.
	//
	// +optional
	UseVirtualService bool `json:"useVirtualService,omitempty"`

	// virtualServiceGateway is the Istio gateway of the VirtualService; by default
	// the operator's.
	//
	// +optional
	// +nullable
	VirtualServiceGateway *string `json:"virtualServiceGateway,omitempty"`

	// annotations of the Ingress or VirtualService.
	//
	// +optional
	// +nullable
	Annotations map[string]string `json:"annotations,omitempty"`

	// labels of the Ingress or VirtualService.
	//
	// +optional
	// +nullable
	Labels map[string]string `json:"labels,omitempty"`
}

// IngressTLS names the certificate of an Ingress.
type IngressTLS struct {
	// secretName is the Secret that holds the certificate.
	//
	// +optional
	SecretName string `json:"secretName,omitempty"`
}

// ModelReference names the base model that a service serves.
type ModelReference struct {
	// name of the model; if empty the reference has no effect.
	//
	// +required
	Name string `json:"name"`

	// revision of the model; it has no effect.
	//
	// +optional
	Revision string `json:"revision,omitempty"`
}

// SharedMemory sizes the volume at /dev/shm.
type SharedMemory struct {
	// disabled leaves the volume out.
	//
	// +optional
	Disabled bool `json:"disabled,omitempty"`

	// size of the volume. A stored zero means unset, which is 8Gi.
	//
	// +optional
	Size *resource.Quantity `json:"size,omitempty"`
}

// ExtraPodMetadata goes over the metadata of pods.
type ExtraPodMetadata struct {
	// annotations of the pods.
	//
	// +optional
	// +nullable
	Annotations map[string]string `json:"annotations,omitempty"`

	// labels of the pods.
	//
	// +optional
	// +nullable
	Labels map[string]string `json:"labels,omitempty"`
}

// Multinode spreads each replica of a service over nodes.
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
	// +nullable
	Leader *MultinodeRole `json:"leader,omitempty"`

	// worker is what the other pods of a group differ in.
	//
	// +optional
	// +nullable
	Worker *MultinodeRole `json:"worker,omitempty"`
}

// ScalingAdapter hands the replicas of a service over to an adapter object.
type ScalingAdapter struct {
	// enabled makes the adapter, named after graph and service.
	//
	// +optional
	// +kubebuilder:default=false
	Enabled bool `json:"enabled,omitempty"`
}
