package crd_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

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
		"DynamoWorkerMetadata": {
			Plural: "dynamoworkermetadatas", Singular: "dynamoworkermetadata", List: "DynamoWorkerMetadataList",
			Short: []string{"dwm"}, Columns: []string{"Age"}, Kept: true,
		},
	}
	objects, err := crd.Objects()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]surface{}
	for _, object := range objects {
		got[object.Spec.Names.Kind] = surfaceOf(object)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("surface (-want +got):\n%s", diff)
	}
}

func surfaceOf(object *apiextensionsv1.CustomResourceDefinition) surface {
	names := object.Spec.Names
	version := object.Spec.Versions[0]
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
