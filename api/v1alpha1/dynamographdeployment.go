package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// DynamoGraphDeployment is an inference graph: the services that together
// answer requests for a model, and what they share.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=dgd
// +kubebuilder:printcolumn:name="Ready",type="string",JSONPath=".status.conditions[?(@.type==\"Ready\")].status"
// +kubebuilder:printcolumn:name="Backend",type="string",JSONPath=".spec.backendFramework"
// +kubebuilder:printcolumn:name="State",type="string",JSONPath=".status.state",priority=1
// +kubebuilder:printcolumn:name="Message",type="string",JSONPath=".status.conditions[?(@.type==\"Ready\")].message",priority=1
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp"
// +kubebuilder:metadata:annotations="helm.sh/resource-policy=keep"
type DynamoGraphDeployment struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// +required
	Spec DynamoGraphDeploymentSpec `json:"spec,omitzero"`
	// +optional
	Status DynamoGraphDeploymentStatus `json:"status,omitzero"`
}

// DynamoGraphDeploymentSpec says which services make up the graph.
//
// +kubebuilder:validation:XValidation:rule="has(self.backendFramework) == has(oldSelf.backendFramework) && (!has(self.backendFramework) || self.backendFramework == oldSelf.backendFramework)",message="the backend of a graph cannot be changed, set or removed after creation: create a new graph",fieldPath=".backendFramework"
type DynamoGraphDeploymentSpec struct {
	// services are the components of the graph by name. The name appears as it
	// is in label values and in lower case in the names of objects. A null
	// service is an empty one.
	//
	// +required
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=25
	Services map[string]*SharedSpec `json:"services,omitempty"`

	// pvcs are the volume claims that services of this graph mount.
	//
	// +optional
	// +nullable
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	PVCs []PVC `json:"pvcs,omitempty" patchStrategy:"merge" patchMergeKey:"name"`

	// envs are set in every service; a service's own envs win by name.
	//
	// +optional
	// +nullable
	// +listType=atomic
	Envs []corev1.EnvVar `json:"envs,omitempty" patchStrategy:"merge" patchMergeKey:"name"`

	// backendFramework is the inference engine of the workers. If unset it is
	// recognised from each worker's command line. It cannot change later.
	//
	// +optional
	// +kubebuilder:validation:Enum=sglang;vllm;trtllm
	BackendFramework BackendFramework `json:"backendFramework,omitempty"`

	// restart asks for one controlled restart of the services each time its id
	// changes.
	//
	// +optional
	// +nullable
	Restart *Restart `json:"restart,omitempty"`

	// annotations for every child and pod; those of a service win.
	//
	// +optional
	// +nullable
	Annotations map[string]string `json:"annotations,omitempty"`

	// labels for every child and pod; those of a service win.
	//
	// +optional
	// +nullable
	Labels map[string]string `json:"labels,omitempty"`

	// priorityClassName of the pods; only Grove honours it.
	//
	// +optional
	// +nullable
	PriorityClassName string `json:"priorityClassName,omitempty"`

	// topologyConstraint packs the graph into a domain of a cluster topology.
	//
	// +optional
	// +nullable
	TopologyConstraint *TopologyConstraint `json:"topologyConstraint,omitempty"`

	// experimental settings may change between releases.
	//
	// +optional
	// +nullable
	Experimental *GraphExperimental `json:"experimental,omitempty"`

	// providerOverride has no effect.
	//
	// +optional
	// +nullable
	ProviderOverride *ProviderOverride `json:"providerOverride,omitempty"`
}

// BackendFramework names an inference engine.
type BackendFramework string

// The engines the operator knows how to launch.
const (
	BackendFrameworkSGLang BackendFramework = "sglang"
	BackendFrameworkVLLM   BackendFramework = "vllm"
	BackendFrameworkTRTLLM BackendFramework = "trtllm"
)

// PVC is a volume claim that the graph uses and, if asked, creates.
//
// +kubebuilder:validation:XValidation:rule="!has(self.create) || !self.create || has(self.size)",message="a claim to create needs a size",reason="FieldValueRequired",fieldPath=".size"
// +kubebuilder:validation:XValidation:rule="!has(self.create) || !self.create || (has(self.storageClass) && size(self.storageClass) > 0)",message="a claim to create needs a storage class",reason="FieldValueRequired",fieldPath=".storageClass"
// +kubebuilder:validation:XValidation:rule="!has(self.create) || !self.create || (has(self.volumeAccessMode) && size(self.volumeAccessMode) > 0)",message="a claim to create needs an access mode",reason="FieldValueRequired",fieldPath=".volumeAccessMode"
type PVC struct {
	// name of the claim, used as it is.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	Name string `json:"name"`

	// create makes the claim if it is absent; it is then deleted with the graph
	// unless the graph is annotated nvidia.com/retain-pvcs. Otherwise the claim
	// must exist. Existing claims are never modified.
	//
	// +optional
	Create *bool `json:"create,omitempty"`

	// storageClass of a created claim.
	//
	// +optional
	StorageClass string `json:"storageClass,omitempty"`

	// size of a created claim. A stored zero means unset.
	//
	// +optional
	Size *resource.Quantity `json:"size,omitempty"`

	// volumeAccessMode of a created claim.
	//
	// +optional
	VolumeAccessMode corev1.PersistentVolumeAccessMode `json:"volumeAccessMode,omitempty"`
}

// Restart asks for one controlled restart of the graph.
type Restart struct {
	// id is opaque; each new value triggers one restart.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	ID string `json:"id"`

	// strategy says in which order services restart.
	//
	// +optional
	Strategy *RestartStrategy `json:"strategy,omitempty"`
}

// RestartStrategy orders a restart.
//
// +kubebuilder:validation:XValidation:rule="!has(self.type) || self.type != 'Parallel' || !has(self.order) || size(self.order) == 0",message="a parallel restart has no order",reason="FieldValueForbidden",fieldPath=".order"
type RestartStrategy struct {
	// type is Sequential (one service at a time) or Parallel (all at once).
	//
	// +optional
	// +kubebuilder:default=Sequential
	Type RestartStrategyType `json:"type,omitempty"`

	// order names every service once, in the order to restart them. If empty,
	// services restart in ascending order of their names.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	Order []string `json:"order,omitempty"`
}

// RestartStrategyType is how a restart walks the services.
//
// +kubebuilder:validation:Enum=Sequential;Parallel
type RestartStrategyType string

// The ways a restart can walk the services.
const (
	RestartSequential RestartStrategyType = "Sequential"
	RestartParallel   RestartStrategyType = "Parallel"
)

// DynamoGraphDeploymentStatus is what was last seen of the graph.
type DynamoGraphDeploymentStatus struct {
	// observedGeneration is the generation of the spec this status describes.
	//
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// state sums the graph up in one word: pending, successful or failed. It is
	// empty until the graph is first looked at.
	//
	// +optional
	State GraphState `json:"state,omitempty"`

	// conditions of the graph; Ready is true when state is successful.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// services is the progress of each service by name.
	//
	// +optional
	Services map[string]ServiceReplicaStatus `json:"services,omitempty"`

	// restart is the progress of the last requested restart. It stays after the
	// request is removed from the spec.
	//
	// +optional
	Restart *RestartStatus `json:"restart,omitempty"`

	// checkpoints of services by name.
	//
	// +optional
	Checkpoints map[string]CheckpointStatus `json:"checkpoints,omitempty"`

	// rollingUpdate is the progress of the last rollout of workers.
	//
	// +optional
	RollingUpdate *RollingUpdateStatus `json:"rollingUpdate,omitempty"`

	// rollout is how one generation of workers replaces another, in more detail. It
	// is absent of a graph that never rolled out.
	//
	// +optional
	Rollout *RolloutStatus `json:"rollout,omitempty"`

	// placement is how well the pods are placed.
	//
	// +optional
	Placement *PlacementStatus `json:"placement,omitempty"`
}

// GraphState sums a graph up in one word.
type GraphState string

// The states of a graph.
const (
	GraphStatePending    GraphState = "pending"
	GraphStateSuccessful GraphState = "successful"
	GraphStateFailed     GraphState = "failed"
)

// RestartStatus is the progress of a restart.
type RestartStatus struct {
	// observedID is the id of the restart this status describes.
	//
	// +optional
	ObservedID string `json:"observedID,omitempty"`

	// phase of the restart: Pending, Restarting, Completed or Failed.
	//
	// +optional
	Phase RestartPhase `json:"phase,omitempty"`

	// inProgress names the services still to finish if the restart is parallel,
	// or the service restarting now if it is sequential.
	//
	// +optional
	// +listType=atomic
	InProgress []string `json:"inProgress,omitempty"`

	// message says what the restart waits for or why it failed.
	//
	// +optional
	Message string `json:"message,omitempty"`
}

// RestartPhase is how far a restart has come.
type RestartPhase string

// The phases of a restart, in the order they are passed.
const (
	RestartPhasePending    RestartPhase = "Pending"
	RestartPhaseRestarting RestartPhase = "Restarting"
	RestartPhaseCompleted  RestartPhase = "Completed"
	RestartPhaseFailed     RestartPhase = "Failed"
	// RestartPhaseSuperseded is how the original ends a restart that another change overtook.
	RestartPhaseSuperseded RestartPhase = "Superseded"
)

// DynamoGraphDeploymentList is a list of graphs.
//
// +kubebuilder:object:root=true
type DynamoGraphDeploymentList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`

	Items []DynamoGraphDeployment `json:"items"`
}
