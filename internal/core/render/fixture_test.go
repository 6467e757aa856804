package render_test

import (
	"os"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/cluster/scheme"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/manifest"
	"github.com/dynamo-operator/dynamo-operator/internal/core/render"
	"github.com/dynamo-operator/dynamo-operator/internal/core/render/pod"
	"github.com/dynamo-operator/dynamo-operator/internal/core/snapshot"
	"github.com/dynamo-operator/dynamo-operator/internal/core/workload"
)

var platform = render.Platform{
	Defaults:  graph.Defaults{Discovery: graph.DiscoveryKubernetes},
	Activator: "registry.example/dynamo-activator:v1",
	Pod: pod.Platform{
		NATS: "nats://nats:4222", SSHSecret: "mpi-run-ssh-secret",
		PullSecrets: snapshot.PullSecrets{"registry.example": {"pull-a", "pull-b"}},
	},
	Capabilities: snapshot.Capabilities{
		snapshot.APILeaderWorkerSet: true, snapshot.APIVolcano: true, snapshot.APIIstio: true, snapshot.APIInference: true, snapshot.APIDevices: true,
	},
}

var kinds = scheme.New()

func readGraph(t testing.TB, path string) *v1alpha1.DynamoGraphDeployment {
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

// level is what one owner wants.
type level struct {
	owner  graph.Object
	wanted []graph.Desired
}

// renderBoth renders a graph's children, then each component's, as the
// reconcilers do one after the other.
func renderBoth(dgd *v1alpha1.DynamoGraphDeployment) (top level, below []level, err error) {
	top, err = renderGraph(dgd, workload.ProviderComponent)
	if err != nil {
		return top, nil, err
	}
	for _, w := range top.wanted {
		dcd, ok := w.Object.(*v1alpha1.DynamoComponentDeployment)
		if !ok {
			continue
		}
		stored := *dcd
		stored.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(dgd, v1alpha1.SchemeGroupVersion.WithKind(v1alpha1.KindDynamoGraphDeployment))}
		one, err := graph.FromComponentDeployment(&stored, platform.Defaults)
		if err != nil {
			return top, below, err
		}
		wanted, err := render.Component(one, platform)
		if err != nil {
			return top, below, err
		}
		below = append(below, level{&stored, wanted})
	}
	return top, below, nil
}

func renderGraph(dgd *v1alpha1.DynamoGraphDeployment, provider workload.Provider) (level, error) {
	g, err := graph.FromGraphDeployment(dgd, platform.Defaults)
	if err != nil {
		return level{}, err
	}
	wanted, err := render.Graph(dgd, g, provider, platform)
	return level{dgd, wanted}, err
}

// manifests are the fields that would be sent.
func manifests(t testing.TB, levels ...level) []map[string]any {
	t.Helper()
	var all []map[string]any
	for _, l := range levels {
		for _, w := range l.wanted {
			fields, err := manifest.Of(w, l.owner, kinds)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, fields)
		}
	}
	return all
}

// everything renders a graph in every way and returns all that would be sent.
func everything(t testing.TB, dgd *v1alpha1.DynamoGraphDeployment) []map[string]any {
	t.Helper()
	top, below, err := renderBoth(dgd)
	if err != nil {
		t.Fatal(err)
	}
	cliques, err := renderGraph(dgd, workload.ProviderGrove)
	if err != nil {
		t.Fatal(err)
	}
	return manifests(t, append(append([]level{top}, below...), cliques)...)
}
