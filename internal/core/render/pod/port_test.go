package pod

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
)

// TestPortsOfTheUser: a container must not have a name twice, and what asks a port by name
// has to find it.
func TestPortsOfTheUser(t *testing.T) {
	type want struct {
		Ports                []corev1.ContainerPort
		Live, Ready, Service intstr.IntOrString
	}
	named := func(name string, number int32) corev1.ContainerPort {
		return corev1.ContainerPort{Name: name, ContainerPort: number}
	}
	everywhere := func(port intstr.IntOrString, ports ...corev1.ContainerPort) want {
		return want{ports, port, port, port}
	}
	http, number := intstr.FromString(PortNameHTTP), intstr.FromInt32(PortHTTP)
	for rule, c := range map[string]struct {
		users, beside []corev1.ContainerPort
		want          want
	}{
		"without any there is ours":                  {want: everywhere(http, tcp("http", 8000))},
		"more stand beside ours":                     {users: []corev1.ContainerPort{named("more", 1)}, want: everywhere(http, tcp("http", 8000), named("more", 1))},
		"one without a name has ours":                {users: []corev1.ContainerPort{{ContainerPort: 8000}}, want: everywhere(http, tcp("http", 8000))},
		"our name at another number takes our place": {users: []corev1.ContainerPort{named("http", 9000)}, want: everywhere(http, named("http", 9000))},
		"our number under another name is asked by number": {
			users: []corev1.ContainerPort{named("openai", 8000)}, want: everywhere(number, tcp("openai", 8000)),
		},
		"both, which change places": {
			users: []corev1.ContainerPort{named("http", 9000), named("old", 8000)}, want: everywhere(http, tcp("old", 8000), named("http", 9000)),
		},
		"a Service leads to who stands before it under our name": {
			users: []corev1.ContainerPort{named("frontend", 8000)}, beside: []corev1.ContainerPort{named("http", 8001)},
			want: want{[]corev1.ContainerPort{tcp("frontend", 8000)}, number, number, http},
		},
	} {
		t.Run(rule, func(t *testing.T) {
			component := graph.Component{
				Role: graph.RoleFrontend, Runtime: graph.Runtime{Contract: graph.ContractSeed},
				Main: &corev1.Container{Ports: c.users}, Pod: &corev1.PodSpec{Containers: []corev1.Container{{Name: "beside", Ports: c.beside}}},
			}
			main := mainContainer(component, Platform{})
			got := want{main.Ports, main.LivenessProbe.HTTPGet.Port, main.ReadinessProbe.HTTPGet.Port, Target(component, PortNameHTTP, PortHTTP)}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("ports (-want +got):\n%s", diff)
			}
		})
	}
}

// TestAFrontendIsAskedWhereItListens, and not at who stands before it, who may say something
// else.
func TestAFrontendIsAskedWhereItListens(t *testing.T) {
	port := func(container, name string, number int32) corev1.Container {
		return corev1.Container{Name: container, Ports: []corev1.ContainerPort{{Name: "metrics", ContainerPort: 9000}, {Name: name, ContainerPort: number}}}
	}
	for rule, c := range map[string]struct {
		containers []corev1.Container
		want       uint16
	}{
		"at the port of that name":               {[]corev1.Container{port("main", "http", 8001)}, 8001},
		"at the usual one where none has it":     {[]corev1.Container{port("main", "openai", 8001)}, 8000},
		"behind an activator at its own":         {[]corev1.Container{port("main", "frontend", 8001), port("activator", "http", PortActivator)}, 8001},
		"whoever else has a port of its name":    {[]corev1.Container{port("main", "openai", 8000), port("proxy", "http", 8001)}, 8000},
		"whatever its container is called":       {[]corev1.Container{port("api", "http", 8001)}, 8001},
		"also behind an activator":               {[]corev1.Container{port("activator", "http", PortActivator), port("api", "frontend", 8001)}, 8001},
		"with no activator by its own name":      {[]corev1.Container{port("main", "frontend", 3000)}, 8000},
		"if little is known of it, at the usual": {nil, 8000},
	} {
		t.Run(rule, func(t *testing.T) {
			if got := FrontendPort(corev1.Pod{Spec: corev1.PodSpec{Containers: c.containers}}); got != c.want {
				t.Errorf("it is asked at %d, and not %d", got, c.want)
			}
		})
	}
}
