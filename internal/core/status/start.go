package status

import (
	"fmt"
	"strings"

	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout"
	"github.com/dynamo-operator/dynamo-operator/internal/core/snapshot"
	"github.com/dynamo-operator/dynamo-operator/internal/core/workload"
)

// Waiting are the services of a graph whose components are not to be made yet, with
// those that each of them waits for. On Grove nobody waits here: a PodCliqueSet
// holds them all, and Grove starts its cliques in order.
func Waiting(g *graph.Graph, by Orchestration, s snapshot.Snapshot) map[string][]string {
	if by.Provider == workload.ProviderGrove {
		return nil
	}
	var services []rollout.Start
	for _, c := range g.Components {
		_, made := mark(g, c, by.Provider, s)
		services = append(services, rollout.Start{
			Name: c.Name, After: c.StartAfter, Made: made, Ready: component(c, s).lack.message == "",
		})
	}
	return rollout.Waiting(services)
}

// held is a service that was not made because others are not ready.
func (seen service) held(by []string) service {
	seen.lack = lack{message: fmt.Sprintf("waiting for %s to be ready", strings.Join(by, ", "))}
	seen.replicas.Message = seen.lack.message
	return seen
}
