package pod

import (
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
