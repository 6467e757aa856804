package grove

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/dynamo-operator/dynamo-operator/internal/core/commandline"
	"github.com/dynamo-operator/dynamo-operator/internal/core/engine"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/render/pod"
)

// TestEveryRankOfASharingGroupStartsItsOwnReplicas: the pods of a clique are the shadows
// of one rank, so their index does not tell it.
func TestEveryRankOfASharingGroupStartsItsOwnReplicas(t *testing.T) {
	c := graph.Component{
		Name: "w", Graph: "g", Clique: "w", Role: graph.RoleWorker, Engine: graph.EngineVLLM, Nodes: 3, Resources: graph.Resources{GPUs: 2},
		Main: &corev1.Container{Command: []string{"python3", "-m", "dynamo.vllm"}, Args: []string{"--data-parallel-size", "6"}},
	}
	c.Contract, c.GPUMemory = graph.ContractV1, &graph.GPUMemory{Mode: graph.SharingInterPod}
	cliques, err := Builder{}.sharing(c, func(c graph.Component, at engine.Group) (corev1.PodTemplateSpec, error) {
		return pod.Template(c, at, pod.Platform{})
	})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, clique := range cliques {
		words := strings.Fields(strings.Join(clique.Spec.PodSpec.Containers[0].Args, " "))
		if start, told := commandline.NewLooseArgs(words).Value("--data-parallel-start-rank"); told {
			got[clique.Name] = start
		}
	}
	if diff := cmp.Diff(map[string]string{"w-ldr": "0", "w-wkr-1": "2", "w-wkr-2": "4"}, got); diff != "" {
		t.Errorf("first replicas (-want +got):\n%s", diff)
	}
}
