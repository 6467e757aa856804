package grove

import (
	"slices"

	"github.com/ai-dynamo/grove/operator/api/common/constants"
	grovev1alpha1 "github.com/ai-dynamo/grove/operator/api/core/v1alpha1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/snapshot"
)

// Levels implements workload.Packer. Grove says whether a set lacks levels, and the graph
// whether it has them. A graph with a topology has one set.
func (Builder) Levels(g *graph.Graph, s snapshot.Snapshot) *metav1.Condition {
	set, made := snapshot.Find[*grovev1alpha1.PodCliqueSet](s, g.CliqueSet)
	if !made || !packs(g) {
		return nil
	}
	levels := &metav1.Condition{
		Type: v1alpha1.ConditionTopologyLevelsAvailable, Status: metav1.ConditionUnknown,
		Reason: v1alpha1.ReasonTopologyConditionPending, Message: "waiting for Grove to look for the topology's levels",
	}
	told := meta.FindStatusCondition(set.Status.Conditions, constants.ConditionTopologyLevelsUnavailable)
	if told == nil {
		return levels
	}
	levels.Message = told.Message
	switch told.Status {
	case metav1.ConditionFalse:
		levels.Status, levels.Reason = metav1.ConditionTrue, v1alpha1.ReasonAllTopologyLevelsAvailable
	case metav1.ConditionTrue:
		levels.Status, levels.Reason = metav1.ConditionFalse, v1alpha1.ReasonTopologyLevelsUnavailable
	}
	if told.Reason == constants.ConditionReasonClusterTopologyNotFound {
		levels.Reason = v1alpha1.ReasonTopologyDefinitionNotFound
	}
	return levels
}

// packs reports whether anything of a graph is packed.
func packs(g *graph.Graph) bool {
	return g.Topology != nil && g.Contract == graph.ContractV1 &&
		(g.Topology.Domain != "" || slices.ContainsFunc(g.Components, func(c graph.Component) bool { return c.PackDomain != "" }))
}
