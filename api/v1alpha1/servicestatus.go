package v1alpha1

// ServiceReplicaStatus is the progress of one service's workload.
type ServiceReplicaStatus struct {
	// componentKind is the kind of the object that runs the pods.
	//
	// +required
	ComponentKind ComponentKind `json:"componentKind"`

	// componentName is the name of that object, or of the first if there are
	// several.
	//
	// +required
	ComponentName string `json:"componentName"`

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

	// readyReplicas are those whose pods are ready. A PodCliqueScalingGroup does
	// not report them.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	ReadyReplicas *int32 `json:"readyReplicas,omitempty"`

	// availableReplicas are those ready for long enough. Only a Deployment and a
	// PodCliqueScalingGroup report them.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	AvailableReplicas *int32 `json:"availableReplicas,omitempty"`

	// componentNames are the names of all objects of that kind, if there are
	// several.
	//
	// +optional
	// +listType=atomic
	ComponentNames []string `json:"componentNames,omitempty"`

	// runtimeNamespace is the Dynamo namespace that the pods register in.
	//
	// +optional
	RuntimeNamespace string `json:"runtimeNamespace,omitempty"`

	// scheduledReplicas are those whose pods have a node. Only Grove reports them,
	// and not while generations run side by side.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	ScheduledReplicas *int32 `json:"scheduledReplicas,omitempty"`

	// grantedReplicas are those that budgets of GPUs leave of what was asked for.
	// Of a service that counts against none it is not told.
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

	// message is the first cause a person can act on while the service is not
	// ready.
	//
	// +optional
	Message string `json:"message,omitempty"`

	// startup is how long pods took to be ready, as far as it was seen.
	//
	// +optional
	Startup *StartupTimes `json:"startup,omitempty"`
}

// StartupTimes is how long pods of one service took from having a node until they
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

// ComponentKind is the kind of object that runs a service's pods.
//
// +kubebuilder:validation:Enum=PodClique;PodCliqueScalingGroup;Deployment;LeaderWorkerSet
type ComponentKind string

// The kinds that run pods of a service.
const (
	ComponentKindPodClique             ComponentKind = "PodClique"
	ComponentKindPodCliqueScalingGroup ComponentKind = "PodCliqueScalingGroup"
	ComponentKindDeployment            ComponentKind = "Deployment"
	ComponentKindLeaderWorkerSet       ComponentKind = "LeaderWorkerSet"
)
