package installation

import (
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

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
