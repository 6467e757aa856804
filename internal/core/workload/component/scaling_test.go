package component

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
)

// TestWhatIsDecidedReachesComponents: a component carries the words of its service, but
// not where a budget or our planner takes their place. Both contracts do.
func TestWhatIsDecidedReachesComponents(t *testing.T) {
	for _, tag := range []string{"0.8.0", "1.4.0"} {
		container := func() *v1alpha1.ExtraPodSpec {
			return &v1alpha1.ExtraPodSpec{MainContainer: &corev1.Container{Image: "vllm-runtime:" + tag, Command: []string{"python3", "-m", "planner_sla"}, Args: []string{"--ttft=9"}}}
		}
		dgd := &v1alpha1.DynamoGraphDeployment{}
		dgd.Namespace, dgd.Name, dgd.Annotations = "lab", "chat", map[string]string{v1alpha1.AnnotationPlanner: v1alpha1.PlannerNative}
		dgd.Spec.Services = map[string]*v1alpha1.SharedSpec{
			"Planner": {ComponentType: v1alpha1.ComponentTypePlanner, ExtraPodSpec: container()},
			"Worker":  {ComponentType: v1alpha1.ComponentTypeWorker, Replicas: new(int32(5)), ExtraPodSpec: container()},
		}
		defaults := graph.Defaults{Planner: graph.PlannerRules{Image: "dynamo-planner:v1"}}
		g, err := graph.FromGraphDeployment(dgd, defaults)
		if err != nil {
			t.Fatal(err)
		}
		for granted, want := range map[int]int32{2: 2, 0: 0, 7: 5} {
			objects, err := Builder{Graph: dgd, Defaults: defaults}.Build(g.Limited(map[string]int{"Worker": granted}), nil)
			if err != nil {
				t.Fatal(err)
			}
			planner, worker := objects[0].(*v1alpha1.DynamoComponentDeployment), objects[1].(*v1alpha1.DynamoComponentDeployment)
			if n := worker.Spec.Replicas; n == nil || *n != want {
				t.Errorf("%s: of 5 replicas %d are granted, and the component has %v", tag, granted, n)
			}
			main := planner.Spec.ExtraPodSpec.MainContainer
			if main.Image != "dynamo-planner:v1" || len(main.Command) != 1 || main.Command[0] != "/dynamo-planner" || len(main.Args) != 1 {
				t.Errorf("%s: the planner's component runs %+v", tag, main)
			}
			if *dgd.Spec.Services["Worker"].Replicas != 5 || dgd.Spec.Services["Planner"].ExtraPodSpec.MainContainer.Image == main.Image {
				t.Errorf("%s: the user's object was changed", tag)
			}
		}
	}
}
