package render_test

import (
	"encoding/json"
	"maps"
	"path/filepath"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/render"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/generation"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/world"
	"github.com/dynamo-operator/dynamo-operator/internal/core/snapshot"
	"github.com/dynamo-operator/dynamo-operator/internal/core/workload"
)

// TestWhatIsRenderedStartsNoGeneration: workers are compared as they were last told to be
// with what their graph means, so whatever rendering adds in between would have them
// replaced for ever.
func TestWhatIsRenderedStartsNoGeneration(t *testing.T) {
	cases, err := filepath.Glob("testdata/1.x/*/graph.yaml")
	if err != nil || len(cases) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, path := range cases {
		for _, provider := range []workload.Provider{workload.ProviderComponent, workload.ProviderGrove} {
			t.Run(filepath.Base(filepath.Dir(path))+" by "+string(provider), func(t *testing.T) {
				dgd := storedBeta(t, path)
				dgd.UID = "u"
				var owned []graph.Object
				for reconcile := range 2 {
					p := platform
					p.Generations, p.Defaults.Running = true, graph.ReadRunning(dgd, owned)
					g, err := graph.FromGraphDeployment(dgd, p.Defaults)
					if err != nil {
						t.Fatal(err)
					}
					b := p.GraphBuilder(dgd, provider).(workload.Generational)
					if unfit := b.Unfit(g); unfit != "" {
						t.Skip(unfit)
					}
					cells := world.Cells(g, b.Members(g, snapshot.Snapshot{Owned: owned}), world.Rules{
						Isolated: true, Recorded: generation.ID(g.Generation),
						Named: func(service, id string, first bool) graph.Membership { return b.Named(g, service, id, first) },
					})
					for _, c := range cells {
						if c.Rolling() || len(c.Live) != reconcile {
							t.Errorf("of %v %v live, and %s is asked for, for %v", c.Services, c.Live, c.Spec, c.Fields)
						}
					}
					if len(cells) == 0 {
						t.Error("it has no workers")
					}
					if dgd.Annotations == nil {
						dgd.Annotations = map[string]string{}
					}
					maps.Copy(dgd.Annotations, graph.RecordGraph(dgd, g, p.Defaults.Running))
					owned = rendersOwned(t, dgd, g, provider, p)
				}
			})
		}
	}
}

// rendersOwned are the children of a graph, as a server gives them back.
func rendersOwned(t *testing.T, dgd *v1alpha1.DynamoGraphDeployment, g *graph.Graph, provider workload.Provider, p render.Platform) []graph.Object {
	t.Helper()
	wanted, err := render.Graph(dgd, g, provider, p)
	if err != nil {
		t.Fatal(err)
	}
	var owned []graph.Object
	for _, w := range wanted {
		stored := w.DeepCopyObject().(graph.Object)
		text, err := json.Marshal(w.Object)
		if err == nil {
			err = json.Unmarshal(text, stored)
		}
		if err != nil {
			t.Fatal(err)
		}
		stored.SetOwnerReferences([]metav1.OwnerReference{{Kind: v1alpha1.KindDynamoGraphDeployment, Name: dgd.Name, Controller: new(true)}})
		owned = append(owned, stored)
	}
	return owned
}
