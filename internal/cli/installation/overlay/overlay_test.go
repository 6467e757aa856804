package overlay

import (
	"slices"
	"testing"

	"github.com/dynamo-operator/dynamo-operator/internal/cli/installation"
)

// TestAnOperatorForOneNamespaceIsOfNoOther because its rights end there, and nothing of
// it may meet the installation of another.
func TestAnOperatorForOneNamespaceIsOfNoOther(t *testing.T) {
	objects, err := Namespaced("ops", "team-a")
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]int{}
	for _, object := range objects {
		kinds[object.GetKind()]++
		if object.GetKind() == "Namespace" {
			if object.GetName() != "ops" {
				t.Errorf("namespace %s is made", object.GetName())
			}
			continue
		}
		if !slices.Contains([]string{"ops", "team-a"}, object.GetNamespace()) {
			t.Errorf("%s %s is in namespace %q", object.GetKind(), object.GetName(), object.GetNamespace())
		}
	}
	for kind, want := range map[string]int{"Deployment": 1, "PodDisruptionBudget": 1, "NetworkPolicy": 1, "Service": 1, "ServiceAccount": 4, "Role": 7, "RoleBinding": 7} {
		if kinds[kind] != want {
			t.Errorf("%d objects of kind %s, want %d: %v", kinds[kind], kind, want, kinds)
		}
	}
	if first, last := objects[0].GetKind(), objects[len(objects)-1].GetName(); first != "Namespace" || last != installation.Deployment {
		t.Errorf("the first is a %s, the last is %s", first, last)
	}
}
