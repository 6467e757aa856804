package render

import (
	"testing"

	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
)

// TestTheAccountOfPodsThatAskKubernetesIsMade: pods of a service that asks for it run
// under that account, whatever the rest of the graph does.
func TestTheAccountOfPodsThatAskKubernetesIsMade(t *testing.T) {
	for rule, c := range map[string]struct {
		graph, service graph.Discovery
		want           bool
	}{
		"the graph asks":   {graph.DiscoveryKubernetes, graph.DiscoveryKubernetes, true},
		"one service asks": {graph.DiscoveryEtcd, graph.DiscoveryKubernetes, true},
		"nobody asks":      {graph.DiscoveryEtcd, graph.DiscoveryEtcd, false},
	} {
		t.Run(rule, func(t *testing.T) {
			g := &graph.Graph{Name: "g", Discovery: c.graph, Components: []graph.Component{{Discovery: graph.DiscoveryEtcd}, {Discovery: c.service}}}
			if got := len(Discovery(g)) > 0; got != c.want {
				t.Errorf("an account is made: %v", got)
			}
		})
	}
}
