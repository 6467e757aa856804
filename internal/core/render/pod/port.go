package pod

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
)

// yielding is a container of ours that gives way to the ports of the user's: a container has
// each name once, so a port of ours goes if the user gives its name to another number alone, and
// a probe of ours asks a port by number that the user calls otherwise.
func yielding(ours, users corev1.Container) corev1.Container {
	known := ours.Ports
	ours.Ports = slices.DeleteFunc(slices.Clone(known), func(p corev1.ContainerPort) bool {
		name := func(u corev1.ContainerPort) bool { return u.Name == p.Name }
		number := func(u corev1.ContainerPort) bool { return u.ContainerPort == p.ContainerPort }
		return slices.ContainsFunc(users.Ports, name) && !slices.ContainsFunc(users.Ports, number)
	})
	for _, probe := range []*corev1.Probe{ours.LivenessProbe, ours.ReadinessProbe, ours.StartupProbe} {
		if probe == nil || probe.HTTPGet == nil {
			continue
		}
		for _, p := range known {
			if probe.HTTPGet.Port == intstr.FromString(p.Name) {
				probe.HTTPGet.Port = target(p.Name, p.ContainerPort, users.Ports, nil)
			}
		}
	}
	return ours
}

// Target is how a port of a component's main container is found: by its name, unless the
// user calls the port otherwise and nothing in the pod has the name.
func Target(c graph.Component, name string, number int32) intstr.IntOrString {
	var main, beside []corev1.ContainerPort
	if c.Main != nil {
		main = c.Main.Ports
	}
	if c.Pod != nil {
		for _, container := range c.Pod.Containers {
			beside = append(beside, container.Ports...)
		}
	}
	return target(name, number, main, beside)
}

func target(name string, number int32, main, beside []corev1.ContainerPort) intstr.IntOrString {
	named := func(p corev1.ContainerPort) bool { return p.Name == name }
	renamed := func(p corev1.ContainerPort) bool { return p.ContainerPort == number && p.Name != "" }
	if slices.ContainsFunc(slices.Concat(main, beside), named) || !slices.ContainsFunc(main, renamed) {
		return intstr.FromString(name)
	}
	return intstr.FromInt32(number)
}

// FrontendPort is where the frontend in a pod listens itself, whoever stands before it: its
// main container, which the user may call otherwise, has the name that Services ask for or,
// behind an activator, its own.
func FrontendPort(p corev1.Pod) uint16 {
	called := func(name string) bool {
		return slices.ContainsFunc(p.Spec.Containers, func(c corev1.Container) bool { return c.Name == name })
	}
	name, main := PortNameHTTP, called(MainContainer)
	if called(activatorContainer) {
		name = portNameFrontend
	}
	for _, c := range p.Spec.Containers {
		at := slices.IndexFunc(c.Ports, func(port corev1.ContainerPort) bool { return port.Name == name })
		if at >= 0 && c.Name != activatorContainer && (c.Name == MainContainer || !main) {
			return uint16(c.Ports[at].ContainerPort)
		}
	}
	return PortHTTP
}
