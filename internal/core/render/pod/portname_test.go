package pod

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/dynamo-operator/dynamo-operator/internal/core/engine"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
)

// TestAPortOfTheUsersTakesTheNameOfOurs: an API server refuses a container with two
// ports of one name, and probes and Services find the port by that.
func TestAPortOfTheUsersTakesTheNameOfOurs(t *testing.T) {
	http, system := tcp(PortNameHTTP, PortHTTP), tcp(PortNameSystem, PortSystem)
	for rule, c := range map[string]struct {
		role        graph.Role
		users, want []corev1.ContainerPort
	}{
		"without any, ours":                {graph.RoleFrontend, nil, []corev1.ContainerPort{http}},
		"one of another name comes beside": {graph.RoleFrontend, []corev1.ContainerPort{tcp("admin", 8080)}, []corev1.ContainerPort{http, tcp("admin", 8080)}},
		"one of the same name and number":  {graph.RoleFrontend, []corev1.ContainerPort{{Name: "http", ContainerPort: PortHTTP}}, []corev1.ContainerPort{http}},
		"one of the same name is the one":  {graph.RoleFrontend, []corev1.ContainerPort{tcp("http", 8080)}, []corev1.ContainerPort{tcp("http", 8080)}},
		"of a worker, too":                 {graph.RoleWorker, []corev1.ContainerPort{tcp("system", 8081)}, []corev1.ContainerPort{tcp("system", 8081)}},
		"whose others stay":                {graph.RolePlanner, []corev1.ContainerPort{tcp("metrics", 9000)}, []corev1.ContainerPort{system, tcp("metrics", 9000)}},
	} {
		t.Run(rule, func(t *testing.T) {
			given := graph.Component{Role: c.role, Main: &corev1.Container{Ports: c.users}}
			if c.role == graph.RolePlanner {
				given.Contract = graph.ContractV1
			}
			template, err := Template(given, engine.Group{Position: engine.Alone, Nodes: 1}, Platform{})
			if err != nil {
				t.Fatal(err)
			}
			main := template.Spec.Containers[0]
			if diff := cmp.Diff(c.want, main.Ports); diff != "" {
				t.Errorf("ports (-want +got):\n%s", diff)
			}
			probed(t, main)
		})
	}
	t.Run("of a frontend beside a worker", func(t *testing.T) {
		c := graph.Component{Runtime: graph.Runtime{Contract: graph.ContractV1, FrontendSidecar: "front"}}
		spec := corev1.PodSpec{Containers: []corev1.Container{{Name: "main"}, {Name: "front", Ports: []corev1.ContainerPort{tcp("http", 8080)}}}}
		addFrontend(&spec, c, Platform{})
		if diff := cmp.Diff([]corev1.ContainerPort{tcp("http", 8080)}, spec.Containers[1].Ports); diff != "" {
			t.Errorf("ports (-want +got):\n%s", diff)
		}
		probed(t, spec.Containers[1])
	})
}

// probed has every probe of a container find exactly one port by its name.
func probed(t *testing.T, c corev1.Container) {
	t.Helper()
	named := map[string]int{}
	for _, p := range c.Ports {
		named[p.Name]++
	}
	for _, probe := range []*corev1.Probe{c.LivenessProbe, c.ReadinessProbe, c.StartupProbe} {
		if probe != nil && named[probe.HTTPGet.Port.StrVal] != 1 {
			t.Errorf("%d ports are named %s, which is probed", named[probe.HTTPGet.Port.StrVal], probe.HTTPGet.Port.StrVal)
		}
	}
}
