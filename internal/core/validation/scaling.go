package validation

import (
	"fmt"
	"strconv"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
)

// scaling warns of what a graph says about being scaled and does not get.
func (w *warnings) scaling(dgd *v1alpha1.DynamoGraphDeployment) {
	for _, key := range []string{v1alpha1.AnnotationGPUBudget, v1alpha1.AnnotationScalingPriority} {
		value, set := dgd.Annotations[key]
		if n, err := strconv.Atoi(value); set && (err != nil || key == v1alpha1.AnnotationGPUBudget && n < 1) {
			w.add(field.NewPath("metadata", "annotations").Key(key), fmt.Sprintf("has no effect; %q is no such number", value))
		}
	}
	value, set := dgd.Annotations[v1alpha1.AnnotationPlanner]
	at := field.NewPath("metadata", "annotations").Key(v1alpha1.AnnotationPlanner)
	switch {
	case !set:
	case value != v1alpha1.PlannerNative:
		w.add(at, fmt.Sprintf("has no effect; %s is the only value", v1alpha1.PlannerNative))
	case !hasPlanner(dgd):
		w.add(at, "has no effect; no service is a planner")
	}
}

func hasPlanner(dgd *v1alpha1.DynamoGraphDeployment) bool {
	for _, s := range dgd.Spec.SortedServices() {
		if graph.RoleOf(string(s.ComponentType)) == graph.RolePlanner {
			return true
		}
	}
	return false
}
