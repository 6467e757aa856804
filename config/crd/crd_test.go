package crd_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"

	"github.com/dynamo-operator/dynamo-operator/config/crd"
)

// The surface that scripts and autoscalers rely on.
type surface struct {
	Plural, Singular, List string
	Short, Columns         []string
	Status, Scale, Kept    bool
}

func TestDefinitionsHaveThePublishedSurface(t *testing.T) {
	want := map[string]surface{
		"DynamoGraphDeployment": {
			Plural: "dynamographdeployments", Singular: "dynamographdeployment", List: "DynamoGraphDeploymentList",
			Short: []string{"dgd"}, Columns: []string{"Ready", "Backend", "Age"}, Status: true, Kept: true,
		},
		"DynamoComponentDeployment": {
			Plural: "dynamocomponentdeployments", Singular: "dynamocomponentdeployment", List: "DynamoComponentDeploymentList",
			Short: []string{"dcd"}, Columns: []string{"DynamoComponent", "Available", "Backend", "Age"}, Status: true, Kept: true,
		},
		"DynamoModel": {
			Plural: "dynamomodels", Singular: "dynamomodel", List: "DynamoModelList",
			Short: []string{"dm"}, Columns: []string{"BaseModel", "Type", "Ready", "Total", "Age"}, Status: true, Kept: true,
		},
		"DynamoGraphDeploymentRequest": {
			Plural: "dynamographdeploymentrequests", Singular: "dynamographdeploymentrequest", List: "DynamoGraphDeploymentRequestList",
			Short: []string{"dgdr"}, Columns: []string{"Model", "Backend", "State", "DGD-State", "Age"}, Status: true, Kept: true,
		},
		"DynamoGraphDeploymentScalingAdapter": {
			Plural: "dynamographdeploymentscalingadapters", Singular: "dynamographdeploymentscalingadapter", List: "DynamoGraphDeploymentScalingAdapterList",
			Short: []string{"dgdsa"}, Columns: []string{"DGD", "SERVICE", "REPLICAS", "AGE"}, Status: true, Scale: true, Kept: true,
		},
		"DynamoCheckpoint": {
			Plural: "dynamocheckpoints", Singular: "dynamocheckpoint", List: "DynamoCheckpointList",
			Short: []string{"dckpt"}, Columns: []string{"Model", "Backend", "Phase", "CheckpointID", "Age"}, Status: true, Kept: true,
		},
		"DynamoWorkerMetadata": {
			Plural: "dynamoworkermetadatas", Singular: "dynamoworkermetadata", List: "DynamoWorkerMetadataList",
			Short: []string{"dwm"}, Columns: []string{"Age"}, Kept: true,
		},
		"DynamoGraphDeployment v1beta1": {
			Plural: "dynamographdeployments", Singular: "dynamographdeployment", List: "DynamoGraphDeploymentList",
			Short: []string{"dgd"}, Columns: []string{"Ready", "Backend", "Age"}, Status: true, Kept: true,
		},
		"DynamoComponentDeployment v1beta1": {
			Plural: "dynamocomponentdeployments", Singular: "dynamocomponentdeployment", List: "DynamoComponentDeploymentList",
			Short: []string{"dcd"}, Columns: []string{"Available", "Backend", "Age"}, Status: true, Kept: true,
		},
		"DynamoGraphDeploymentRequest v1beta1": {
			Plural: "dynamographdeploymentrequests", Singular: "dynamographdeploymentrequest", List: "DynamoGraphDeploymentRequestList",
			Short: []string{"dgdr"}, Columns: []string{"Model", "Backend", "Phase", "Profiling", "Reason", "Message", "DGD", "Age"}, Status: true, Kept: true,
		},
		"DynamoGraphDeploymentScalingAdapter v1beta1": {
			Plural: "dynamographdeploymentscalingadapters", Singular: "dynamographdeploymentscalingadapter", List: "DynamoGraphDeploymentScalingAdapterList",
			Short: []string{"dgdsa"}, Columns: []string{"DGD", "COMPONENT", "REPLICAS", "AGE"}, Status: true, Scale: true, Kept: true,
		},
	}
	objects, err := crd.Objects()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]surface{}
	for _, object := range objects {
		for _, version := range object.Spec.Versions {
			name := object.Spec.Names.Kind
			if version.Name != "v1alpha1" {
				name += " " + version.Name
			}
			got[name] = surfaceOf(object, version)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("surface (-want +got):\n%s", diff)
	}
}

func surfaceOf(object *apiextensionsv1.CustomResourceDefinition, version apiextensionsv1.CustomResourceDefinitionVersion) surface {
	names := object.Spec.Names
	s := surface{
		Plural: names.Plural, Singular: names.Singular, List: names.ListKind, Short: names.ShortNames,
		Kept: object.Annotations["helm.sh/resource-policy"] == "keep",
	}
	// Columns of a higher priority are for -o wide, where we may add.
	for _, column := range version.AdditionalPrinterColumns {
		if column.Priority == 0 {
			s.Columns = append(s.Columns, column.Name)
		}
	}
	if sub := version.Subresources; sub != nil {
		s.Status, s.Scale = sub.Status != nil, sub.Scale != nil
	}
	return s
}

// Every object is stored as v1alpha1, and v1beta1 is not served before something
// converts: without a converter a server would only relabel objects and drop
// what their new version does not know.
func TestOnlyV1alpha1IsServedAndStored(t *testing.T) {
	objects, err := crd.Objects()
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range objects {
		for _, version := range object.Spec.Versions {
			if want := version.Name == "v1alpha1"; version.Served != want || version.Storage != want {
				t.Errorf("%s %s: served %t, stored %t, want %t", object.Spec.Names.Kind, version.Name, version.Served, version.Storage, want)
			}
		}
	}
}

// A server refuses a definition whose rules do not compile or could cost too
// much, in versions that are not served, too.
func TestAServerAcceptsTheDefinitions(t *testing.T) {
	objects, err := crd.Objects()
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range objects {
		t.Run(object.Spec.Names.Kind, func(t *testing.T) {
			apiextensionsv1.SetDefaults_CustomResourceDefinition(object)
			apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(&object.Spec)
			object.Status.StoredVersions = []string{"v1alpha1"}
			var internal apiextensions.CustomResourceDefinition
			if err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(object, &internal, nil); err != nil {
				t.Fatal(err)
			}
			if errs := validation.ValidateCustomResourceDefinition(t.Context(), &internal); len(errs) > 0 {
				t.Error(errs.ToAggregate())
			}
		})
	}
}
