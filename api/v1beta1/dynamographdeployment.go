package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// DynamoGraphDeployment is an inference graph: the components that together
// answer requests for a model, and what they share.
//
// +kubebuilder:object:root=true
// +kubebuilder:unservedversion
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

// DynamoGraphDeploymentSpec says which components make up the graph.
//
// +kubebuilder:validation:XValidation:rule="has(self.backendFramework) == has(oldSelf.backendFramework) && (!has(self.backendFramework) || self.backendFramework == oldSelf.backendFramework)",message="the backend of a graph cannot be changed, set or removed after creation: create a new graph",fieldPath=".backendFramework"
// +kubebuilder:validation:XValidation:rule="has(self.topologyConstraint) == has(oldSelf.topologyConstraint) && (!has(self.topologyConstraint) || self.topologyConstraint == oldSelf.topologyConstraint)",message="the topology constraint of a graph cannot be changed, set or removed after creation: create a new graph",fieldPath=".topologyConstraint"
type DynamoGraphDeploymentSpec struct {
	// components of the graph.
	//
	// +required
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=25
	// +kubebuilder:validation:XValidation:rule="self.filter(c, has(c.type) && c.type == 'epp').size() <= 1",message="a graph has at most one endpoint picker"
	// +kubebuilder:validation:XValidation:rule="self.all(a, self.exists_one(b, b.name.lowerAscii() == a.name.lowerAscii()))",message="names of components must differ in more than case"
	Components []Component `json:"components,omitempty" patchStrategy:"merge" patchMergeKey:"name"`

	// env is set in every component; a component's own entry wins by name.
	//
	// +optional
	// +listType=atomic
	Env []corev1.EnvVar `json:"env,omitempty" patchStrategy:"merge" patchMergeKey:"name"`

	// backendFramework is the inference engine of the workers. If unset it is
	// recognised from each worker's command line. It cannot change later.
	//
	// +optional
	// +kubebuilder:validation:Enum=sglang;vllm;trtllm
	BackendFramework string `json:"backendFramework,omitempty"`

	// annotations for every child and pod; those of a component win.
	//
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`

	// labels for every child and pod; those of a component win.
	//
	// +optional
	Labels map[string]string `json:"labels,omitempty"`

	// priorityClassName of the pods; only Grove honours it.
	//
	// +optional
	PriorityClassName string `json:"priorityClassName,omitempty"`

	// restart asks for one controlled restart of the components each time its id
	// changes.
	//
	// +optional
	Restart *Restart `json:"restart,omitempty"`

	// topologyConstraint packs the graph into a domain of a cluster topology. It
	// cannot change later.
	//
	// +optional
	TopologyConstraint *TopologyConstraint `json:"topologyConstraint,omitempty"`

	// experimental settings may change between releases.
	//
	// +optional
	Experimental *GraphExperimental `json:"experimental,omitempty"`

	// providerOverride has no effect.
	//
	// +optional
	ProviderOverride *ProviderOverride `json:"providerOverride,omitempty"`
}

// TopologyConstraint packs a graph into a domain of a cluster topology.
type TopologyConstraint struct {
	// clusterTopologyName is the topology.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	ClusterTopologyName string `json:"clusterTopologyName"`

	// packDomain is a level of the topology.
	//
	// +optional
	// +kubebuilder:validation:Pattern=`^[a-z0-9]+(-+[a-z0-9]+)*$`
	PackDomain string `json:"packDomain,omitempty"`
}

// GraphExperimental holds settings that may change between releases.
type GraphExperimental struct {
	// kvTransferPolicy keeps transfers of KV caches within a domain. It cannot
	// change later.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="the KV transfer policy of a graph cannot be changed"
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

// Restart asks for one controlled restart of the graph.
type Restart struct {
	// id is opaque; each new value triggers one restart.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	ID string `json:"id"`

	// strategy says in which order components restart.
	//
	// +optional
	Strategy *RestartStrategy `json:"strategy,omitempty"`
}

// RestartStrategy orders a restart.
//
// +kubebuilder:validation:XValidation:rule="!has(self.type) || self.type != 'Parallel' || !has(self.order) || size(self.order) == 0",message="a parallel restart has no order",reason="FieldValueForbidden",fieldPath=".order"
type RestartStrategy struct {
	// type is Sequential (one component at a time) or Parallel (all at once).
	//
	// +optional
	// +kubebuilder:default=Sequential
	// +kubebuilder:validation:Enum=Sequential;Parallel
	Type string `json:"type,omitempty"`

	// order names every component once, in the order to restart them. If empty,
	// components restart in ascending order of their names.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	Order []string `json:"order,omitempty"`
}

// DynamoGraphDeploymentStatus is what was last seen of the graph.
type DynamoGraphDeploymentStatus struct {
	// observedGeneration is the generation of the spec this status describes.
	//
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// state sums the graph up: initializing, pending, successful or failed.
	//
	// +optional
	State string `json:"state,omitempty"`

	// conditions of the graph.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// components is the progress of each component by name.
	//
	// +optional
	Components map[string]ComponentReplicaStatus `json:"components,omitempty"`

	// restart is the progress of the last requested restart.
	//
	// +optional
	Restart *RestartStatus `json:"restart,omitempty"`

	// checkpoints of components by name.
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

// ComponentReplicaStatus is the progress of one component's workload.
type ComponentReplicaStatus struct {
	// componentKind is the kind of the object that runs the pods.
	//
	// +required
	// +kubebuilder:validation:Enum=PodClique;PodCliqueScalingGroup;Deployment;LeaderWorkerSet
	ComponentKind string `json:"componentKind"`

	// componentNames are the names of the objects of that kind.
	//
	// +optional
	// +listType=atomic
	ComponentNames []string `json:"componentNames,omitempty"`

	// runtimeNamespace is the Dynamo namespace that the pods register in.
	//
	// +optional
	RuntimeNamespace string `json:"runtimeNamespace,omitempty"`

	// replicas that exist.
	//
	// +required
	// +kubebuilder:validation:Minimum=0
	Replicas int32 `json:"replicas"`

	// updatedReplicas are those made from the current spec.
	//
	// +required
	// +kubebuilder:validation:Minimum=0
	UpdatedReplicas int32 `json:"updatedReplicas"`

	// readyReplicas are those whose pods are ready.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	ReadyReplicas *int32 `json:"readyReplicas,omitempty"`

	// availableReplicas are those ready for long enough.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	AvailableReplicas *int32 `json:"availableReplicas,omitempty"`

	// scheduledReplicas are those whose pods have a node. Only Grove reports them,
	// and not while generations run side by side.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	ScheduledReplicas *int32 `json:"scheduledReplicas,omitempty"`

	// grantedReplicas are those that budgets of GPUs leave of what was asked for.
	// Of a component that counts against none it is not told.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	GrantedReplicas *int32 `json:"grantedReplicas,omitempty"`

	// limitedBy is whose budget leaves less than was asked for: "graph" or
	// "namespace" with its name, or "cluster"; "draining" while what is granted
	// waits for GPUs that others still hold. Otherwise it is not told.
	//
	// +optional
	LimitedBy string `json:"limitedBy,omitempty"`

	// message is the first cause a person can act on while the component is not
	// ready.
	//
	// +optional
	Message string `json:"message,omitempty"`

	// startup is how long pods took to be ready, as far as it was seen.
	//
	// +optional
	Startup *StartupTimes `json:"startup,omitempty"`
}

// StartupTimes is how long pods of one component took from having a node until they
// were ready, over the newest of those that run, or the last that did.
type StartupTimes struct {
	// p50Seconds is the median.
	//
	// +required
	// +kubebuilder:validation:Minimum=0
	P50Seconds int32 `json:"p50Seconds"`

	// p95Seconds is what 19 of 20 pods took at most.
	//
	// +required
	// +kubebuilder:validation:Minimum=0
	P95Seconds int32 `json:"p95Seconds"`

	// samples is how many pods told.
	//
	// +required
	// +kubebuilder:validation:Minimum=0
	Samples int32 `json:"samples"`
}

// RestartStatus is the progress of a restart.
type RestartStatus struct {
	// observedID is the id of the restart this status describes.
	//
	// +optional
	ObservedID string `json:"observedID,omitempty"`

	// phase is Pending, Restarting, Completed, Failed or Superseded.
	//
	// +optional
	Phase string `json:"phase,omitempty"`

	// inProgress names the components still to finish if the restart is parallel,
	// or the component restarting now if it is sequential.
	//
	// +optional
	// +listType=atomic
	InProgress []string `json:"inProgress,omitempty"`

	// message says what the restart waits for or why it failed.
	//
	// +optional
	Message string `json:"message,omitempty"`
}

// CheckpointStatus is the checkpoint of a component.
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

	// updatedComponents are those that are done.
	//
	// +optional
	// +listType=atomic
	UpdatedComponents []string `json:"updatedComponents,omitempty"`
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

// DynamoGraphDeploymentList is a list of graphs.
//
// +kubebuilder:object:root=true
type DynamoGraphDeploymentList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`

	Items []DynamoGraphDeployment `json:"items"`
}
