package validation

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
)

// NeighbourWarnings tells of graphs of the same namespace whose workers are found by
// frontends of another than their own. The prefix that those look for cannot be another:
// the runtime knows where generations begin by nothing else.
func NeighbourWarnings(g *graph.Graph, others []*graph.Graph) []string {
	const remedy = "give one of the graphs a name that the other's does not begin with"
	prefix := func(of *graph.Graph) string { return graph.DynamoNamespace(of.Namespace, of.Name, false) }
	var (
		w     warnings
		found []string
		at    = field.NewPath("metadata", "name")
	)
	for _, other := range others {
		if g.FindsWorkersOf(other) {
			found = append(found, other.Name)
		}
		if other.FindsWorkersOf(g) {
			w.add(at, fmt.Sprintf("frontends of graph %s look for workers in Dynamo namespaces that begin with %s, and so find those of this graph too; %s", other.Name, prefix(other), remedy))
		}
	}
	slices.Sort(found)
	if len(found) > 0 {
		w.add(at, fmt.Sprintf("frontends look for workers in Dynamo namespaces that begin with %s, and so find those of graph %s too; %s", prefix(g), strings.Join(found, ", "), remedy))
	}
	return w.sorted()
}
