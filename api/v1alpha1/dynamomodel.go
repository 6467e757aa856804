package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// DynamoModel is a model, or an adapter on top of one, that running graphs
// serve. It finds the pods that serve the base model and, for a LoRA adapter,
// loads it into each of them.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=dm
// +kubebuilder:printcolumn:name="BaseModel",type="string",JSONPath=".spec.baseModelName"
// +kubebuilder:printcolumn:name="Type",type="string",JSONPath=".spec.modelType"
// +kubebuilder:printcolumn:name="Ready",type="integer",JSONPath=".status.readyEndpoints"
// +kubebuilder:printcolumn:name="Total",type="integer",JSONPath=".status.totalEndpoints"
// +kubebuilder:printcolumn:name="Message",type="string",JSONPath=".status.conditions[?(@.type==\"EndpointsReady\")].message",priority=1
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp"
// +kubebuilder:metadata:annotations="helm.sh/resource-policy=keep"
type DynamoModel struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// +required
	Spec DynamoModelSpec `json:"spec,omitzero"`
	// +optional
	Status DynamoModelStatus `json:"status,omitzero"`
}

// DynamoModelSpec names a model and what it is based on.
//
// +kubebuilder:validation:XValidation:rule="!has(self.modelType) || self.modelType != 'lora' || has(self.source)",message="a lora needs a source",reason="FieldValueRequired",fieldPath=".source"
// +kubebuilder:validation:XValidation:rule="!has(self.modelType) || self.modelType != 'lora' || !has(self.source) || self.source.uri.matches('^(s3|hf|file)://[^ ]+$')",message="the source of a lora is a place that starts with s3://, hf:// or file://",fieldPath=".source.uri"
// +kubebuilder:validation:XValidation:rule="!has(self.modelType) || self.modelType != 'lora' || !self.modelName.matches('(^|/)[.]{0,2}(/|$)')",message="the name of a lora has no empty parts, . or .. between slashes: engines take it as part of a path",fieldPath=".modelName"
type DynamoModelSpec struct {
	// modelName is the full name of the model.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	ModelName string `json:"modelName"`

	// baseModelName is the model that the serving pods run; it is compared with
	// the modelRef of services. It cannot change later.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="the base model cannot change after creation: create a new DynamoModel"
	BaseModelName string `json:"baseModelName"`

	// modelType is base, lora or adapter; adapter acts as base. It cannot change
	// later.
	//
	// +optional
	// +kubebuilder:default=base
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="the model type cannot change after creation: create a new DynamoModel"
	ModelType ModelType `json:"modelType,omitempty"`

	// source is where a lora is fetched from.
	//
	// +optional
	Source *ModelSource `json:"source,omitempty"`
}

// ModelType says how a model reaches the engines.
//
// +kubebuilder:validation:Enum=base;lora;adapter
type ModelType string

// The types of models.
const (
	ModelTypeBase    ModelType = "base"
	ModelTypeLoRA    ModelType = "lora"
	ModelTypeAdapter ModelType = "adapter"
)

// ModelSource is where the weights of a model are.
type ModelSource struct {
	// uri of the weights: s3://, hf:// or file://.
	//
	// +required
	URI string `json:"uri"`
}

// DynamoModelStatus is where the model is served.
type DynamoModelStatus struct {
	// observedGeneration is the generation of the spec this status describes.
	//
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// endpoints that serve the base model.
	//
	// +optional
	// +listType=atomic
	Endpoints []ModelEndpoint `json:"endpoints,omitempty"`

	// readyEndpoints is the number of endpoints that serve this model.
	//
	// +required
	ReadyEndpoints int32 `json:"readyEndpoints"`

	// totalEndpoints is the number of endpoints that serve the base model.
	//
	// +required
	TotalEndpoints int32 `json:"totalEndpoints"`

	// loraFallbackCoveredEndpoints is not written: adapters are loaded into every
	// endpoint, and none is covered by another.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	LoRAFallbackCoveredEndpoints int32 `json:"loraFallbackCoveredEndpoints,omitempty"`

	// conditions of the model: EndpointsReady, ServicesFound and Valid.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ModelEndpoint is one pod that serves a model.
type ModelEndpoint struct {
	// address of the pod's system server, as a URL.
	//
	// +required
	Address string `json:"address"`

	// podName is the pod behind the address.
	//
	// +optional
	PodName string `json:"podName,omitempty"`

	// ready is true when the pod serves this model.
	//
	// +required
	Ready bool `json:"ready"`

	// loraFallbackCovered is not written.
	//
	// +optional
	LoRAFallbackCovered bool `json:"loraFallbackCovered,omitempty"`

	// error is why the adapter could not be loaded into, or unloaded from, this
	// pod the last time it was tried.
	//
	// +optional
	Error string `json:"error,omitempty"`
}

// DynamoModelList is a list of models.
//
// +kubebuilder:object:root=true
type DynamoModelList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`

	Items []DynamoModel `json:"items"`
}
