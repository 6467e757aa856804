package pod

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/dynamo-operator/dynamo-operator/internal/core/engine"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
)

func TestAFrontendBesideAWorkerIsStarted(t *testing.T) {
	for name, given := range map[string]struct {
		users corev1.Container
		want  []string
	}{
		"nothing said":                          {corev1.Container{}, []string{"python3", "-m", "dynamo.frontend"}},
		"the frontend's options alone":          {corev1.Container{Args: []string{"--router-mode", "direct"}}, []string{"python3", "-m", "dynamo.frontend", "--router-mode", "direct"}},
		"the module with its options":           {corev1.Container{Args: []string{"-m", "dynamo.frontend", "--router-mode", "direct"}}, []string{"python3", "-m", "dynamo.frontend", "--router-mode", "direct"}},
		"a script of the user's own":            {corev1.Container{Args: []string{"frontend.py", "--port", "1"}}, []string{"python3", "frontend.py", "--port", "1"}},
		"a command of the user's own":           {corev1.Container{Command: []string{"frontend"}, Args: []string{"--port", "1"}}, []string{"frontend", "--port", "1"}},
		"a shell, which has no options like it": {corev1.Container{Command: []string{"sh", "-c"}, Args: []string{"exec frontend"}}, []string{"sh", "-c", "exec frontend"}},
	} {
		t.Run(name, func(t *testing.T) {
			given.users.Name = "front"
			c := graph.Component{Runtime: graph.Runtime{Contract: graph.ContractV1, FrontendSidecar: "front"}}
			spec := corev1.PodSpec{Containers: []corev1.Container{{Name: "main"}, given.users}}
			addFrontend(&spec, c, Platform{})
			got := append(append([]string{}, spec.Containers[1].Command...), spec.Containers[1].Args...)
			if diff := cmp.Diff(given.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestContainersAreDiscoveredByTheirOwnNames, where each is discovered by itself.
func TestContainersAreDiscoveredByTheirOwnNames(t *testing.T) {
	for rule, c := range map[string]struct {
		main string
		want map[string]string
	}{
		"a worker and its frontend": {"", map[string]string{"main": "main", "front": "front"}},
		"a name of the user's own":  {"worker", map[string]string{"worker": "worker", "front": "front"}},
	} {
		t.Run(rule, func(t *testing.T) {
			component := graph.Component{
				Role: graph.RoleWorker, Main: &corev1.Container{Name: c.main}, Pod: &corev1.PodSpec{Containers: []corev1.Container{{Name: "front"}}},
				Runtime: graph.Runtime{Contract: graph.ContractV1, FrontendSidecar: "front", DiscoveryMode: graph.DiscoveryModeContainer},
			}
			template, err := Template(component, engine.Group{Position: engine.Alone, Nodes: 1}, Platform{})
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]string{}
			for _, container := range template.Spec.Containers {
				for _, v := range container.Env {
					if v.Name == "CONTAINER_NAME" {
						got[container.Name] = v.Value
					}
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("names (-want +got):\n%s", diff)
			}
		})
	}
}
