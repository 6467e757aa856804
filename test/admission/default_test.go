package admission

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/crdschema"
	"github.com/dynamo-operator/dynamo-operator/test/corpus"
)

// TestDefaultsWithoutAServerAreTheServers compares what is filled in for the
// command line, which has no server, with what a server stores.
func TestDefaultsWithoutAServerAreTheServers(t *testing.T) {
	documents := corpus.OfGroup(t, v1alpha1.GroupName)
	server := needServer(t)
	namespace := server.namespace(t)
	for _, d := range documents {
		t.Run(d.Name(), func(t *testing.T) {
			stored := d.Object.DeepCopy()
			stored.SetNamespace(namespace)
			if err := server.Create(t.Context(), stored, client.DryRunAll); err != nil {
				t.Fatal(err)
			}
			schema, known, err := crdschema.Of(d.Object.GetKind())
			if err != nil || !known {
				t.Fatalf("known %v: %v", known, err)
			}
			var filled map[string]any
			if err := json.Unmarshal(d.JSON, &filled); err != nil {
				t.Fatal(err)
			}
			if errs := schema.Check(filled); len(errs) > 0 {
				t.Error(errs.ToAggregate())
			}
			schema.Default(filled)
			if diff := cmp.Diff(stored.Object["spec"], filled["spec"]); diff != "" {
				t.Errorf("spec (-server +ours):\n%s", diff)
			}
		})
	}
}
