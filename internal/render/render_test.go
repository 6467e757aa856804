package render_test

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/render"
	"github.com/dynamo-operator/dynamo-operator/internal/render/pod"
	"github.com/dynamo-operator/dynamo-operator/internal/snapshot"
	"github.com/dynamo-operator/dynamo-operator/internal/testkit/golden"
	"github.com/dynamo-operator/dynamo-operator/internal/validation"
	"github.com/dynamo-operator/dynamo-operator/internal/workload"
)

var platform = render.Platform{
	Defaults: graph.Defaults{Discovery: graph.DiscoveryKubernetes},
	Pod:      pod.Platform{NATS: "nats://nats:4222", SSHSecret: "mpi-run-ssh-secret"},
	Capabilities: snapshot.Capabilities{
		snapshot.APILeaderWorkerSet: true, snapshot.APIVolcano: true, snapshot.APIIstio: true, snapshot.APIInference: true,
	},
}

func readGraph(t *testing.T, path string) *v1alpha1.DynamoGraphDeployment {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	dgd := &v1alpha1.DynamoGraphDeployment{}
	if err := yaml.UnmarshalStrict(text, dgd); err != nil {
		t.Fatal(err)
	}
	return dgd
}

// everything renders both levels: the graph's children, then each component's.
func everything(t *testing.T, dgd *v1alpha1.DynamoGraphDeployment) (graphLevel, componentLevel []graph.Object) {
	t.Helper()
	if errs := validation.GraphDeployment(dgd); len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	g, err := graph.FromGraphDeployment(dgd, platform.Defaults)
	if err != nil {
		t.Fatal(err)
	}
	wanted, err := render.Graph(dgd, g, workload.ProviderComponent, platform)
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range wanted {
		graphLevel = append(graphLevel, w.Object)
		dcd, ok := w.Object.(*v1alpha1.DynamoComponentDeployment)
		if !ok {
			continue
		}
		stored := dcd.DeepCopy()
		stored.OwnerReferences = append(stored.OwnerReferences, ownerOf(dgd))
		one, err := graph.FromComponentDeployment(stored, platform.Defaults)
		if err != nil {
			t.Fatal(err)
		}
		objects, err := render.Component(one, platform)
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range objects {
			componentLevel = append(componentLevel, w.Object)
		}
	}
	return graphLevel, componentLevel
}

func TestGolden(t *testing.T) {
	cases, err := filepath.Glob("testdata/*/graph.yaml")
	if err != nil || len(cases) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, path := range cases {
		dir := filepath.Dir(path)
		t.Run(filepath.Base(dir), func(t *testing.T) {
			graphLevel, componentLevel := everything(t, readGraph(t, path))
			golden.Objects(t, filepath.Join(dir, "components.yaml"), graphLevel)
			golden.Objects(t, filepath.Join(dir, "workloads.yaml"), componentLevel)
		})
	}
}

func TestRenderingDoesNotDependOnMapOrder(t *testing.T) {
	dgd := readGraph(t, "testdata/overrides/graph.yaml")
	_, want := everything(t, dgd)
	for range 50 {
		shuffled := dgd.DeepCopy()
		shuffled.Spec.Services = map[string]*v1alpha1.SharedSpec{}
		names := []string{"Decode", "planner", "other"}
		rand.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
		for _, name := range names {
			shuffled.Spec.Services[name] = dgd.Spec.Services[name]
		}
		_, got := everything(t, shuffled)
		if diff := cmp.Diff(marshal(t, want), marshal(t, got)); diff != "" {
			t.Fatalf("another order of services gave other objects (-want +got):\n%s", diff)
		}
	}
}

func TestRenderingLeavesTheInputAlone(t *testing.T) {
	dgd := readGraph(t, "testdata/overrides/graph.yaml")
	before := dgd.DeepCopy()
	everything(t, dgd)
	if diff := cmp.Diff(before, dgd); diff != "" {
		t.Errorf("the user's object changed (-before +after):\n%s", diff)
	}
}
