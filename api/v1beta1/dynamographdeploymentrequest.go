package v1beta1

import (
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// DynamoGraphDeploymentRequest asks for a graph by model and targets instead of
// by components: a profiling job finds a configuration that meets them.
//
// +kubebuilder:object:root=true
// +kubebuilder:unservedversion
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=dgdr
// +kubebuilder:printcolumn:name="Model",type="string",JSONPath=".spec.model"
// +kubebuilder:printcolumn:name="Backend",type="string",JSONPath=".spec.backend"
// +kubebuilder:printcolumn:name="Phase",type="string",JSONPath=".status.phase"
// +kubebuilder:printcolumn:name="Profiling",type="string",JSONPath=".status.profilingPhase"
// +kubebuilder:printcolumn:name="Reason",type="string",JSONPath=".status.conditions[?(@.type==\"Succeeded\")].reason"
// +kubebuilder:printcolumn:name="Message",type="string",JSONPath=".status.conditions[?(@.type==\"Succeeded\")].message"
// +kubebuilder:printcolumn:name="DGD",type="string",JSONPath=".status.dgdName"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp"
// +kubebuilder:metadata:annotations="helm.sh/resource-policy=keep"
type DynamoGraphDeploymentRequest struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// +required
	Spec DynamoGraphDeploymentRequestSpec `json:"spec,omitzero"`
	// +optional
	Status DynamoGraphDeploymentRequestStatus `json:"status,omitzero"`
}

// DynamoGraphDeploymentRequestSpec says what to serve and how well.
type DynamoGraphDeploymentRequestSpec struct {
	// model to serve.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	Model string `json:"model"`

	// backend is the engine to profile.
	//
	// +optional
	// +kubebuilder:default=auto
	// +kubebuilder:validation:Enum=auto;sglang;trtllm;vllm
	Backend string `json:"backend,omitempty"`

	// image of the profiling job.
	//
	// +optional
	Image string `json:"image,omitempty"`

	// runtimeVersionOverride is the version of the runtime in the image, as
	// x.y.z, where the tag does not tell.
	//
	// +optional
	// +kubebuilder:validation:Pattern=`^(0|[1-9][0-9]{0,3})\.(0|[1-9][0-9]{0,3})\.(0|[1-9][0-9]{0,3})$`
	RuntimeVersionOverride string `json:"runtimeVersionOverride,omitempty"`

	// modelCache is a claim that holds the model.
	//
	// +optional
	ModelCache *ModelCache `json:"modelCache,omitempty"`

	// hardware to plan for; what is missing is taken from the cluster.
	//
	// +optional
	Hardware *Hardware `json:"hardware,omitempty"`

	// workload is the shape of the requests.
	//
	// +optional
	Workload *Workload `json:"workload,omitempty"`

	// sla is what the graph must reach.
	//
	// +optional
	SLA *SLA `json:"sla,omitempty"`

	// overrides change what is generated.
	//
	// +optional
	Overrides *Overrides `json:"overrides,omitempty"`

	// features of the generated graph.
	//
	// +optional
	Features *Features `json:"features,omitempty"`

	// searchStrategy is rapid (estimates) or thorough (measurements).
	//
	// +optional
	// +kubebuilder:default=rapid
	// +kubebuilder:validation:Enum=rapid;thorough
	SearchStrategy string `json:"searchStrategy,omitempty"`

	// autoApply creates the generated graph.
	//
	// +optional
	// +kubebuilder:default=true
	AutoApply *bool `json:"autoApply,omitempty"`
}

// How a profiler searches.
const (
	SearchStrategyRapid    = "rapid"
	SearchStrategyThorough = "thorough"
)

// ModelCache is a claim that holds a model.
type ModelCache struct {
	// pvcName is the claim.
	//
	// +optional
	PVCName string `json:"pvcName,omitempty"`

	// pvcModelPath is the path of the model in the claim.
	//
	// +optional
	PVCModelPath string `json:"pvcModelPath,omitempty"`

	// pvcMountPath is where the claim is mounted.
	//
	// +optional
	// +kubebuilder:default=/opt/model-cache
	PVCMountPath string `json:"pvcMountPath,omitempty"`
}

// Hardware is what a graph is planned for.
type Hardware struct {
	// gpuSku is the model of GPU.
	//
	// +optional
	// +kubebuilder:validation:Enum=gb200_sxm;gb10;b200_sxm;h200_sxm;h100_sxm;h100_pcie;a100_sxm;a100_pcie;a30;l40s;l40;l4;v100_sxm;v100_pcie;t4;mi200;mi300
	GPUSKU string `json:"gpuSku,omitempty"`

	// vramMb is the memory of a GPU.
	//
	// +optional
	VRAMMB *float64 `json:"vramMb,omitempty"`

	// totalGpus that may be used.
	//
	// +optional
	TotalGPUs *int32 `json:"totalGpus,omitempty"`

	// numGpusPerNode is the number of GPUs of a node.
	//
	// +optional
	NumGPUsPerNode *int32 `json:"numGpusPerNode,omitempty"`

	// interconnect of the nodes.
	//
	// +optional
	Interconnect string `json:"interconnect,omitempty"`

	// rdma tells whether nodes reach each other by RDMA.
	//
	// +optional
	RDMA *bool `json:"rdma,omitempty"`
}

// Workload is the shape of the requests.
//
// +kubebuilder:validation:XValidation:rule="!has(self.concurrency) || !has(self.requestRate)",message="give either concurrency or requestRate"
type Workload struct {
	// isl is the number of input tokens of a request.
	//
	// +optional
	// +kubebuilder:default=4000
	ISL *int32 `json:"isl,omitempty"`

	// osl is the number of output tokens of a request.
	//
	// +optional
	// +kubebuilder:default=1000
	OSL *int32 `json:"osl,omitempty"`

	// concurrency is the number of requests at a time.
	//
	// +optional
	Concurrency *float64 `json:"concurrency,omitempty"`

	// requestRate is the number of requests a second.
	//
	// +optional
	RequestRate *float64 `json:"requestRate,omitempty"`
}

// SLA is what a graph must reach.
type SLA struct {
	// ttft is the time to the first token in milliseconds.
	//
	// +optional
	TTFT *float64 `json:"ttft,omitempty"`

	// itl is the time between tokens in milliseconds.
	//
	// +optional
	ITL *float64 `json:"itl,omitempty"`

	// e2eLatency is the time of a whole request in milliseconds.
	//
	// +optional
	E2ELatency *float64 `json:"e2eLatency,omitempty"`

	// optimizationType is latency or throughput.
	//
	// +optional
	// +kubebuilder:validation:Enum=latency;throughput
	OptimizationType string `json:"optimizationType,omitempty"`
}

// Overrides change what is generated.
type Overrides struct {
	// profilingJob goes over the profiling job.
	//
	// +optional
	ProfilingJob *batchv1.JobSpec `json:"profilingJob,omitempty"`

	// dgd is a partial DynamoGraphDeployment of either version that goes over the
	// generated one.
	//
	// +optional
	// +kubebuilder:validation:EmbeddedResource
	// +kubebuilder:pruning:PreserveUnknownFields
	DGD *runtime.RawExtension `json:"dgd,omitempty"`
}

// Features of the generated graph.
type Features struct {
	// planner is the configuration of a planner. It is enabled by being present.
	//
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	Planner *runtime.RawExtension `json:"planner,omitempty"`

	// mocker takes mock engines instead of the real ones.
	//
	// +optional
	Mocker *Mocker `json:"mocker,omitempty"`
}

// Mocker takes mock engines instead of the real ones.
type Mocker struct {
	// enabled turns it on.
	//
	// +optional
	Enabled bool `json:"enabled,omitempty"`
}

// DynamoGraphDeploymentRequestStatus is how far the request has come.
type DynamoGraphDeploymentRequestStatus struct {
	// observedGeneration is the generation of the spec this status describes.
	//
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// phase is Pending, Profiling, Ready, Deploying, Deployed or Failed.
	//
	// +optional
	Phase RequestPhase `json:"phase,omitempty"`

	// profilingPhase is how far profiling has come.
	//
	// +optional
	ProfilingPhase string `json:"profilingPhase,omitempty"`

	// dgdName is the graph that was created.
	//
	// +optional
	DGDName string `json:"dgdName,omitempty"`

	// profilingJobName is the Job.
	//
	// +optional
	ProfilingJobName string `json:"profilingJobName,omitempty"`

	// backend is the engine being profiled.
	//
	// +optional
	Backend string `json:"backend,omitempty"`

	// accepted is what the request goes by since its work began.
	//
	// +optional
	Accepted *AcceptedRequest `json:"accepted,omitempty"`

	// profilingResults is what profiling found.
	//
	// +optional
	ProfilingResults *ProfilingResults `json:"profilingResults,omitempty"`

	// deployment is the graph that was created.
	//
	// +optional
	Deployment *RequestedDeployment `json:"deployment,omitempty"`

	// deploymentInfo is the progress of that graph.
	//
	// +optional
	DeploymentInfo *DeploymentInfo `json:"deploymentInfo,omitempty"`

	// conditions of the request.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// RequestPhase is how far a request has come.
type RequestPhase string

// The phases of a request.
const (
	RequestPhasePending   RequestPhase = "Pending"
	RequestPhaseProfiling RequestPhase = "Profiling"
	RequestPhaseReady     RequestPhase = "Ready"
	RequestPhaseDeploying RequestPhase = "Deploying"
	RequestPhaseDeployed  RequestPhase = "Deployed"
	RequestPhaseFailed    RequestPhase = "Failed"
)

// AcceptedRequest is a request as it was when its work began.
type AcceptedRequest struct {
	// generation of the spec that was accepted.
	//
	// +optional
	Generation int64 `json:"generation,omitempty"`

	// spec that was accepted, as v1alpha1.
	//
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	Spec *runtime.RawExtension `json:"spec,omitempty"`

	// version of the API that the request was written as, where that is not
	// v1alpha1.
	//
	// +optional
	// +kubebuilder:validation:Enum=v1alpha1;v1beta1
	Version string `json:"version,omitempty"`

	// profilerConfig is what the profiler is told.
	//
	// +optional
	ProfilerConfig string `json:"profilerConfig,omitempty"`

	// outputDigests are the SHA-256 sums of what the profiler left, by ConfigMap
	// and key.
	//
	// +optional
	OutputDigests map[string]string `json:"outputDigests,omitempty"`
}

// ProfilingResults is what profiling found.
type ProfilingResults struct {
	// selectedConfig is the graph the profiler recommends.
	//
	// +optional
	// +kubebuilder:validation:EmbeddedResource
	// +kubebuilder:pruning:PreserveUnknownFields
	SelectedConfig *runtime.RawExtension `json:"selectedConfig,omitempty"`

	// pareto is deprecated.
	//
	// +optional
	// +listType=atomic
	Pareto []ParetoConfig `json:"pareto,omitempty"`

	// reference names the object that holds the results, as configmap/<name>.
	//
	// +optional
	Reference string `json:"reference,omitempty"`
}

// ParetoConfig is one of the best configurations.
type ParetoConfig struct {
	// config is the graph.
	//
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	Config *runtime.RawExtension `json:"config,omitempty"`
}

// RequestedDeployment mirrors the graph that a request created.
type RequestedDeployment struct {
	// namespace of the graph.
	//
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// state of the graph.
	//
	// +optional
	State string `json:"state,omitempty"`

	// created is true once the graph was created.
	//
	// +optional
	Created bool `json:"created,omitempty"`

	// deleted is true once the graph was deleted by somebody else.
	//
	// +optional
	Deleted bool `json:"deleted,omitempty"`
}

// DeploymentInfo is the progress of the graph that was created.
type DeploymentInfo struct {
	// replicas that exist.
	//
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`

	// availableReplicas are those ready for long enough.
	//
	// +optional
	AvailableReplicas *int32 `json:"availableReplicas,omitempty"`
}

// DynamoGraphDeploymentRequestList is a list of requests.
//
// +kubebuilder:object:root=true
type DynamoGraphDeploymentRequestList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`

	Items []DynamoGraphDeploymentRequest `json:"items"`
}
