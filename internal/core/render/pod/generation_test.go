package pod

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
)

func TestWhoLooksForWorkersKnowsWhatTheirNamespacesBeginWith(t *testing.T) {
	frontend := &corev1.Container{Command: []string{"/bin/sh", "-c"}, Args: []string{"python3 -m dynamo.frontend --http-port 8000"}}
	prefix := []corev1.EnvVar{{Name: "DYN_NAMESPACE_PREFIX", Value: "ns-g"}}
	for name, c := range map[string]struct {
		contract  graph.Contract
		component graph.Component
		want      []corev1.EnvVar
	}{
		"a frontend":                         {graph.ContractV1, graph.Component{Role: graph.RoleFrontend}, prefix},
		"a frontend of a type of its author": {graph.ContractV1, graph.Component{Role: graph.RoleOther, Main: frontend}, prefix},
		"not one whose workers were taken over without a generation": {graph.ContractV1, graph.Component{Role: graph.RoleOther, Main: frontend, Runtime: graph.Runtime{Adopted: true}}, nil},
		"not another program":                         {graph.ContractV1, graph.Component{Role: graph.RoleOther, Main: &corev1.Container{}}, nil},
		"not a component that brings no container":    {graph.ContractV1, graph.Component{Role: graph.RoleOther}, nil},
		"not under a contract that has no generation": {graph.ContractSeed, graph.Component{Role: graph.RoleOther, Main: frontend}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			c.component.DynamoNamespace, c.component.Contract = "ns-g", c.contract
			if diff := cmp.Diff(c.want, generationEnv(c.component)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
