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
	name, port := frontendPort(&main)
	main.LivenessProbe = behind(chooseProbe(chooseProbe(base.LivenessProbe, main.LivenessProbe), c.Liveness), name)
	ready := behind(chooseProbe(chooseProbe(base.ReadinessProbe, main.ReadinessProbe), c.Readiness), name)
	if get := ready.HTTPGet; get != nil && get.Path == base.ReadinessProbe.HTTPGet.Path {
		// Some frontends say that they are not healthy without a worker, and one that is
		// not ready is not asked. Elsewhere the user knows what is asked.
		get.Path = base.LivenessProbe.HTTPGet.Path
	}
	main.ReadinessProbe = ready
	main.StartupProbe = behind(main.StartupProbe, name)
	if l := main.Lifecycle; l != nil {
		for _, hook := range []*corev1.LifecycleHandler{l.PostStart, l.PreStop} {
			if hook != nil {
				move(hook.HTTPGet, hook.TCPSocket, name)
			}
		}
	}
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

// frontendPort takes the name that Services ask for from the frontend's ports, and says
// which name and number the frontend has. A port that the user gives no name would have
// that of ours, which has its number.
func frontendPort(main *corev1.Container) (name string, port int32) {
	name, port = portNameFrontend, PortHTTP
	taken := false
	if at := slices.IndexFunc(main.Ports, func(p corev1.ContainerPort) bool { return p.Name == PortNameHTTP }); at >= 0 {
		main.Ports[at].Name, port, taken = name, main.Ports[at].ContainerPort, true
	}
	at := slices.IndexFunc(main.Ports, func(p corev1.ContainerPort) bool { return p.ContainerPort == PortHTTP })
	if at < 0 {
		main.Ports, at = append(main.Ports, tcp("", PortHTTP)), len(main.Ports)
	}
	switch ours := &main.Ports[at]; {
	case ours.Name != "" && !taken:
		name = ours.Name
	case ours.Name == "" && taken:
		ours.Name = "frontend-unused" // which nobody listens on
	case ours.Name == "":
		ours.Name = name
	}
	return name, port
}

// behind has a probe ask the frontend, and not who stands before it.
func behind(p *corev1.Probe, name string) *corev1.Probe {
	if p == nil {
		return nil
	}
	p = p.DeepCopy()
	move(p.HTTPGet, p.TCPSocket, name)
	return p
}

// move has who asks at the port that Services ask for ask at another.
func move(get *corev1.HTTPGetAction, socket *corev1.TCPSocketAction, name string) {
	if get != nil && get.Port == intstr.FromString(PortNameHTTP) {
		get.Port = intstr.FromString(name)
	}
	if socket != nil && socket.Port == intstr.FromString(PortNameHTTP) {
		socket.Port = intstr.FromString(name)
	}
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
