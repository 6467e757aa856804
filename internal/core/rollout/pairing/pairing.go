// Package pairing tells which graphs have frontends in generations, each with those of
// its workers.
package pairing

import (
	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/dormancy"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/policy"
	"github.com/dynamo-operator/dynamo-operator/internal/core/workload"
	"github.com/dynamo-operator/dynamo-operator/internal/core/workload/orchestrator"
)

// Of is the graph with its frontends in generations, if that is asked for and possible;
// generations is whether the operator makes any. A graph whose frontends are in
// generations stays so, whatever is asked for later: their components would be pruned
// before others serve.
func Of(dgd *v1alpha1.DynamoGraphDeployment, g *graph.Graph, provider workload.Provider, running graph.Running, generations bool) *graph.Graph {
	said, _ := policy.Parse(dgd.Annotations) // validation tells of what cannot be read
	if g == nil || !running.Paired && (!generations || said.Isolation != policy.IsolationPaired || Unsupported(dgd, g, provider) != "") {
		return g
	}
	return g.Pair(dgd.Annotations, running)
}

// Unsupported is why frontends of a graph cannot come in generations; empty if they can,
// or if that is not known.
func Unsupported(dgd *v1alpha1.DynamoGraphDeployment, g *graph.Graph, provider workload.Provider) string {
	if provider != "" {
		if _, gang := orchestrator.ForGraph(provider, orchestrator.Settings{}).(workload.PodOwner); gang {
			return "frontends of a graph that Grove runs are in a set with its first workers"
		}
	}
	if _, sleeps := dormancy.Read(dgd.Annotations); sleeps {
		return "the graph scales to zero"
	}
	return g.Unpairable()
}
