package status

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/planner/journal"
)

// scalingLimited is there while a budget keeps services from having what was asked for, or
// the planner sees nothing. What a budget takes away somebody has asked for, so it goes
// first.
func scalingLimited(conditions *[]metav1.Condition, limited, unseen string, generation int64, now metav1.Time) {
	is := condition{true, v1alpha1.ReasonBudgetExhausted, limited}
	switch {
	case limited == "" && unseen == "":
		meta.RemoveStatusCondition(conditions, v1alpha1.ConditionScalingLimited)
		return
	case limited == "":
		is = condition{true, v1alpha1.ReasonMetricsUnavailable, "the planner changes nothing: " + unseen}
	case unseen != "":
		is.message += "; the planner changes nothing: " + unseen
	}
	setCondition(conditions, v1alpha1.ConditionScalingLimited, is, generation, now)
}

// unseen is why the graph's planner sees nothing, as it has told the graph. One that was
// taken out of the graph has left its last word behind.
func unseen(dgd *v1alpha1.DynamoGraphDeployment, g *graph.Graph) string {
	if !slices.ContainsFunc(g.Components, func(c graph.Component) bool { return c.Role == graph.RolePlanner }) {
		return ""
	}
	return journal.Unseen(dgd.Annotations[v1alpha1.AnnotationScalePlan])
}
