package grove

import (
	"strings"
	"testing"

	"github.com/ai-dynamo/grove/operator/api/common"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
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

// TestOnlyLeadersOfASharingGroupAnswerForItsModel: servers of weights serve no API, and
// followers lend their node.
func TestOnlyLeadersOfASharingGroupAnswerForItsModel(t *testing.T) {
	for rule, c := range map[string]struct {
		nodes                  int32
		labelled, answer, rest []string
	}{
		"on one node":      {1, []string{"w"}, []string{"w"}, []string{"w-gms-0"}},
		"on several nodes": {3, []string{"w-ldr", "w-wkr-1", "w-wkr-2"}, []string{"w-ldr"}, []string{"w-gms-0", "w-wkr-1", "w-gms-1", "w-wkr-2", "w-gms-2"}},
	} {
		t.Run(rule, func(t *testing.T) {
			service := graph.Component{
				Name: "w", Graph: "g", Clique: "w", Role: graph.RoleWorker, Engine: graph.EngineVLLM, Nodes: c.nodes, Resources: graph.Resources{GPUs: 2},
				Main: &corev1.Container{Command: []string{"python3", "-m", "dynamo.vllm"}}, Model: "m",
			}
			service.Contract, service.GPUMemory = graph.ContractV1, &graph.GPUMemory{Mode: graph.SharingInterPod}
			cliques, err := Builder{}.sharing(service, func(c graph.Component, at engine.Group) (corev1.PodTemplateSpec, error) {
				return pod.Template(c, at, pod.Platform{})
			})
			if err != nil {
				t.Fatal(err)
			}
			var labelled, answer, rest []string
			for _, clique := range cliques {
				made := madeFrom("g", clique.Labels) // as pods are, by Grove
				made[common.LabelPodCliqueScalingGroup], made[common.LabelPodClique] = "g-0-w", "g-0-w-0-"+clique.Name
				if made[v1alpha1.LabelBaseModelHash] != "" {
					labelled = append(labelled, clique.Name)
				}
				if Follower(made) {
					rest = append(rest, clique.Name)
				} else {
					answer = append(answer, clique.Name)
				}
			}
			byName := cmpopts.SortSlices(strings.Compare)
			if diff := cmp.Diff(c.labelled, labelled, byName); diff != "" {
				t.Errorf("labelled with the model (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff([][]string{c.answer, c.rest}, [][]string{answer, rest}, byName); diff != "" {
				t.Errorf("those that answer, and the rest (-want +got):\n%s", diff)
			}
		})
	}
	if Follower(map[string]string{common.LabelPodClique: "g-0-w-wkr-1"}) {
		t.Error("a service of such a name on one node follows nobody")
	}
}
