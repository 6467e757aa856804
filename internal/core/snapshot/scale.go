package snapshot

import (
	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
)

// Scale reads the replicas that a graph's own scaling adapters ask for. While an
// adapter is enabled it decides: autoscalers write to it, not to the graph.
func (s Snapshot) Scale(g *graph.Graph) map[string]int32 {
	scale := map[string]int32{}
	for _, a := range g.Adapters {
		if adapter, found := Find[*v1alpha1.DynamoGraphDeploymentScalingAdapter](s, a.ObjectName); found {
			scale[a.Service] = adapter.Spec.Replicas
		}
	}
	return scale
}
