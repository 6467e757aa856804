package graph

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// WaitScript names the ConfigMap with the script by which the workers of a graph's
// groups wait for their leaders.
func WaitScript(graph string) string { return suffixed(graph, "-wait-leader-script", maxName) }

// DeviceTemplate names the template of the claims by which pods of a component get
// the GPUs whose memory they share.
func DeviceTemplate(graph, component string) string {
	return suffixed(graph+"-"+strings.ToLower(component), "-gpu", maxName)
}

// IsGPU reports whether a resource is a GPU, whoever makes it.
func IsGPU(name corev1.ResourceName) bool {
	domain, kind, _ := strings.Cut(string(name), "/")
	return kind == "gpu" || strings.HasPrefix(domain, "gpu.")
}

// Engine is the engine of a graph whose components run one and the same; none
// otherwise.
func (g *Graph) Engine() Engine {
	found := EngineNone
	for _, c := range g.Components {
		switch {
		case c.Engine == EngineNone || c.Engine == found:
		case found == EngineNone:
			found = c.Engine
		default:
			return EngineNone
		}
	}
	return found
}

// Waits reports whether workers of a group have to wait for their leader.
func (g *Graph) Waits() bool {
	return slices.ContainsFunc(g.Components, func(c Component) bool {
		return c.Multinode() && c.Engine == EngineVLLM && c.Executor == ExecutorMP
	})
}

// SharesAcrossPods reports whether pods of a component share the memory of GPUs with
// each other, which only Grove can arrange.
func (c Component) SharesAcrossPods() bool {
	return c.Contract == ContractV1 && c.GPUMemory != nil && c.GPUMemory.Mode == SharingInterPod
}
