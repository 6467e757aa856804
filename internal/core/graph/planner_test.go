package graph

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
)

func TestANativePlannerTakesTheArgumentsOfTheOther(t *testing.T) {
	const ours, theirs = "dynamo-planner:v1", "vllm-runtime:1"
	args := []string{"--backend=vllm"}
	for _, x := range []struct {
		rule       string
		annotation string
		rules      PlannerRules
		image      string
		command    []string
	}{
		{"the user's own runs", "", PlannerRules{Image: ours}, theirs, []string{"python3", "-m", "planner_sla"}},
		{"a graph asks for ours", v1alpha1.PlannerNative, PlannerRules{Image: ours}, ours, []string{"/dynamo-planner"}},
		{"another word asks for nothing", "other", PlannerRules{Image: ours}, theirs, []string{"python3", "-m", "planner_sla"}},
		{"the configuration asks for all", "", PlannerRules{Image: ours, Always: true}, ours, []string{"/dynamo-planner"}},
		{"without an image nothing is replaced", v1alpha1.PlannerNative, PlannerRules{}, theirs, []string{"python3", "-m", "planner_sla"}},
	} {
		t.Run(x.rule, func(t *testing.T) {
			dgd := &v1alpha1.DynamoGraphDeployment{}
			dgd.Name, dgd.Annotations = "chat", map[string]string{v1alpha1.AnnotationPlanner: x.annotation}
			container := func() *corev1.Container {
				return &corev1.Container{Image: theirs, Command: []string{"python3", "-m", "planner_sla"}, Args: args}
			}
			dgd.Spec.Services = map[string]*v1alpha1.SharedSpec{
				"Planner": {ComponentType: v1alpha1.ComponentTypePlanner, ExtraPodSpec: &v1alpha1.ExtraPodSpec{MainContainer: container()}},
				"Worker":  {ComponentType: v1alpha1.ComponentTypeWorker, ExtraPodSpec: &v1alpha1.ExtraPodSpec{MainContainer: container()}},
			}
			g, err := FromGraphDeployment(dgd, Defaults{Planner: x.rules})
			if err != nil {
				t.Fatal(err)
			}
			planner, worker := g.Components[0].Main, g.Components[1].Main
			if diff := cmp.Diff(&corev1.Container{Image: x.image, Command: x.command, Args: args}, planner); diff != "" {
				t.Error(diff)
			}
			if worker.Image != theirs || dgd.Spec.Services["Planner"].ExtraPodSpec.MainContainer.Image != theirs {
				t.Error("something else was replaced as well")
			}
		})
	}
}
