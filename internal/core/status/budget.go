package status

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
)

// scalingLimited is there while a budget keeps services from having what was asked for.
func scalingLimited(conditions *[]metav1.Condition, limited string, generation int64, now metav1.Time) {
	if limited == "" {
		meta.RemoveStatusCondition(conditions, v1alpha1.ConditionScalingLimited)
		return
	}
	setCondition(conditions, v1alpha1.ConditionScalingLimited, condition{true, v1alpha1.ReasonBudgetExhausted, limited}, generation, now)
}
