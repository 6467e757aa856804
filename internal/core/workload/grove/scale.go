package grove

import (
	grovev1alpha1 "github.com/ai-dynamo/grove/operator/api/core/v1alpha1"

	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/snapshot"
	"github.com/dynamo-operator/dynamo-operator/internal/core/workload"
)

// Rescale lists what runs with another number of replicas than a component asks
// for. Grove reads the number in a PodCliqueSet once, when it makes a clique or
// a group; from then on it is set there, as an autoscaler does.
func (Builder) Rescale(components []graph.Component, s snapshot.Snapshot) []workload.Rescaling {
	var all []workload.Rescaling
	for _, c := range components {
		if grouped(c) {
			group, found := snapshot.Find[*grovev1alpha1.PodCliqueScalingGroup](s, LiveName(c))
			if found && group.DeletionTimestamp == nil && group.Spec.Replicas != c.Replicas {
				all = append(all, workload.Rescaling{Object: group, Replicas: c.Replicas})
			}
			continue
		}
		clique, found := snapshot.Find[*grovev1alpha1.PodClique](s, LiveName(c))
		if found && clique.DeletionTimestamp == nil && clique.Spec.Replicas != c.Replicas {
			all = append(all, workload.Rescaling{Object: clique, Replicas: c.Replicas})
		}
	}
	return all
}
