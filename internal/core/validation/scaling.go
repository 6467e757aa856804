package validation

import (
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/dormancy"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/workload"
	"github.com/dynamo-operator/dynamo-operator/internal/core/workload/orchestrator"
)

// scaling warns of what a graph says about being scaled and does not get.
func (w *warnings) scaling(dgd *v1alpha1.DynamoGraphDeployment, by Orchestration) {
	for _, key := range []string{v1alpha1.AnnotationGPUBudget, v1alpha1.AnnotationScalingPriority} {
		value, set := dgd.Annotations[key]
		if n, err := strconv.Atoi(value); set && (err != nil || key == v1alpha1.AnnotationGPUBudget && n < 1) {
			w.add(field.NewPath("metadata", "annotations").Key(key), fmt.Sprintf("has no effect; %q is no such number", value))
		}
	}
	w.dormancy(dgd, by)
	value, set := dgd.Annotations[v1alpha1.AnnotationPlanner]
	at := field.NewPath("metadata", "annotations").Key(v1alpha1.AnnotationPlanner)
	switch {
	case !set:
	case value != v1alpha1.PlannerNative:
		w.add(at, fmt.Sprintf("has no effect; %s is the only value", v1alpha1.PlannerNative))
	case !has(dgd, graph.RolePlanner):
		w.add(at, "has no effect; no service is a planner")
	}
}

// dormancy warns of a graph that does not scale to zero as it says.
func (w *warnings) dormancy(dgd *v1alpha1.DynamoGraphDeployment, by Orchestration) {
	annotated := field.NewPath("metadata", "annotations")
	after, set := dgd.Annotations[v1alpha1.AnnotationScaleToZeroAfter]
	if at := annotated.Key(v1alpha1.AnnotationScaleToZeroAfter); set {
		_, err := dormancy.ParseAfter(after)
		_, gang := orchestrator.ForGraph(by.Provider, orchestrator.Settings{}).(workload.PodOwner)
		switch why := dormancy.Unsupported(gang, frontends(dgd)); {
		case err != nil:
			w.add(at, fmt.Sprintf("has no effect; %v", err))
		case why != "":
			w.add(at, "has no effect; "+why)
		}
	}
	timeout, given := dgd.Annotations[v1alpha1.AnnotationActivationTimeout]
	switch _, err := dormancy.ParseTimeout(timeout); {
	case !given:
	case err != nil:
		w.add(annotated.Key(v1alpha1.AnnotationActivationTimeout), fmt.Sprintf("has no effect; %v", err))
	case !set:
		w.add(annotated.Key(v1alpha1.AnnotationActivationTimeout), fmt.Sprintf("has no effect without %s", v1alpha1.AnnotationScaleToZeroAfter))
	}
}

// frontends are what the user says of the pods of frontends, by service.
func frontends(dgd *v1alpha1.DynamoGraphDeployment) map[string]*corev1.PodSpec {
	all := map[string]*corev1.PodSpec{}
	for name, s := range dgd.Spec.SortedServices() {
		if graph.RoleOf(string(s.ComponentType)) != graph.RoleFrontend {
			continue
		}
		if all[name] = nil; s.ExtraPodSpec != nil {
			all[name] = s.ExtraPodSpec.PodSpec
		}
	}
	return all
}

func has(dgd *v1alpha1.DynamoGraphDeployment, role graph.Role) bool {
	for _, s := range dgd.Spec.SortedServices() {
		if graph.RoleOf(string(s.ComponentType)) == role {
			return true
		}
	}
	return false
}
