package v1alpha1

import (
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// DynamoGraphDeploymentRequest asks for a graph by model and targets instead of
// by services: a profiling job finds a configuration that meets them.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=dgdr
// +kubebuilder:printcolumn:name="Model",type="string",JSONPath=".spec.model"
// +kubebuilder:printcolumn:name="Backend",type="string",JSONPath=".status.backend"
// +kubebuilder:printcolumn:name="State",type="string",JSONPath=".status.state"
// +kubebuilder:printcolumn:name="DGD-State",type="string",JSONPath=".status.deployment.state"
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

// DynamoGraphDeploymentRequestSpec says what to serve and how to profile it.
type DynamoGraphDeploymentRequestSpec struct {
	// model to serve.
	//
	// +required
	Model string `json:"model"`

	// backend is the engine to profile; auto leaves the choice to the profiler.
	//
	// +required
	// +kubebuilder:validation:Enum=auto;sglang;vllm;trtllm
	Backend BackendFramework `json:"backend"`

	// useMocker takes the graph of mock engines instead of the real one.
	//
	// +optional
	// +kubebuilder:default=false
	UseMocker bool `json:"useMocker,omitempty"`

	// autoApply creates the generated graph.
	//
	// +optional
	// +kubebuilder:default=false
	AutoApply bool `json:"autoApply,omitempty"`

	// enableGpuDiscovery fills in the hardware from the cluster's nodes. It
	// needs an operator that manages the whole cluster.
	//
	// +optional
	// +kubebuilder:default=false
	EnableGPUDiscovery bool `json:"enableGpuDiscovery,omitempty"`

	// deploymentOverrides changes the generated graph.
	//
	// +optional
	DeploymentOverrides *DeploymentOverrides `json:"deploymentOverrides,omitempty"`

	// profilingConfig is what the profiling job is given.
	//
	// +required
	ProfilingConfig ProfilingConfig `json:"profilingConfig"`

	// runtimeVersionOverride is the version of the runtime in the image, as
	// x.y.z, where the tag does not tell.
	//
	// +optional
	// +kubebuilder:validation:Pattern=`^(0|[1-9][0-9]{0,3})\.(0|[1-9][0-9]{0,3})\.(0|[1-9][0-9]{0,3})$`
	RuntimeVersionOverride string `json:"runtimeVersionOverride,omitempty"`

	// overrides change what is generated. They belong to v1beta1 and stand here
	// in full, because they decide as whom the job runs and what the graph is:
	// a policy for v1alpha1 must see them.
	//
	// +optional
	Overrides *RequestOverrides `json:"overrides,omitempty"`
}

// RequestOverrides change what is generated.
type RequestOverrides struct {
	// profilingJob goes over the profiling job; v1beta1 has its schema.
	//
	// +optional
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	ProfilingJob *batchv1.JobSpec `json:"profilingJob,omitempty"`

	// dgd is a partial DynamoGraphDeployment of either version that goes over the
	// generated one.
	//
	// +optional
	// +kubebuilder:validation:EmbeddedResource
	// +kubebuilder:pruning:PreserveUnknownFields
	DGD *runtime.RawExtension `json:"dgd,omitempty"`
}

// DeploymentOverrides changes the generated graph.
type DeploymentOverrides struct {
	// name of the graph; by default that of the request, with hyphens for dots.
	//
	// +optional
	Name string `json:"name,omitempty"`

	// namespace of the graph; by default that of the request.
	//
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// labels added to the graph.
	//
	// +optional
	Labels map[string]string `json:"labels,omitempty"`

	// annotations added to the graph.
	//
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`

	// workersImage is the image of the graph's workers, during profiling too.
	//
	// +optional
	WorkersImage string `json:"workersImage,omitempty"`
}

// ProfilingConfig is what the profiling job is given.
type ProfilingConfig struct {
	// config is the profiler's own configuration. The operator sets the model,
	// the engine and the output folder in it.
	//
	// +required
	// +kubebuilder:pruning:PreserveUnknownFields
	Config *runtime.RawExtension `json:"config,omitempty"`

	// configMapRef holds a graph to start from.
	//
	// +optional
	ConfigMapRef *ConfigMapKeyRef `json:"configMapRef,omitempty"`

	// profilerImage is the image of the job.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	ProfilerImage string `json:"profilerImage"`

	// outputPVC is an existing claim that keeps the raw results; by default they
	// are gone with the job.
	//
	// +optional
	OutputPVC string `json:"outputPVC,omitempty"`

	// resources of the job's container.
	//
	// +optional
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`

	// tolerations of the job's pod.
	//
	// +optional
	// +listType=atomic
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`

	// nodeSelector of the job's pod.
	//
	// +optional
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`
}

// ConfigMapKeyRef names a key of a ConfigMap in the same namespace.
type ConfigMapKeyRef struct {
	// name of the ConfigMap.
	//
	// +required
	Name string `json:"name"`

	// key in the ConfigMap.
	//
	// +optional
	// +kubebuilder:default=disagg.yaml
	Key string `json:"key,omitempty"`
}

// DynamoGraphDeploymentRequestStatus is how far the request has come.
type DynamoGraphDeploymentRequestStatus struct {
	// observedGeneration is the generation of the spec this status describes.
	//
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// state is Pending, Profiling, Deploying, Ready, DeploymentDeleted or Failed.
	//
	// +optional
	State RequestState `json:"state,omitempty"`

	// backend is the engine being profiled.
	//
	// +optional
	// +kubebuilder:validation:Enum=auto;sglang;vllm;trtllm
	Backend BackendFramework `json:"backend,omitempty"`

	// accepted is what the request goes by since its work began. Nothing else
	// decides what is made, and where: not the spec as it is now, and no object
	// that users can write.
	//
	// +optional
	Accepted *AcceptedRequest `json:"accepted,omitempty"`

	// profilingResults names the object that holds the results, as
	// configmap/<name>.
	//
	// +optional
	ProfilingResults string `json:"profilingResults,omitempty"`

	// generatedDeployment is the graph the profiler recommends.
	//
	// +optional
	// +kubebuilder:validation:EmbeddedResource
	// +kubebuilder:pruning:PreserveUnknownFields
	GeneratedDeployment *runtime.RawExtension `json:"generatedDeployment,omitempty"`

	// deployment is the graph that was created.
	//
	// +optional
	Deployment *RequestedDeployment `json:"deployment,omitempty"`

	// profilingPhase is how far profiling has come.
	//
	// +optional
	ProfilingPhase string `json:"profilingPhase,omitempty"`

	// profilingJobName is the Job.
	//
	// +optional
	ProfilingJobName string `json:"profilingJobName,omitempty"`

	// pareto is what v1beta1 has in profilingResults; it is deprecated.
	//
	// +optional
	// +listType=atomic
	Pareto []ParetoConfig `json:"pareto,omitempty"`

	// deploymentInfo is the progress of the graph that was created.
	//
	// +optional
	DeploymentInfo *DeploymentInfo `json:"deploymentInfo,omitempty"`

	// conditions of the request: Validation, Profiling, SpecGenerated and
	// DeploymentReady.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ParetoConfig is one of the best configurations.
type ParetoConfig struct {
	// config is the graph.
	//
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	Config *runtime.RawExtension `json:"config,omitempty"`
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

// AcceptedRequest is a request as it was when its work began.
type AcceptedRequest struct {
	// generation of the spec that was accepted.
	//
	// +optional
	Generation int64 `json:"generation,omitempty"`

	// spec that was accepted.
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
	// and key. They come from the status of its pod.
	//
	// +optional
	OutputDigests map[string]string `json:"outputDigests,omitempty"`
}

// RequestState is how far a request has come.
//
//	"" -> Pending -> Profiling -+-> Ready                     autoApply off
//	                            +-> Deploying <-> Ready -> DeploymentDeleted
//	any of them before Ready -> Failed
type RequestState string

// The states of a request.
const (
	RequestStateInitial           RequestState = ""
	RequestStatePending           RequestState = "Pending"
	RequestStateProfiling         RequestState = "Profiling"
	RequestStateDeploying         RequestState = "Deploying"
	RequestStateReady             RequestState = "Ready"
	RequestStateDeploymentDeleted RequestState = "DeploymentDeleted"
	RequestStateFailed            RequestState = "Failed"
)

// RequestedDeployment mirrors the graph that a request created.
type RequestedDeployment struct {
	// name of the graph.
	//
	// +optional
	Name string `json:"name,omitempty"`

	// namespace of the graph.
	//
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// state of the graph.
	//
	// +optional
	State GraphState `json:"state,omitempty"`

	// created is true once the graph was created.
	//
	// +optional
	Created bool `json:"created,omitempty"`
}

// DynamoGraphDeploymentRequestList is a list of requests.
//
// +kubebuilder:object:root=true
type DynamoGraphDeploymentRequestList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`

	Items []DynamoGraphDeploymentRequest `json:"items"`
}
