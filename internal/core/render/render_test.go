package render_test

import (
	"encoding/json"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/validation"
	"github.com/dynamo-operator/dynamo-operator/internal/core/workload"
	"github.com/dynamo-operator/dynamo-operator/internal/testkit/golden"
)

// TestGolden renders each graph for both pathways: its children and those of
// its components, and its children where Grove runs them.
func TestGolden(t *testing.T) {
	cases, err := filepath.Glob("testdata/*/graph.yaml")
	if err != nil || len(cases) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, path := range cases {
		dir := filepath.Dir(path)
		t.Run(filepath.Base(dir), func(t *testing.T) {
			dgd := readGraph(t, path)
			if errs := validation.GraphDeployment(dgd); len(errs) > 0 {
				t.Fatal(errs.ToAggregate())
			}
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

// shuffled makes every map of a graph anew, in another order of insertion.
func shuffled(dgd *v1alpha1.DynamoGraphDeployment) *v1alpha1.DynamoGraphDeployment {
	other := dgd.DeepCopy()
	other.Spec.Services = shuffledMap(other.Spec.Services)
	for _, s := range other.Spec.Services {
		if s == nil {
			continue
		}
		s.Labels, s.Annotations = shuffledMap(s.Labels), shuffledMap(s.Annotations)
		if m := s.ExtraPodMetadata; m != nil {
			m.Labels, m.Annotations = shuffledMap(m.Labels), shuffledMap(m.Annotations)
		}
	}
	return other
}

func shuffledMap[V any](m map[string]V) map[string]V {
	if m == nil {
		return nil
	}
	keys := slices.Sorted(maps.Keys(m))
	rand.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	other := map[string]V{}
	for _, key := range keys {
		other[key] = m[key]
	}
	return other
}

func TestRenderingDoesNotDependOnMapOrder(t *testing.T) {
	dgd := readGraph(t, "testdata/overrides/graph.yaml")
	text := func(dgd *v1alpha1.DynamoGraphDeployment) string {
		raw, err := json.Marshal(everything(t, dgd))
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	want := text(dgd)
	for range 1000 {
		if got := text(shuffled(dgd)); got != want {
			t.Fatalf("another order of maps gave other objects (-want +got):\n%s", cmp.Diff(want, got))
		}
	}
}

// Rendered objects share memory with the graph, which is an informer's.
func TestRenderingLeavesTheInputAlone(t *testing.T) {
	paths, err := filepath.Glob("testdata/*/graph.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		t.Run(filepath.Base(filepath.Dir(path)), func(t *testing.T) {
			dgd := readGraph(t, path)
			before := dgd.DeepCopy()
			everything(t, dgd)
			if diff := cmp.Diff(before, dgd); diff != "" {
				t.Errorf("the user's object changed (-before +after):\n%s", diff)
			}
		})
	}
}
