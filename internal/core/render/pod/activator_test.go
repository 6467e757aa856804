package pod

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/dynamo-operator/dynamo-operator/internal/core/dormancy"
	"github.com/dynamo-operator/dynamo-operator/internal/core/engine"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
)

// TestAFrontendBehindAnActivatorIsAskedWhereItListens: whatever the user says of ports,
// probes and hooks, they name ports that there are, and the name that Services ask for is
// the activator's alone.
func TestAFrontendBehindAnActivatorIsAskedWhereItListens(t *testing.T) {
	at := func(path string, port intstr.IntOrString) *corev1.HTTPGetAction {
		return &corev1.HTTPGetAction{Path: path, Port: port}
	}
	probe := func(path string, port intstr.IntOrString) *corev1.Probe {
		return &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: at(path, port)}}
	}
	http := intstr.FromString(PortNameHTTP)
	hook := &corev1.LifecycleHandler{HTTPGet: at("/drain", http)}
	type verdict struct {
		Ports              map[string]int32
		Liveness, Ready    string
		Startup, PreStop   string
		PostStart, Forward string
	}
	for rule, c := range map[string]struct {
		main corev1.Container
		want verdict
	}{
		"nothing said": {
			want: verdict{Ports: map[string]int32{"frontend": 8000}, Liveness: "/live frontend", Ready: "/live frontend", Forward: "--frontend-port=8000"},
		},
		"a port without a name": {
			main: corev1.Container{Ports: []corev1.ContainerPort{{ContainerPort: 8000}}},
			want: verdict{Ports: map[string]int32{"frontend": 8000}, Liveness: "/live frontend", Ready: "/live frontend", Forward: "--frontend-port=8000"},
		},
		"a port with a name of the user's own": {
			main: corev1.Container{Ports: []corev1.ContainerPort{{Name: "api", ContainerPort: 8000}}},
			want: verdict{Ports: map[string]int32{"api": 8000}, Liveness: "/live api", Ready: "/live api", Forward: "--frontend-port=8000"},
		},
		"another port has the name, and ours has none": {
			main: corev1.Container{Ports: []corev1.ContainerPort{{ContainerPort: 8000}, {Name: "http", ContainerPort: 9000}}},
			want: verdict{Ports: map[string]int32{"frontend": 9000, "frontend-unused": 8000}, Liveness: "/live frontend", Ready: "/live frontend", Forward: "--frontend-port=9000"},
		},
		"a readiness of the user's own": {
			main: corev1.Container{ReadinessProbe: probe("/ready", http)},
			want: verdict{Ports: map[string]int32{"frontend": 8000}, Liveness: "/live frontend", Ready: "/ready frontend", Forward: "--frontend-port=8000"},
		},
		"probes by number stay": {
			main: corev1.Container{LivenessProbe: probe("/alive", intstr.FromInt32(8000)), StartupProbe: probe("/started", http)},
			want: verdict{Ports: map[string]int32{"frontend": 8000}, Liveness: "/alive 8000", Ready: "/live frontend", Startup: "/started frontend", Forward: "--frontend-port=8000"},
		},
		"hooks ask the frontend, too": {
			main: corev1.Container{Lifecycle: &corev1.Lifecycle{PreStop: hook, PostStart: hook}},
			want: verdict{Ports: map[string]int32{"frontend": 8000}, Liveness: "/live frontend", Ready: "/live frontend", PreStop: "/drain frontend", PostStart: "/drain frontend", Forward: "--frontend-port=8000"},
		},
	} {
		t.Run(rule, func(t *testing.T) {
			users := c.main.DeepCopy()
			front := graph.Component{Graph: "g", Name: "front", Role: graph.RoleFrontend, Main: &c.main}
			rendered, err := Template(Activated(front, "activator:1", "g-activation", dormancy.Settings{}), engine.Group{}, Platform{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(users, &c.main); diff != "" {
				t.Errorf("the user's container is changed (-was +is):\n%s", diff)
			}
			got := verdict{}
			asked := func(get *corev1.HTTPGetAction) string { return get.Path + " " + get.Port.String() }
			named := 0
			for _, container := range rendered.Spec.Containers {
				ports := map[string]int32{}
				for _, p := range container.Ports {
					ports[p.Name] = p.ContainerPort
					if p.Name == PortNameHTTP {
						named++
					}
				}
				for _, p := range []*corev1.Probe{container.LivenessProbe, container.ReadinessProbe, container.StartupProbe} {
					if p != nil && p.HTTPGet.Port.Type == intstr.String && ports[p.HTTPGet.Port.StrVal] == 0 {
						t.Errorf("container %s is asked at port %s, and has %v", container.Name, p.HTTPGet.Port.StrVal, ports)
					}
				}
				if container.Name == activatorContainer {
					got.Forward = container.Args[slices.IndexFunc(container.Args, func(a string) bool { return len(a) > 15 && a[:15] == "--frontend-port" })]
					continue
				}
				got.Ports, got.Liveness, got.Ready = ports, asked(container.LivenessProbe.HTTPGet), asked(container.ReadinessProbe.HTTPGet)
				if container.StartupProbe != nil {
					got.Startup = asked(container.StartupProbe.HTTPGet)
				}
				if l := container.Lifecycle; l != nil {
					got.PreStop, got.PostStart = asked(l.PreStop.HTTPGet), asked(l.PostStart.HTTPGet)
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("frontend (-want +got):\n%s", diff)
			}
			if named != 1 {
				t.Errorf("%d ports are named %s", named, PortNameHTTP)
			}
		})
	}
}
