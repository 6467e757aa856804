package pod

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/dynamo-operator/dynamo-operator/internal/core/contract"
	"github.com/dynamo-operator/dynamo-operator/internal/core/engine"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
)

// Ports that the runtime listens on.
const (
	PortHTTP    = 8000
	PortSystem  = 9090
	PortPlanner = 9085
	PortPicker  = 9002
	portHealth  = 9003
)

// Names of those ports; probes and Services refer to them.
const (
	PortNameHTTP    = "http"
	PortNameSystem  = "system"
	PortNameMetrics = "metrics"
	PortNameGRPC    = "grpc"
)

// Accounts with rights beyond discovery, one of each per namespace: the planner
// scales its graph, the endpoint picker watches the gateway's pools.
const (
	PlannerAccount = "planner-serviceaccount"
	PickerAccount  = "epp-serviceaccount"
)

// roleContainer is the main container that a role starts from.
func roleContainer(c graph.Component) corev1.Container {
	switch role := c.Role; {
	case role == graph.RoleEPP:
		return pickerContainer(c)
	case role == graph.RoleFrontend:
		return frontendContainer()
	case role.RunsEngine():
		return workerContainer(contract.Of(c.Contract).Pods)
	case role == graph.RolePlanner:
		return plannerContainer(contract.Of(c.Contract).Pods)
	default:
		return corev1.Container{Command: engine.Shell()}
	}
}

func frontendContainer() corev1.Container {
	return corev1.Container{
		Command: []string{"python3"},
		Args:    []string{"-m", "dynamo.frontend"},
		Ports:   []corev1.ContainerPort{tcp(PortNameHTTP, PortHTTP)},
		Env: []corev1.EnvVar{
			{Name: "DYNAMO_PORT", Value: "8000"},
			{Name: "DYN_HTTP_PORT", Value: "8000"},
		},
		LivenessProbe: &corev1.Probe{
			ProbeHandler: get("/live", PortNameHTTP), InitialDelaySeconds: 15,
			PeriodSeconds: 10, TimeoutSeconds: 1, FailureThreshold: 3,
		},
		ReadinessProbe: &corev1.Probe{
			ProbeHandler: get("/health", PortNameHTTP), InitialDelaySeconds: 10,
			PeriodSeconds: 10, TimeoutSeconds: 3, FailureThreshold: 3,
		},
	}
}

func workerContainer(rules contract.Pods) corev1.Container {
	return corev1.Container{
		Command: engine.Shell(),
		Ports:   append([]corev1.ContainerPort{tcp(PortNameSystem, PortSystem)}, rules.WorkerPorts...),
		Env: append([]corev1.EnvVar{
			{Name: "DYN_HEALTH_CHECK_ENABLED", Value: "false"},
			{Name: "DYN_SYSTEM_ENABLED", Value: "true"},
			{Name: "DYN_SYSTEM_PORT", Value: "9090"},
			{Name: "DYN_SYSTEM_USE_ENDPOINT_HEALTH_STATUS", Value: `["generate"]`},
		}, rules.WorkerEnv...),
		LivenessProbe: &corev1.Probe{
			ProbeHandler:  get("/live", PortNameSystem),
			PeriodSeconds: 5, TimeoutSeconds: 4, FailureThreshold: 1,
		},
		ReadinessProbe: &corev1.Probe{
			ProbeHandler:  get("/health", PortNameSystem),
			PeriodSeconds: 10, TimeoutSeconds: 4, FailureThreshold: 3,
		},
		// Two hours: loading a large model from a cold cache takes that long.
		StartupProbe: &corev1.Probe{
			ProbeHandler:  get("/live", PortNameSystem),
			PeriodSeconds: 10, TimeoutSeconds: 5, FailureThreshold: 720,
		},
	}
}

func plannerContainer(rules contract.Pods) corev1.Container {
	planner := corev1.Container{
		Command: engine.Shell(),
		Ports:   []corev1.ContainerPort{tcp(PortNameMetrics, PortPlanner)},
		Env:     []corev1.EnvVar{{Name: "PLANNER_PROMETHEUS_PORT", Value: "9085"}},
	}
	if rules.PlannerSystem {
		worker := workerContainer(rules)
		planner.Ports = append(planner.Ports, tcp(PortNameSystem, PortSystem))
		planner.Env = append(planner.Env, corev1.EnvVar{Name: "DYN_SYSTEM_PORT", Value: "9090"})
		planner.LivenessProbe, planner.ReadinessProbe, planner.StartupProbe = worker.LivenessProbe, worker.ReadinessProbe, worker.StartupProbe
	}
	return planner
}

func tcp(name string, port int32) corev1.ContainerPort {
	return corev1.ContainerPort{Name: name, ContainerPort: port, Protocol: corev1.ProtocolTCP}
}

func get(path, port string) corev1.ProbeHandler {
	return corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: path, Port: intstr.FromString(port)}}
}
