package grove

import (
	grovev1alpha1 "github.com/ai-dynamo/grove/operator/api/core/v1alpha1"

	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/snapshot"
)

// Rescaling is a live clique or scaling group and the replicas it is to have.
type Rescaling struct {
	Object   graph.Object
	Replicas int32
}

// Rescale lists what runs with another number of replicas than a component asks
// for. Grove reads the number in a PodCliqueSet once, when it makes a clique or
// a group; from then on it is set there, as an autoscaler does.
func Rescale(components []graph.Component, s snapshot.Snapshot) []Rescaling {
	var all []Rescaling
	for _, c := range components {
		if grouped(c) {
			group, found := snapshot.Find[*grovev1alpha1.PodCliqueScalingGroup](s, LiveName(c))
			if found && group.DeletionTimestamp == nil && group.Spec.Replicas != c.Replicas {
				all = append(all, Rescaling{group, c.Replicas})
			}
			continue
		}
		clique, found := snapshot.Find[*grovev1alpha1.PodClique](s, LiveName(c))
		if found && clique.DeletionTimestamp == nil && clique.Spec.Replicas != c.Replicas {
			all = append(all, Rescaling{clique, c.Replicas})
		}
	}
	return all
}
