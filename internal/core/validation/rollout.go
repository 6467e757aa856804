package validation

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/pairing"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/policy"
	"github.com/dynamo-operator/dynamo-operator/internal/core/workload"
	"github.com/dynamo-operator/dynamo-operator/internal/core/workload/orchestrator"
)

// rollouts checks the annotations that say how workers are rolled out: one that cannot
// be read must not be taken for none, which would be straight through.
func rollouts(annotations map[string]string, at *field.Path) field.ErrorList {
	_, problems := policy.Parse(annotations)
	var errs field.ErrorList
	for _, p := range problems {
		errs = append(errs, field.Invalid(at.Key(p.Annotation), p.Value, p.Message))
	}
	return errs
}

// rolloutAnnotations are those of a graph that say how its workers are rolled out.
var rolloutAnnotations = []string{
	v1alpha1.AnnotationRolloutAbort, v1alpha1.AnnotationRolloutAnalysis, v1alpha1.AnnotationRolloutIsolation, v1alpha1.AnnotationRolloutOnFailure,
	v1alpha1.AnnotationRolloutPaused, v1alpha1.AnnotationRolloutPromote, v1alpha1.AnnotationRolloutRetry, v1alpha1.AnnotationRolloutSLO, v1alpha1.AnnotationRolloutSteps,
}

// unfit is why the workers of a graph cannot come in generations, as far as the graph
// tells; empty if they can.
func unfit(dgd *v1alpha1.DynamoGraphDeployment, by Orchestration) string {
	g, err := graph.FromGraphDeployment(dgd, graph.Defaults{Contract: by.Contract})
	if err != nil {
		return "" // other rules say why
	}
	if g.Contract != graph.ContractV1 && !pairing.Of(dgd, g, by.Provider, graph.Running{}, !by.InPlace).Paired {
		return "generations need the 1.x contract"
	}
	builder, able := orchestrator.ForGraph(by.Provider, orchestrator.Settings{}).(workload.Generational)
	if !able {
		return fmt.Sprintf("provider %s has no generations", by.Provider)
	}
	return builder.Unfit(g)
}

// apart reports whether a change of workers starts a generation of them.
func (by Orchestration) apart(annotations map[string]string) bool {
	said, _ := policy.Parse(annotations)
	return !by.InPlace && by.Unfit == "" && said.Isolation != policy.IsolationNone
}

// rollouts warns of what is said about rollouts and not done.
func (w *warnings) rollouts(dgd *v1alpha1.DynamoGraphDeployment, by Orchestration) {
	for _, key := range rolloutAnnotations {
		value, set := dgd.Annotations[key]
		at := field.NewPath("metadata", "annotations").Key(key)
		switch {
		case !set:
		case by.InPlace:
			w.add(at, "has no effect; pods are replaced in place (rollout.generations is off)")
		case by.Unfit != "":
			w.add(at, "has no effect; pods are replaced in place: "+by.Unfit)
		case policy.Isolation(value) == policy.IsolationPaired && key == v1alpha1.AnnotationRolloutIsolation:
			w.unpaired(dgd, by.Provider, at)
		}
	}
}

// unpaired warns of a graph whose frontends cannot come in generations.
func (w *warnings) unpaired(dgd *v1alpha1.DynamoGraphDeployment, by workload.Provider, at *field.Path) {
	g, err := graph.FromGraphDeployment(dgd, graph.Defaults{})
	if err != nil {
		return // other rules say why
	}
	if why := pairing.Unsupported(dgd, g, by); why != "" {
		w.add(at, "is carried out as "+string(policy.IsolationAuto)+": "+why)
	}
}
