package installation

import (
	"io"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/dynamo-operator/dynamo-operator/config/crd"
	"github.com/dynamo-operator/dynamo-operator/internal/cluster/scheme"
	"github.com/dynamo-operator/dynamo-operator/internal/core/definition"
)

// TestWhatWasWithdrawnStaysFrozen when the definitions are applied again, as each
// replica of the operator does when it starts.
func TestWhatWasWithdrawnStaysFrozen(t *testing.T) {
	t.Parallel()
	live, err := crd.Objects()
	if err != nil {
		t.Fatal(err)
	}
	b := fake.NewClientBuilder().WithScheme(scheme.New())
	for _, d := range live {
		for n := range d.Spec.Versions {
			d.Spec.Versions[n].Served = true
		}
		b = b.WithObjects(d)
	}
	i := Installer{Client: b.Build(), Owner: "test"}
	if err := i.WithdrawBeta(t.Context(), io.Discard); err != nil {
		t.Fatal(err)
	}
	applied, err := i.DefinitionsHere(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	frozen := 0
	for _, object := range applied {
		got, want := &apiextensionsv1.CustomResourceDefinition{}, &apiextensionsv1.CustomResourceDefinition{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, got); err != nil {
			t.Fatal(err)
		}
		if err := i.Client.Get(t.Context(), client.ObjectKeyFromObject(object), want); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want.Spec.Versions, got.Spec.Versions); diff != "" {
			t.Errorf("%s: %s", object.GetName(), diff)
		}
		if definition.Frozen(got) {
			frozen++
		}
	}
	if frozen != len(definition.Converted) {
		t.Errorf("%d are frozen", frozen)
	}
}
