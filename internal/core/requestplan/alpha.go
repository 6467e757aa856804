package requestplan

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/api/v1beta1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/conversion"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
)

// A request of v1alpha1 for a profiler of 1.x says in the configuration of an earlier
// one what v1beta1 has fields for. The original keeps that and uses none of it.

// hardwareIn is what the configuration of a request says of its hardware, in either
// version's words. A GPU that has no gpuSku stays as it is written: the profiler says
// which it knows.
func hardwareIn(r *v1alpha1.DynamoGraphDeploymentRequest) *v1beta1.Hardware {
	given, _ := sections(r)
	h := hardwareFields(given)
	if name := namedGPU(r); name != "" {
		h.GPUSKU = SKU(name)
		if h.GPUSKU == "" {
			h.GPUSKU = name
		}
	}
	if h.NumGPUsPerNode == nil {
		h.NumGPUsPerNode = hardwareFields(map[string]any{"numGpusPerNode": given["num_gpus_per_node"]}).NumGPUsPerNode
	}
	if n := h.NumGPUsPerNode; n != nil && *n <= 0 {
		h.NumGPUsPerNode = nil // none is how an earlier profiler is left to its default
	}
	return h
}

// hardwareFields are those that v1beta1 has too. A value of another type is none.
func hardwareFields(given map[string]any) *v1beta1.Hardware {
	h := &v1beta1.Hardware{}
	text, err := json.Marshal(given)
	if err == nil {
		_ = json.Unmarshal(text, h) // reads what it can
	}
	return h
}

// hardwareField is where a user describes the hardware.
func hardwareField(r *v1alpha1.DynamoGraphDeploymentRequest) string {
	if conversion.WrittenAs(r) == conversion.Beta {
		return "spec.hardware"
	}
	return "profilingConfig.config.hardware"
}

// used are the keys of each section that a question is made of, or that the operator
// decides itself.
var used = map[string][]string{
	"sla":        {"ttft", "itl", "isl", "osl", "optimizationType"},
	"deployment": {"model", "namespace", "modelCache", "dgdImage", "dgd_image"},
	"engine":     {"backend"},
	"hardware": {
		"gpuType", "gpu_type", "numGpusPerNode", "num_gpus_per_node", "enableGpuDiscovery", "enable_gpu_discovery",
		"gpuSku", "vramMb", "totalGpus", "interconnect", "rdma",
	},
	"sweep": {"aicSystem", "aic_system"},
}

// unused says which keys of its configuration nobody reads, because the profiler is told
// in the words of v1beta1; empty if there are none.
func (r Record) unused() string {
	config := r.Spec.ProfilingConfig.Config
	root := map[string]any{}
	if _, one := r.Question(); !one || r.Version == conversion.Beta || config == nil || json.Unmarshal(config.Raw, &root) != nil {
		return ""
	}
	var names []string
	for _, name := range slices.Sorted(maps.Keys(root)) {
		section, fields := root[name].(map[string]any)
		switch _, read := used[name]; {
		case name == "planner" || name == "outputDir" || name == "output_dir":
		case !read || !fields:
			names = append(names, name)
		default:
			names = append(names, unusedOf(name, section)...)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return "of profilingConfig.config these have no effect with a profiler of 1.x: " + strings.Join(names, ", ")
}

func unusedOf(name string, section map[string]any) []string {
	var names []string
	for _, key := range slices.Sorted(maps.Keys(section)) {
		estimates := (key == "useAiConfigurator" || key == "use_ai_configurator") && section[key] == true // as is done
		if !slices.Contains(used[name], key) && !estimates {
			names = append(names, name+"."+key)
		}
	}
	return names
}

// workers gives the workers of a graph the image that the request wants them to have. An
// earlier profiler is told it; one of 1.x cannot be.
func (g *Generated) workers(r *Record) {
	image := r.workersImage()
	if _, one := r.Question(); !one || image == "" || r.Spec.UseMocker {
		return
	}
	for _, s := range g.Graph.Spec.SortedServices() {
		if s == nil || !graph.RoleOf(string(s.ComponentType)).RunsEngine() {
			continue
		}
		if s.ExtraPodSpec == nil {
			s.ExtraPodSpec = &v1alpha1.ExtraPodSpec{}
		}
		if s.ExtraPodSpec.MainContainer == nil {
			s.ExtraPodSpec.MainContainer = &corev1.Container{}
		}
		s.ExtraPodSpec.MainContainer.Image = image
	}
}

func (r *Record) workersImage() string {
	if o := r.Spec.DeploymentOverrides; o != nil && o.WorkersImage != "" {
		return o.WorkersImage
	}
	root := map[string]any{}
	if config := r.Spec.ProfilingConfig.Config; config == nil || json.Unmarshal(config.Raw, &root) != nil {
		return ""
	}
	image, _ := either(section(root, "deployment"), "dgdImage", "dgd_image").(string)
	return image
}
