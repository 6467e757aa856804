package validation

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
)

// Request checks a DynamoGraphDeploymentRequest on its own. Nodes can only be
// looked at by an operator that manages the whole cluster.
func Request(dgdr *v1alpha1.DynamoGraphDeploymentRequest, clusterWide bool) field.ErrorList {
	at := field.NewPath("spec")
	var errs field.ErrorList
	if dgdr.Spec.EnableGPUDiscovery && !clusterWide {
		errs = append(errs, field.Forbidden(at.Child("enableGpuDiscovery"), "this operator manages one namespace and sees no nodes; describe the hardware in profilingConfig.config"))
	}
	profiling := at.Child("profilingConfig")
	if dgdr.Spec.ProfilingConfig.ProfilerImage == "" {
		errs = append(errs, field.Required(profiling.Child("profilerImage"), ""))
	}
	if ref := dgdr.Spec.ProfilingConfig.ConfigMapRef; ref != nil && ref.Name == "" {
		errs = append(errs, field.Required(profiling.Child("configMapRef", "name"), ""))
	}
	switch config := dgdr.Spec.ProfilingConfig.Config; {
	case config == nil || len(config.Raw) == 0:
		errs = append(errs, field.Required(profiling.Child("config"), ""))
	case json.Unmarshal(config.Raw, &map[string]any{}) != nil:
		errs = append(errs, field.Invalid(profiling.Child("config"), string(config.Raw), "must be an object"))
	}
	return sorted(errs)
}

// RequestWarnings tells what of a request will not be as it is written.
func RequestWarnings(dgdr *v1alpha1.DynamoGraphDeploymentRequest) []string {
	var given struct {
		Engine struct {
			Backend any `json:"backend"`
		} `json:"engine"`
		Deployment struct {
			Model any `json:"model"`
		} `json:"deployment"`
	}
	if config := dgdr.Spec.ProfilingConfig.Config; config == nil || json.Unmarshal(config.Raw, &given) != nil {
		return nil
	}
	var w warnings
	at := field.NewPath("spec", "profilingConfig", "config")
	overwritten := func(at *field.Path, given any, by, value string) {
		if text, ok := given.(string); ok && text != "" && text != value {
			w.add(at, fmt.Sprintf("%q is overwritten by %s %q", text, by, value))
		}
	}
	overwritten(at.Child("engine", "backend"), given.Engine.Backend, "spec.backend", string(dgdr.Spec.Backend))
	overwritten(at.Child("deployment", "model"), given.Deployment.Model, "spec.model", dgdr.Spec.Model)
	return w.sorted()
}
