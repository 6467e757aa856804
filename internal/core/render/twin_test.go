package render_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"sigs.k8s.io/yaml"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/api/v1beta1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/conversion"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/validation"
)

const betaExamples = "../../../examples/v1beta1"

// Each example of v1beta1 has a twin in v1alpha1, of which the same is made under
// the same contract. Under the seed's, their components differ, each being in the
// words of its version, and so do labels of objects that are made from those; pods
// and selectors do not.
func TestExamplesOfBothVersionsMakeTheSame(t *testing.T) {
	files, err := filepath.Glob(betaExamples + "/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	defer func(before graph.ContractRules) { platform.Defaults.Contract = before }(platform.Defaults.Contract)
	for _, file := range files {
		beta := readBeta(t, file)
		twin := readGraph(t, filepath.Join(betaExamples, "as-v1alpha1", filepath.Base(file)))
		for _, contract := range []graph.Contract{"", graph.ContractSeed, graph.ContractV1} {
			t.Run(filepath.Base(file)+"/"+string(contract), func(t *testing.T) {
				platform.Defaults.Contract.Forced = contract
				stored, ignored := conversion.GraphToAlpha(beta)
				if len(ignored) > 0 {
					t.Fatal(ignored)
				}
				for _, dgd := range []*v1alpha1.DynamoGraphDeployment{stored, twin} {
					if errs := validation.GraphDeployment(dgd); len(errs) > 0 {
						t.Fatal(errs)
					}
				}
				left, right := everything(t, twin), everything(t, stored)
				if contract == graph.ContractSeed {
					left, right = withoutWords(left), withoutWords(right)
				}
				if diff := cmp.Diff(left, right, cmpopts.EquateEmpty()); diff != "" {
					t.Errorf("what is made differs (-v1alpha1 +v1beta1):\n%s", diff)
				}
			})
		}
	}
}

func readBeta(t *testing.T, path string) *v1beta1.DynamoGraphDeployment {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	dgd := &v1beta1.DynamoGraphDeployment{}
	if err := yaml.UnmarshalStrict(text, dgd); err != nil {
		t.Fatal(err)
	}
	return dgd
}

func withoutWords(objects []map[string]any) []map[string]any {
	var rest []map[string]any
	for _, o := range objects {
		if o["kind"] == v1alpha1.KindDynamoComponentDeployment {
			continue
		}
		delete(o["metadata"].(map[string]any), "labels")
		rest = append(rest, o)
	}
	return rest
}
