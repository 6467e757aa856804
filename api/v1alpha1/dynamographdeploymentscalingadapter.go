package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// DynamoGraphDeploymentScalingAdapter is the scale of one service of a graph.
// It gives autoscalers a scale subresource to write; while it exists and the
// service enables it, its replicas are the ones in force.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:resource:shortName=dgdsa
// +kubebuilder:printcolumn:name="DGD",type="string",JSONPath=".spec.dgdRef.name"
// +kubebuilder:printcolumn:name="SERVICE",type="string",JSONPath=".spec.dgdRef.serviceName"
// +kubebuilder:printcolumn:name="REPLICAS",type="integer",JSONPath=".status.replicas"
// +kubebuilder:printcolumn:name="WANTED",type="integer",JSONPath=".status.wantedReplicas",priority=1
// +kubebuilder:printcolumn:name="GRANTED",type="integer",JSONPath=".status.grantedReplicas",priority=1
// +kubebuilder:printcolumn:name="DRAINING",type="integer",JSONPath=".status.drainingReplicas",priority=1
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp"
// +kubebuilder:metadata:annotations="helm.sh/resource-policy=keep"
type DynamoGraphDeploymentScalingAdapter struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// +required
	Spec DynamoGraphDeploymentScalingAdapterSpec `json:"spec,omitzero"`
	// +optional
	Status DynamoGraphDeploymentScalingAdapterStatus `json:"status,omitzero"`
}

// DynamoGraphDeploymentScalingAdapterSpec is the wanted scale of a service.
type DynamoGraphDeploymentScalingAdapterSpec struct {
	// replicas wanted of the service.
	//
	// +required
	// +kubebuilder:validation:Minimum=0
	Replicas int32 `json:"replicas"`

	// dgdRef is the service that is scaled. It cannot change later.
	//
	// +required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="an adapter cannot be moved to another service: create a new one"
	DGDRef GraphServiceRef `json:"dgdRef"`
}

// GraphServiceRef names a service of a graph in the same namespace.
type GraphServiceRef struct {
	// name of the DynamoGraphDeployment.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	Name string `json:"name"`

	// serviceName is the service's key in the graph, in its exact spelling.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	ServiceName string `json:"serviceName"`
}

// DynamoGraphDeploymentScalingAdapterStatus is the scale last seen.
type DynamoGraphDeploymentScalingAdapterStatus struct {
	// observedGeneration is the generation of the spec this status describes.
	//
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// replicas of the service.
	//
	// +optional
	Replicas int32 `json:"replicas,omitempty"`

	// wantedReplicas are those that were asked for. Of an adapter that decides nothing
	// neither they nor granted, draining, ready and startingReplicas, startup and
	// limitedBy are told.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	WantedReplicas *int32 `json:"wantedReplicas,omitempty"`

	// grantedReplicas are those that budgets of GPUs leave of them; 0 while the
	// graph sleeps.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	GrantedReplicas *int32 `json:"grantedReplicas,omitempty"`

	// drainingReplicas are those that end, and hold their GPUs until they are gone.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	DrainingReplicas *int32 `json:"drainingReplicas,omitempty"`

	// readyReplicas are those that are ready.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	ReadyReplicas *int32 `json:"readyReplicas,omitempty"`

	// startingReplicas are those that exist and are not ready.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	StartingReplicas *int32 `json:"startingReplicas,omitempty"`

	// startup is how long pods took to be ready, as the graph tells of the service.
	//
	// +optional
	Startup *StartupTimes `json:"startup,omitempty"`

	// limitedBy is whose budget of GPUs leaves less than was asked for, as the graph
	// tells of the service: "graph" or "namespace" with its name, "cluster" or
	// "draining".
	//
	// +optional
	LimitedBy string `json:"limitedBy,omitempty"`

	// selector of the service's pods in string form, for autoscalers.
	//
	// +optional
	Selector string `json:"selector,omitempty"`

	// lastScaleTime is when the replicas last changed.
	//
	// +optional
	LastScaleTime *metav1.Time `json:"lastScaleTime,omitempty"`

	// conditions of the adapter; Active is true while it decides the scale,
	// ScalingLimited while a budget leaves less than was asked for, and Dormant
	// while the service sleeps with its graph.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// DynamoGraphDeploymentScalingAdapterList is a list of scaling adapters.
//
// +kubebuilder:object:root=true
type DynamoGraphDeploymentScalingAdapterList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`

	Items []DynamoGraphDeploymentScalingAdapter `json:"items"`
}
