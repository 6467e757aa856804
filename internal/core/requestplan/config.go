package requestplan

import (
	"cmp"
	"encoding/json"

	"sigs.k8s.io/yaml"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/fault"
)

// Where a profiler finds its files.
const (
	OutputPath  = "/data"
	BaseFolder  = "/config"
	BaseFile    = "disagg.yaml"
	BasePath    = BaseFolder + "/" + BaseFile
	InputFolder = "/etc/profile"
	InputPath   = InputFolder + "/" + KeyConfig
)

// configOf completes a request's configuration of its profiler. Keys have two
// spellings; where the operator decides, the other one goes, so that it cannot
// win.
func configOf(r *v1alpha1.DynamoGraphDeploymentRequest, nodes []Node, p Policy) (string, error) {
	if asked, ok := p.question(r); ok {
		return asked.config(nodes, hardwareField(r))
	}
	root := map[string]any{}
	if config := r.Spec.ProfilingConfig.Config; config != nil {
		if err := json.Unmarshal(config.Raw, &root); err != nil {
			return "", err
		}
	}
	deployment, engine := section(root, "deployment"), section(root, "engine")
	deployment["model"] = r.Spec.Model
	if _, given := deployment["namespace"]; !given {
		deployment["namespace"] = r.Namespace
	}
	if o := r.Spec.DeploymentOverrides; o != nil && o.WorkersImage != "" {
		decide(deployment, "dgd_image", "dgdImage", o.WorkersImage)
	}
	engine["backend"] = string(r.Spec.Backend)
	if r.Spec.ProfilingConfig.ConfigMapRef != nil {
		engine["config"] = BasePath
	}
	decide(root, "output_dir", "outputDir", OutputPath)
	if named := having(namedGPU(r), nodes); len(named) > 0 {
		nodes = named
	}
	switch hardware, found := Hardware(nodes); {
	case found && Discovers(r):
		discovered(root, hardware, p.Direct(r.Spec.ProfilingConfig.ProfilerImage))
	case Discovers(r):
		return "", fault.New(fault.Waiting, v1alpha1.ReasonHardwareNotFound,
			"no node has GPUs and the labels that GPU feature discovery writes; describe the hardware in profilingConfig.config.hardware, or wait for nodes")
	case found && !NamesGPU(r):
		section(root, "hardware")["gpuType"] = hardware.Product
	}
	text, err := yaml.Marshal(root)
	return string(text), err
}

// Discovers reports whether a request wants its hardware looked up.
func Discovers(r *v1alpha1.DynamoGraphDeploymentRequest) bool {
	hardware, _ := sections(r)
	return r.Spec.EnableGPUDiscovery || either(hardware, "enableGpuDiscovery", "enable_gpu_discovery") == true
}

// NamesGPU reports whether a request says which GPU it is about. If not, that of
// the nodes is meant.
func NamesGPU(r *v1alpha1.DynamoGraphDeploymentRequest) bool {
	hardware, sweep := sections(r)
	return either(hardware, "gpuType", "gpu_type") != nil || either(sweep, "aicSystem", "aic_system") != nil
}

// namedGPU is the GPU that a request says it is about; empty if it names none. The
// profiler goes by sweep first.
func namedGPU(r *v1alpha1.DynamoGraphDeploymentRequest) string {
	hardware, sweep := sections(r)
	for _, given := range []any{either(sweep, "aicSystem", "aic_system"), either(hardware, "gpuType", "gpu_type")} {
		if name, ok := given.(string); ok && name != "" {
			return name
		}
	}
	return ""
}

// sections reads what a request says about hardware and sweep.
func sections(r *v1alpha1.DynamoGraphDeploymentRequest) (hardware, sweep map[string]any) {
	root := map[string]any{}
	if config := r.Spec.ProfilingConfig.Config; config == nil || json.Unmarshal(config.Raw, &root) != nil {
		return nil, nil
	}
	hardware, _ = root["hardware"].(map[string]any)
	sweep, _ = root["sweep"].(map[string]any)
	return hardware, sweep
}

// discovered adds what is known of the hardware and was not given. A profiler
// of others is given every number, or it would want to look at nodes itself.
func discovered(root map[string]any, hardware Node, direct bool) {
	given, sweep := section(root, "hardware"), section(root, "sweep")
	if either(given, "numGpusPerNode", "num_gpus_per_node") == nil {
		given["numGpusPerNode"] = hardware.GPUs
	}
	if either(given, "gpuType", "gpu_type") == nil && either(sweep, "aicSystem", "aic_system") == nil {
		given["gpuType"] = hardware.Product
	}
	if len(sweep) == 0 {
		delete(root, "sweep")
	}
	if direct {
		decide(given, "enableGpuDiscovery", "enable_gpu_discovery", true)
		return
	}
	decide(given, "enableGpuDiscovery", "enable_gpu_discovery", false)
	if either(given, "minNumGpusPerEngine", "min_num_gpus_per_engine") == nil {
		given["minNumGpusPerEngine"] = 1
	}
	if either(given, "maxNumGpusPerEngine", "max_num_gpus_per_engine") == nil {
		given["maxNumGpusPerEngine"] = hardware.GPUs
	}
}

func section(root map[string]any, key string) map[string]any {
	fields, ok := root[key].(map[string]any)
	if !ok {
		fields = map[string]any{}
		root[key] = fields
	}
	return fields
}

// decide sets a key under one spelling and removes the other.
func decide(fields map[string]any, key, other string, value any) {
	delete(fields, other)
	fields[key] = value
}

func either(fields map[string]any, key, other string) any {
	if value, given := fields[key]; given {
		return value
	}
	return fields[other]
}

// Offline reports whether a request is answered without deploying anything, as
// far as the seed's profiler tells by the name of its app.
func (r Record) Offline() bool {
	var given struct {
		Sweep map[string]any `json:"sweep"`
	}
	if err := yaml.Unmarshal([]byte(r.Config), &given); err != nil {
		return false
	}
	return either(given.Sweep, "useAiConfigurator", "use_ai_configurator") == true
}

// cachePath is where a model cache is mounted unless a request says otherwise.
const cachePath = "/opt/model-cache"

// ModelCache is a claim with a model's files, and where it is mounted.
type ModelCache struct{ Claim, Path string }

// CacheOf reads the model cache that a configuration of either contract names;
// the Claim is empty if it names none.
func CacheOf(config []byte) ModelCache {
	if asked, ok := questionIn(string(config)); ok {
		if asked.ModelCache == nil {
			return ModelCache{}
		}
		return ModelCache{asked.ModelCache.PVCName, cmp.Or(asked.ModelCache.PVCMountPath, cachePath)}
	}
	var given struct {
		Deployment struct {
			ModelCache struct {
				PVCName   string `json:"pvcName"`
				MountPath string `json:"mountPath"`
				// PVCMountPath is how a request of v1beta1 is shown in v1alpha1.
				PVCMountPath string `json:"pvcMountPath"`
			} `json:"modelCache"`
		} `json:"deployment"`
	}
	if err := yaml.Unmarshal(config, &given); err != nil {
		return ModelCache{}
	}
	cache := given.Deployment.ModelCache
	return ModelCache{cache.PVCName, cmp.Or(cache.MountPath, cache.PVCMountPath, cachePath)}
}
