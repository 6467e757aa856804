package apply

import (
	"context"
	"testing"

	grovev1alpha1 "github.com/ai-dynamo/grove/operator/api/core/v1alpha1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/cluster/scheme"
)

// typedCache is a client whose reads are as informers have them: of the fields that a
// server keeps, those that our Go types know.
type typedCache struct{ client.Client }

func (c typedCache) Scheme() *runtime.Scheme { return scheme.New() }

func (c typedCache) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	if _, ok := object.(*grovev1alpha1.PodCliqueSet); !ok {
		return c.Client.Get(ctx, key, object, options...)
	}
	whole := podCliqueSet("")
	if err := c.Client.Get(ctx, key, whole, options...); err != nil {
		return err
	}
	return runtime.DefaultUnstructuredConverter.FromUnstructured(whole.Object, object)
}

// podCliqueSet has a field that our module for Grove's API does not know.
func podCliqueSet(strategy string) *unstructured.Unstructured {
	set := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"replicas": int64(1), "updateStrategy": map[string]any{"type": strategy}, "template": map[string]any{"cliques": []any{}},
	}}}
	set.SetGroupVersionKind(grovev1alpha1.SchemeGroupVersion.WithKind("PodCliqueSet"))
	set.SetNamespace(namespace)
	set.SetName("g")
	return set
}

// TestFieldsThatOurTypesDoNotKnowAreComparedAsTheServerHasThem: nothing is sent when
// nothing would change, and the server is asked only when the object changed.
func TestFieldsThatOurTypesDoNotKnowAreComparedAsTheServerHasThem(t *testing.T) {
	s := newStage(t, interceptor.Funcs{})
	foreign := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(foreign); err != nil {
			t.Fatal(err)
		}
	}
	sent := 0
	s.client = fake.NewClientBuilder().WithScheme(foreign).WithReturnManagedFields().WithObjects(s.owner.DeepCopy()).
		WithInterceptorFuncs(interceptor.Funcs{
			Apply: func(ctx context.Context, c client.WithWatch, object runtime.ApplyConfiguration, options ...client.ApplyOption) error {
				sent++
				return c.Apply(ctx, object, options...)
			},
		}).Build()
	server := &reads{Reader: s.client}
	begin := func() {
		var err error
		if s.applier, err = New(typedCache{s.client}, server); err != nil {
			t.Fatal(err)
		}
		s.applier.OnWrite = func(c Change) { s.writes = append(s.writes, c.String()) }
	}
	// expect that a set is wanted, with so many writes and questions of what it is.
	expect := func(writes string, set *unstructured.Unstructured, wantSent, wantAsked int) {
		t.Helper()
		sent, server.n = 0, 0
		s.must(writes, set)
		if sent != wantSent || server.n != wantAsked {
			t.Errorf("sent %d times and asked %d, want %d and %d", sent, server.n, wantSent, wantAsked)
		}
	}
	change := func(patch string) {
		t.Helper()
		if err := s.client.Patch(t.Context(), podCliqueSet(""), client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
			t.Fatal(err)
		}
	}
	begin()
	expect("Created PodCliqueSet g", podCliqueSet("OnDelete"), 1, 0)
	expect("", podCliqueSet("OnDelete"), 0, 0)
	change(`{"status":{"replicas":1}}`)
	expect("", podCliqueSet("OnDelete"), 0, 1)
	expect("", podCliqueSet("OnDelete"), 0, 0)
	begin() // an operator that knows nothing of its writes
	expect("", podCliqueSet("OnDelete"), 0, 1)
	change(`{"spec":{"updateStrategy":{"type":"by hand"}}}`)
	expect("Updated PodCliqueSet g", podCliqueSet("OnDelete"), 1, 1)
	expect("Updated PodCliqueSet g", podCliqueSet("RollingRecreate"), 1, 1)
}
