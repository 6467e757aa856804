package status

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/sanitise"
	"github.com/dynamo-operator/dynamo-operator/internal/core/snapshot"
	"github.com/dynamo-operator/dynamo-operator/internal/core/workload"
)

// topologyLevels is there while a graph is packed into a topology.
func topologyLevels(conditions *[]metav1.Condition, g *graph.Graph, by workload.Builder, s snapshot.Snapshot, generation int64, now metav1.Time) {
	var levels *metav1.Condition
	if packer, ok := by.(workload.Packer); ok {
		levels = packer.Levels(g, s)
	}
	if levels == nil {
		meta.RemoveStatusCondition(conditions, v1alpha1.ConditionTopologyLevelsAvailable)
		return
	}
	levels.Message = fitted(sanitise.Text(levels.Message))
	levels.ObservedGeneration, levels.LastTransitionTime = generation, now
	meta.SetStatusCondition(conditions, *levels)
}
