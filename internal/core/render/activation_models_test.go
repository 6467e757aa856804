package render

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
)

// TestModels: who asks a sleeping graph for one of these wakes it.
func TestModels(t *testing.T) {
	told := func(args ...string) *corev1.Container { return &corev1.Container{Args: args} }
	for rule, c := range map[string]struct {
		components []graph.Component
		want       []string
	}{
		"a command line says more than a reference":  {[]graph.Component{{Role: graph.RoleWorker, Model: "Qwen/Qwen3-0.6B", Main: told("--model", "/models/qwen", "--served-model-name", "qwen")}}, []string{"qwen"}},
		"a reference counts where it says nothing":   {[]graph.Component{{Role: graph.RoleWorker, Model: "qwen", Main: told("serve")}}, []string{"qwen"}},
		"prefill serves nobody by the name of files": {[]graph.Component{{Role: graph.RoleDecode, Main: told("--served-model-name", "qwen")}, {Role: graph.RolePrefill, Main: told("--model", "/models/qwen")}, {Role: graph.RoleWorker, SubType: "prefill", Main: told("--model", "/models/qwen")}}, []string{"qwen"}},
		"frontends serve what workers do":            {[]graph.Component{{Role: graph.RoleFrontend, Model: "qwen"}}, nil},
	} {
		t.Run(rule, func(t *testing.T) {
			if diff := cmp.Diff(c.want, Models(&graph.Graph{Components: c.components})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
