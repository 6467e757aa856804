package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// DynamoWorkerMetadata is what a running worker tells other workers about
// itself. Workers write it, under the name of their pod and owned by it; the
// operator only grants the right to.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=dynamoworkermetadatas,shortName=dwm
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp"
// +kubebuilder:metadata:annotations="helm.sh/resource-policy=keep"
type DynamoWorkerMetadata struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// +optional
	Spec *DynamoWorkerMetadataSpec `json:"spec,omitempty"`
}

// DynamoWorkerMetadataSpec holds the worker's own document.
type DynamoWorkerMetadataSpec struct {
	// data is the worker's document. Write integers above 2^53 as strings: JSON
	// numbers lose their last digits on the way through the API server.
	//
	// +required
	// +kubebuilder:pruning:PreserveUnknownFields
	Data runtime.RawExtension `json:"data"`
}

// DynamoWorkerMetadataList is a list of worker metadata.
//
// +kubebuilder:object:root=true
type DynamoWorkerMetadataList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`

	Items []DynamoWorkerMetadata `json:"items"`
}
