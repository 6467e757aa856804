package apply

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

func TestALeanApplyAsksForMetadataAndKeepsItsOptions(t *testing.T) {
	var sent string
	var how client.PatchOptions
	c := ApplyWithoutResponse(interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
		Patch: func(_ context.Context, _ client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
			if _, ok := object.(*metav1.PartialObjectMetadata); !ok {
				t.Errorf("asks for a whole %T", object)
			}
			data, err := patch.Data(object)
			sent = string(patch.Type()) + " " + string(data)
			how.ApplyOptions(options)
			object.SetResourceVersion("7")
			return err
		},
	}))
	payload := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"namespace": "n", "name": "a"},
	}}
	err := c.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(payload), client.FieldOwner("me"), client.ForceOwnership)
	if err != nil {
		t.Fatal(err)
	}
	const want = `application/apply-patch+yaml {"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"n"}}`
	if diff := cmp.Diff(want, sent); diff != "" {
		t.Error("sent: -want +got", diff)
	}
	wanted := client.PatchOptions{FieldManager: "me", Force: new(true), FieldValidation: metav1.FieldValidationIgnore}
	if diff := cmp.Diff(wanted, how); diff != "" {
		t.Error("options: -want +got", diff)
	}
	if got := payload.GetResourceVersion(); got != "7" {
		t.Errorf("the payload has version %q", got)
	}
}
