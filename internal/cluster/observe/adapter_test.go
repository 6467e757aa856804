package observe

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/cluster/scheme"
)

// indexes hands an index to a fake client.
type indexes struct{ *fake.ClientBuilder }

func (i indexes) IndexField(_ context.Context, object client.Object, field string, of client.IndexerFunc) error {
	i.WithIndex(object, field, of)
	return nil
}

func TestAGraphConcernsItsOwnAdapters(t *testing.T) {
	adapter := func(namespace, name, graph string) *v1alpha1.DynamoGraphDeploymentScalingAdapter {
		a := &v1alpha1.DynamoGraphDeploymentScalingAdapter{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
		a.Spec.DGDRef.Name = graph
		return a
	}
	builder := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(
		adapter("n", "a", "g"), adapter("n", "made-by-hand", "g"), adapter("n", "b", "other"), adapter("elsewhere", "a", "g"))
	if err := IndexAdapters(t.Context(), indexes{builder}); err != nil {
		t.Fatal(err)
	}
	graph := &v1alpha1.DynamoGraphDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "g"}}
	var woken []string
	for _, r := range AdaptersOf(builder.Build())(t.Context(), graph) {
		woken = append(woken, r.String())
	}
	if diff := cmp.Diff([]string{"n/a", "n/made-by-hand"}, woken); diff != "" {
		t.Error("-want +got", diff)
	}
}
