package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupName is the API group of every kind in this package.
const GroupName = "nvidia.com"

// Kind names as they appear in manifests and owner references.
const (
	KindDynamoGraphDeployment               = "DynamoGraphDeployment"
	KindDynamoComponentDeployment           = "DynamoComponentDeployment"
	KindDynamoModel                         = "DynamoModel"
	KindDynamoGraphDeploymentRequest        = "DynamoGraphDeploymentRequest"
	KindDynamoGraphDeploymentScalingAdapter = "DynamoGraphDeploymentScalingAdapter"
	KindDynamoWorkerMetadata                = "DynamoWorkerMetadata"
	KindDynamoCheckpoint                    = "DynamoCheckpoint"
)

var (
	// SchemeGroupVersion is the group and version of every kind in this package.
	SchemeGroupVersion = schema.GroupVersion{Group: GroupName, Version: "v1alpha1"}

	// SchemeBuilder collects the functions that add this group to a scheme.
	SchemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)

	// AddToScheme adds every kind of this package to a scheme.
	AddToScheme = SchemeBuilder.AddToScheme
)

// Kind qualifies a kind of this package with its group.
func Kind(kind string) schema.GroupKind {
	return SchemeGroupVersion.WithKind(kind).GroupKind()
}

// Resource qualifies a resource of this package with its group.
func Resource(resource string) schema.GroupResource {
	return SchemeGroupVersion.WithResource(resource).GroupResource()
}

func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(SchemeGroupVersion,
		&DynamoGraphDeployment{}, &DynamoGraphDeploymentList{},
		&DynamoComponentDeployment{}, &DynamoComponentDeploymentList{},
		&DynamoModel{}, &DynamoModelList{},
		&DynamoGraphDeploymentRequest{}, &DynamoGraphDeploymentRequestList{},
		&DynamoGraphDeploymentScalingAdapter{}, &DynamoGraphDeploymentScalingAdapterList{},
		&DynamoWorkerMetadata{}, &DynamoWorkerMetadataList{},
		&DynamoCheckpoint{}, &DynamoCheckpointList{},
	)
	metav1.AddToGroupVersion(scheme, SchemeGroupVersion)
	return nil
}
