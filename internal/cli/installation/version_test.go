package installation

import (
	"context"
	"io"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

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

// TestDefinitionsAreAppliedOverWhatWasRead because who withdraws v1beta1 between the
// two would see it served again, with nobody to convert it.
func TestDefinitionsAreAppliedOverWhatWasRead(t *testing.T) {
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
		d.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.WebhookConverter, Webhook: &apiextensionsv1.WebhookConversion{
			ConversionReviewVersions: []string{"v1"},
			ClientConfig:             &apiextensionsv1.WebhookClientConfig{CABundle: []byte("CA"), URL: new("https://converter/convert")},
		}}
		b = b.WithObjects(d)
	}
	server := b.Build()
	shipped, err := Definitions()
	if err != nil {
		t.Fatal(err)
	}
	var meanwhile sync.Once
	i := Installer{Owner: "test", Client: interceptor.NewClient(server, interceptor.Funcs{
		Apply: func(ctx context.Context, c client.WithWatch, object runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			meanwhile.Do(func() {
				if err := (Installer{Client: server, Owner: "other"}).WithdrawBeta(ctx, io.Discard); err != nil {
					t.Error(err)
				}
			})
			return c.Apply(ctx, object, opts...)
		},
	})}
	for _, object := range shipped {
		if object.GetName() != definition.Adapters {
			continue
		}
		if err := i.define(t.Context(), object); err != nil {
			t.Fatal(err)
		}
		d := &apiextensionsv1.CustomResourceDefinition{}
		if err := server.Get(t.Context(), client.ObjectKeyFromObject(object), d); err != nil {
			t.Fatal(err)
		}
		if !definition.Frozen(d) {
			t.Errorf("%s is served again", d.Name)
		}
		return
	}
	t.Errorf("%s is not shipped", definition.Adapters)
}
