package pod

import (
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/dynamo-operator/dynamo-operator/internal/core/dormancy"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
)

const (
	// PortActivator is where an activator listens in its frontend's stead. The frontend
	// keeps its number, and the activator has the name that Services ask for.
	PortActivator = 8099
	// portNameFrontend is the frontend's own then.
	portNameFrontend = "frontend"
	// activatorContainer is the name of the container.
	activatorContainer = "activator"
	// ActivatorHealth is answered by the activator itself.
	ActivatorHealth = "/activator/healthz"
)

// Activated puts an activator in front of a frontend: in the same pod, always in the
// path, so that nothing has to be switched when workers end. It renews the given Lease.
func Activated(c graph.Component, image, lease string, s dormancy.Settings) graph.Component {
	c.Activated = true
	main := corev1.Container{}
	if c.Main != nil {
		main = *c.Main.DeepCopy() // the user's object stays as it is
	}
	base := frontendContainer()
	port := int32(PortHTTP)
	if at := slices.IndexFunc(main.Ports, func(p corev1.ContainerPort) bool { return p.Name == PortNameHTTP }); at >= 0 {
		main.Ports[at].Name, port = portNameFrontend, main.Ports[at].ContainerPort
	}
	if !slices.ContainsFunc(main.Ports, func(p corev1.ContainerPort) bool { return p.ContainerPort == PortHTTP }) {
		name := portNameFrontend
		if port != PortHTTP {
			name = "frontend-unused" // ours, which nobody listens on
		}
		main.Ports = append(main.Ports, tcp(name, PortHTTP))
	}
	main.LivenessProbe = behind(chooseProbe(chooseProbe(base.LivenessProbe, main.LivenessProbe), c.Liveness))
	ready := behind(chooseProbe(chooseProbe(base.ReadinessProbe, main.ReadinessProbe), c.Readiness))
	if get := ready.HTTPGet; get != nil {
		// Some frontends say that they are not healthy without a worker, and one that is
		// not ready is not asked.
		get.Path = base.LivenessProbe.HTTPGet.Path
	}
	main.ReadinessProbe = ready
	main.StartupProbe = behind(main.StartupProbe)
	c.Main, c.Liveness, c.Readiness = &main, nil, nil

	users := corev1.PodSpec{}
	if c.Pod != nil {
		users = *c.Pod.DeepCopy()
	}
	if users.ServiceAccountName == "" && c.Discovery != graph.DiscoveryKubernetes {
		users.ServiceAccountName = graph.ActivationName(c.Graph)
	}
	users.Containers = append(users.Containers, activator(image, lease, port, s))
	c.Pod = &users
	return c
}

// ActivatorAccount is the account that an activated component's pods run under.
func ActivatorAccount(c graph.Component) string {
	if c.Pod != nil && c.Pod.ServiceAccountName != "" {
		return c.Pod.ServiceAccountName
	}
	return graph.DiscoveryAccount(c.Graph)
}

// behind has a probe ask the frontend, and not who stands before it.
func behind(p *corev1.Probe) *corev1.Probe {
	if p == nil {
		return nil
	}
	p = p.DeepCopy()
	if p.HTTPGet != nil && p.HTTPGet.Port == intstr.FromString(PortNameHTTP) {
		p.HTTPGet.Port = intstr.FromString(portNameFrontend)
	}
	if p.TCPSocket != nil && p.TCPSocket.Port == intstr.FromString(PortNameHTTP) {
		p.TCPSocket.Port = intstr.FromString(portNameFrontend)
	}
	return p
}

func activator(image, lease string, frontend int32, s dormancy.Settings) corev1.Container {
	asked := get(ActivatorHealth, PortNameHTTP)
	return corev1.Container{
		Name:  activatorContainer,
		Image: image,
		Args: []string{
			"--lease=" + lease,
			"--listen-port=" + strconv.Itoa(PortActivator),
			"--frontend-port=" + strconv.Itoa(int(frontend)),
			"--renewal=" + s.Renewal().String(),
			"--timeout=" + s.Timeout.String(),
		},
		Env:            []corev1.EnvVar{fromField("POD_NAME", "metadata.name"), fromField("POD_NAMESPACE", "metadata.namespace")},
		Ports:          []corev1.ContainerPort{tcp(PortNameHTTP, PortActivator)},
		LivenessProbe:  &corev1.Probe{ProbeHandler: asked, PeriodSeconds: 10, TimeoutSeconds: 3, FailureThreshold: 3},
		ReadinessProbe: &corev1.Probe{ProbeHandler: asked, PeriodSeconds: 5, TimeoutSeconds: 3, FailureThreshold: 3},
		Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse("64Mi")},
			Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("512Mi")},
		},
		SecurityContext: &corev1.SecurityContext{
			AllowPrivilegeEscalation: new(false), ReadOnlyRootFilesystem: new(true),
			Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		},
	}
}
