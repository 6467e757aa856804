package render_test

import (
	"path/filepath"
	"testing"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/conversion"
	"github.com/dynamo-operator/dynamo-operator/internal/core/workload"
	"github.com/dynamo-operator/dynamo-operator/internal/testkit/golden"
)

// TestGoldenOf1x renders graphs that are written as v1beta1, and so for runtimes of
// 1.x, as TestGolden does those of v1alpha1.
func TestGoldenOf1x(t *testing.T) {
	cases, err := filepath.Glob("testdata/1.x/*/graph.yaml")
	if err != nil || len(cases) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, path := range cases {
		dir := filepath.Dir(path)
		t.Run(filepath.Base(dir), func(t *testing.T) {
			dgd := storedBeta(t, path)
			top, below, err := renderBoth(dgd)
			if err != nil {
				t.Fatal(err)
			}
			cliques, err := renderGraph(dgd, workload.ProviderGrove)
			if err != nil {
				t.Fatal(err)
			}
			golden.Manifests(t, filepath.Join(dir, "components.yaml"), manifests(t, top))
			golden.Manifests(t, filepath.Join(dir, "workloads.yaml"), manifests(t, below...))
			golden.Manifests(t, filepath.Join(dir, "grove.yaml"), manifests(t, cliques))
		})
	}
}

// storedBeta reads a graph of v1beta1 as it is stored.
func storedBeta(t *testing.T, path string) *v1alpha1.DynamoGraphDeployment {
	t.Helper()
	stored, _ := conversion.GraphToAlpha(readBeta(t, path))
	return stored
}
