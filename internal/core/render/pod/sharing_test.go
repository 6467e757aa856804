package pod

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/dynamo-operator/dynamo-operator/internal/core/engine"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
)

// TestPodsAreReplacedWithWhatTheyClaim: the template of a claim cannot change, so it is
// made again; pods that run keep the claims of the one before unless they are replaced.
func TestPodsAreReplacedWithWhatTheyClaim(t *testing.T) {
	for mode, claims := range map[string]struct {
		mode   graph.SharingMode
		across bool
	}{
		"containers of a pod share":  {graph.SharingIntraPod, false},
		"pods share with each other": {graph.SharingInterPod, true},
	} {
		rendered := func(gpus int, class string) corev1.PodTemplateSpec {
			c := graph.Component{Name: "w", Graph: "g", Role: graph.RoleWorker, Engine: graph.EngineVLLM, Resources: graph.Resources{GPUs: gpus}}
			c.Contract, c.GPUMemory = graph.ContractV1, &graph.GPUMemory{Mode: claims.mode, DeviceClass: class}
			template, err := Template(c, engine.Group{Position: engine.Alone, Nodes: 1}, Platform{})
			if err != nil {
				t.Fatal(err)
			}
			if claims.across {
				ShareAcrossPods(&template, c, 0)
			}
			return template
		}
		for what, c := range map[string]struct {
			gpus  int
			class string
			same  bool
		}{
			"the same":       {2, "gpu.nvidia.com", true},
			"more GPUs":      {4, "gpu.nvidia.com", false},
			"another device": {2, "mig.nvidia.com", false},
		} {
			t.Run(mode+", "+what, func(t *testing.T) {
				if same := cmp.Equal(rendered(2, "gpu.nvidia.com"), rendered(c.gpus, c.class)); same != c.same {
					t.Errorf("the template of the pods is the same: %t, want %t", same, c.same)
				}
			})
		}
	}
	c := graph.Component{Name: "w", Graph: "g", Resources: graph.Resources{GPUs: 2}}
	c.Contract = graph.ContractV1
	plain, err := Template(c, engine.Group{Position: engine.Alone, Nodes: 1}, Platform{})
	if err != nil || len(plain.Annotations) > 0 {
		t.Errorf("pods that claim nothing have annotations %v, %v", plain.Annotations, err)
	}
}

// TestNoVariableIsGivenTwice: the server refuses to apply a list with a name twice. What
// sharing needs wins over what the user says.
func TestNoVariableIsGivenTwice(t *testing.T) {
	standing := []string{
		"CONTAINER_NAME", "DYN_FORWARDPASS_METRIC_PORT", "DYN_SYSTEM_ENABLED", "DYN_SYSTEM_PORT", "DYN_SYSTEM_STARTING_HEALTH_STATUS", "DYN_VLLM_GMS_SHADOW_MODE",
		"DYN_VLLM_KV_EVENT_PORT", "ENGINE_ID", "FAILOVER_LOCK_PATH", "GMS_SOCKET_DIR", "NNODES", "VLLM_NIXL_SIDE_CHANNEL_PORT",
	}
	var users []corev1.EnvVar
	for _, name := range standing {
		users = append(users, corev1.EnvVar{Name: name, Value: "users"})
	}
	for rule, c := range map[string]struct {
		mode     graph.SharingMode
		failover bool
		among    func(*corev1.PodTemplateSpec, graph.Component)
		ours     []string // in the first container
	}{
		"containers of a pod share":   {graph.SharingIntraPod, false, nil, []string{"GMS_SOCKET_DIR"}},
		"engines of a pod stand by":   {graph.SharingIntraPod, true, nil, standing},
		"an engine shares with pods":  {graph.SharingInterPod, false, SharedEngine, []string{"DYN_SYSTEM_STARTING_HEALTH_STATUS", "ENGINE_ID", "FAILOVER_LOCK_PATH", "GMS_SOCKET_DIR"}},
		"an engine stands by in pods": {graph.SharingInterPod, true, SharedEngine, []string{"DYN_SYSTEM_STARTING_HEALTH_STATUS", "DYN_VLLM_GMS_SHADOW_MODE", "ENGINE_ID", "FAILOVER_LOCK_PATH", "GMS_SOCKET_DIR"}},
		"a server shares with pods":   {graph.SharingInterPod, true, WeightServer, []string{"DYN_VLLM_GMS_SHADOW_MODE", "GMS_SOCKET_DIR"}},
	} {
		t.Run(rule, func(t *testing.T) {
			component := graph.Component{
				Name: "w", Graph: "g", Role: graph.RoleWorker, Engine: graph.EngineVLLM, Nodes: 2, Resources: graph.Resources{GPUs: 1},
				Main: &corev1.Container{Command: []string{"python3", "-m", "dynamo.vllm"}, Env: users},
				Pod:  &corev1.PodSpec{Containers: []corev1.Container{{Name: "probe", Env: users}}},
			}
			component.Contract, component.GPUMemory = graph.ContractV1, &graph.GPUMemory{Mode: c.mode, Clients: []string{"probe"}}
			if c.failover {
				component.Failover = &graph.Failover{Mode: c.mode, Shadows: 1}
			}
			template, err := Template(component, engine.Group{Position: engine.Leader, Nodes: 2}, Platform{})
			if err != nil {
				t.Fatal(err)
			}
			if c.among != nil {
				ShareAcrossPods(&template, component, 0)
				c.among(&template, component)
			}
			for _, container := range slices.Concat(template.Spec.InitContainers, template.Spec.Containers) {
				names := envNames(container.Env)
				slices.Sort(names)
				if diff := cmp.Diff(slices.Compact(slices.Clone(names)), names); diff != "" {
					t.Errorf("variables of %s (-once +given):\n%s", container.Name, diff)
				}
			}
			var ours []string
			for _, v := range template.Spec.Containers[0].Env {
				if slices.Contains(standing, v.Name) && v.Value != "users" {
					ours = append(ours, v.Name)
				}
			}
			slices.Sort(ours)
			if diff := cmp.Diff(c.ours, ours); diff != "" {
				t.Errorf("variables that win over the user's (-want +got):\n%s", diff)
			}
		})
	}
}
