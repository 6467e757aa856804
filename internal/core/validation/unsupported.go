package validation

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
)

// Fields of later releases of the original are accepted, so that manifests that have
// them are admitted. Those that nothing reads yet are named here, and taken off the
// list by who implements them.

const noEffectYet = "has no effect yet"

// unsupportedGraph warns of settings of a graph that nothing reads yet.
func (w *warnings) unsupportedGraph(s *v1alpha1.DynamoGraphDeploymentSpec, at *field.Path) {
	w.unsupported(at, map[string]bool{
		"priorityClassName":  s.PriorityClassName != "",
		"topologyConstraint": s.TopologyConstraint != nil,
		"experimental":       s.Experimental != nil,
	})
}

// unsupportedService does the same for a service.
func (w *warnings) unsupportedService(s *v1alpha1.SharedSpec, at *field.Path) {
	w.unsupported(at, map[string]bool{
		"frontendSidecar":    s.FrontendSidecar != nil,
		"gpuMemoryService":   s.GPUMemoryService != nil,
		"failover":           s.Failover != nil,
		"topologyConstraint": s.TopologyConstraint != nil,
		"minAvailable":       s.MinAvailable != nil,
	})
	if s.Checkpoint != nil && s.Checkpoint.Enabled {
		w.add(at.Child("checkpoint"), "pods start cold; nothing captures checkpoints")
	}
}

// unsupportedRequest does the same for a request.
func (w *warnings) unsupportedRequest(s *v1alpha1.DynamoGraphDeploymentRequestSpec, at *field.Path) {
	w.unsupported(at, map[string]bool{
		"overrides":              s.Overrides != nil,
		"runtimeVersionOverride": s.RuntimeVersionOverride != "",
	})
}

// unsupported warns of the fields that are set. Callers sort.
func (w *warnings) unsupported(at *field.Path, set map[string]bool) {
	for name, given := range set {
		if given {
			w.add(at.Child(name), noEffectYet)
		}
	}
}
