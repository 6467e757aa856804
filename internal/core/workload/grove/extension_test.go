package grove

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/dynamo-operator/dynamo-operator/internal/core/engine"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
)

// TestOnlyWhatHasADomainIsPacked: Grove refuses a constraint that packs nothing, and with
// it the set.
func TestOnlyWhatHasADomainIsPacked(t *testing.T) {
	const one, group = 1, 2
	pack := func(domain string) map[string]any {
		return map[string]any{"topologyName": "racks", "pack": map[string]any{"required": domain}}
	}
	for rule, c := range map[string]struct {
		graph    string
		services map[int32]string // by their number of nodes
		want     map[string]any
	}{
		"the set is": {"zone", nil, map[string]any{"set": pack("zone")}},
		"a group is, without the set": {
			"", map[int32]string{group: "rack"}, map[string]any{"group": pack("rack")},
		},
		"a clique is, without the set": {
			"", map[int32]string{one: "host"}, map[string]any{"clique": pack("host")},
		},
		"each is into its own": {
			"zone", map[int32]string{one: "host", group: "rack"},
			map[string]any{"set": pack("zone"), "clique": pack("host"), "group": pack("rack")},
		},
		"nothing is": {"", nil, map[string]any{}},
	} {
		t.Run(rule, func(t *testing.T) {
			g := &graph.Graph{Name: "g", CliqueSet: "g", Contract: graph.ContractV1, UpdateStrategy: "OnDelete", Topology: &graph.Topology{Name: "racks", Domain: c.graph}}
			for nodes, name := range map[int32]string{one: "a", group: "w"} {
				service := graph.Component{CliqueSet: "g", Clique: name, Name: name, Nodes: nodes, Replicas: 1}
				service.Contract, service.PackDomain = graph.ContractV1, c.services[nodes]
				g.Components = append(g.Components, service)
			}
			objects, err := Builder{}.Build(g, func(graph.Component, engine.Group) (corev1.PodTemplateSpec, error) {
				return corev1.PodTemplateSpec{}, nil
			})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, constraints(objects[0].(*unstructured.Unstructured))); diff != "" {
				t.Errorf("constraints (-want +got):\n%s", diff)
			}
		})
	}
}

// constraints are those of a set, its cliques and its groups.
func constraints(set *unstructured.Unstructured) map[string]any {
	template := set.Object["spec"].(map[string]any)["template"].(map[string]any)
	all := map[string]any{}
	add := func(what string, at any) {
		if constraint, packed := at.(map[string]any)["topologyConstraint"]; packed {
			all[what] = constraint
		}
	}
	add("set", template)
	for what, list := range map[string]string{"clique": "cliques", "group": "podCliqueScalingGroups"} {
		for _, item := range template[list].([]any) {
			add(what, item)
		}
	}
	return all
}
