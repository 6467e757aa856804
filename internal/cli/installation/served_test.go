package installation

import (
	"context"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/dynamo-operator/dynamo-operator/internal/cluster/scheme"
)

// TestADefinitionIsServedOnceItIsDiscovered: it is established a moment earlier, and an
// object that is sent in between has no kind.
func TestADefinitionIsServedOnceItIsDiscovered(t *testing.T) {
	t.Parallel()
	version := schema.GroupVersion{Group: "example.com", Version: "v1"}
	crd := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "things.example.com"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: version.Group,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: "Thing", Plural: "things"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{
				{Name: version.Version, Served: true}, {Name: "v0", Served: false},
			},
		},
		Status: apiextensionsv1.CustomResourceDefinitionStatus{Conditions: []apiextensionsv1.CustomResourceDefinitionCondition{
			{Type: apiextensionsv1.Established, Status: apiextensionsv1.ConditionTrue},
		}},
	}
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"), meta.RESTScopeRoot)
	installer := Installer{Client: fake.NewClientBuilder().WithScheme(scheme.New()).WithRESTMapper(mapper).WithObjects(crd).Build()}
	if err := installer.established(t.Context(), crd.Name); err == nil || !strings.Contains(err.Error(), "not discovered") {
		t.Errorf("before it is discovered: %v", err)
	}
	mapper.Add(version.WithKind("Thing"), meta.RESTScopeNamespace)
	if err := installer.established(t.Context(), crd.Name); err != nil {
		t.Error(err)
	}
}

// TestAVersionIsAskedUntilItAnswers: an API server lists a version, and has it in the
// definition, a moment before it serves it.
func TestAVersionIsAskedUntilItAnswers(t *testing.T) {
	t.Parallel()
	const name = "things.example.com"
	notYet := apierrors.NewNotFound(schema.GroupResource{Group: "example.com", Resource: "things"}, "")
	for rule, c := range map[string]struct {
		beta, frozen, all bool
		answer            error
		want              string
	}{
		"all versions that are served answer":        {beta: true, all: true},
		"one that is served and not yet there":       {beta: true, answer: notYet, want: "v2 of things.example.com"},
		"one that may not be read by whoever asks":   {beta: true, answer: apierrors.NewForbidden(schema.GroupResource{}, "", nil)},
		"one that is not served is not waited for":   {answer: notYet},
		"one that is not served and is to be served": {all: true, want: "v2 of things.example.com is not served"},
		"one that is frozen and is to be served":     {beta: true, frozen: true, all: true, want: "v2 of things.example.com is not served"},
	} {
		t.Run(rule, func(t *testing.T) {
			t.Parallel()
			crd := &apiextensionsv1.CustomResourceDefinition{
				ObjectMeta: metav1.ObjectMeta{Name: name},
				Spec: apiextensionsv1.CustomResourceDefinitionSpec{
					Group:    "example.com",
					Names:    apiextensionsv1.CustomResourceDefinitionNames{Kind: "Thing", ListKind: "ThingList", Plural: "things"},
					Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1", Served: true}, {Name: "v2", Served: c.beta, Deprecated: c.frozen}},
				},
			}
			list := func(_ context.Context, _ client.WithWatch, list client.ObjectList, _ ...client.ListOption) error {
				if list.GetObjectKind().GroupVersionKind().Version == "v2" {
					return c.answer
				}
				return nil
			}
			installer := Installer{Client: fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(crd).
				WithInterceptorFuncs(interceptor.Funcs{List: list}).Build()}
			err := installer.answers(t.Context(), name, c.all)
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}
