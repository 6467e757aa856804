package crdschema

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/testkit/validationcases"
)

// FuzzDefault fills in and checks whatever is offered as an object of ours:
// there is an answer, and what was filled in once is not filled in again.
func FuzzDefault(f *testing.F) {
	kinds := []string{
		v1alpha1.KindDynamoGraphDeployment, v1alpha1.KindDynamoComponentDeployment, v1alpha1.KindDynamoModel,
		v1alpha1.KindDynamoGraphDeploymentRequest, v1alpha1.KindDynamoGraphDeploymentScalingAdapter,
	}
	valid, err := validationcases.Valid()
	if err != nil {
		f.Fatal(err)
	}
	for _, c := range valid {
		object, err := c.Object("lab", "seed")
		if err != nil {
			f.Fatal(err)
		}
		raw, err := object.MarshalJSON()
		if err != nil {
			f.Fatal(err)
		}
		for i, kind := range kinds {
			if kind == object.GetKind() && len(raw) < 4096 {
				f.Add(uint8(i), raw)
			}
		}
	}
	f.Fuzz(func(t *testing.T, kind uint8, raw []byte) {
		var object map[string]any
		if json.Unmarshal(raw, &object) != nil || object == nil {
			return
		}
		schema, known, err := Of(kinds[int(kind)%len(kinds)])
		if err != nil || !known {
			t.Fatalf("known %v: %v", known, err)
		}
		schema.Check(object)
		schema.Default(object)
		once, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		schema.Default(object)
		twice, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(once), string(twice)); diff != "" {
			t.Errorf("filled in again (-once +twice):\n%s", diff)
		}
	})
}
