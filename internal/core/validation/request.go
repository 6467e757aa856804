package validation

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/api/v1beta1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/conversion"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graphoverride"
	"github.com/dynamo-operator/dynamo-operator/internal/core/guard"
	"github.com/dynamo-operator/dynamo-operator/internal/core/joboverride"
)

// Request checks a DynamoGraphDeploymentRequest on its own. Nodes can only be
// looked at by an operator that manages the whole cluster.
func Request(dgdr *v1alpha1.DynamoGraphDeploymentRequest, scope Scope) field.ErrorList {
	at := field.NewPath("spec")
	var errs field.ErrorList
	if dgdr.Spec.EnableGPUDiscovery && !scope.ClusterWide {
		errs = append(errs, field.Forbidden(at.Child("enableGpuDiscovery"), "this operator manages one namespace and sees no nodes; describe the hardware in profilingConfig.config"))
	}
	profiling := at.Child("profilingConfig")
	if dgdr.Spec.ProfilingConfig.ProfilerImage == "" {
		errs = append(errs, field.Required(profiling.Child("profilerImage"), ""))
	}
	if ref := dgdr.Spec.ProfilingConfig.ConfigMapRef; ref != nil && ref.Name == "" {
		errs = append(errs, field.Required(profiling.Child("configMapRef", "name"), ""))
	}
	errs = append(errs, profilerConfig(dgdr.Spec.ProfilingConfig.Config, scope.ClusterWide, profiling.Child("config"))...)
	errs = append(errs, overrides(dgdr, scope, at.Child("deploymentOverrides"))...)
	errs = append(errs, partial(dgdr.Spec.Overrides, at.Child("overrides"))...)
	if given, found := dgdr.Annotations[v1alpha1.AnnotationProfilingDeadline]; found {
		if d, err := time.ParseDuration(given); err != nil || d < time.Second {
			errs = append(errs, field.Invalid(field.NewPath("metadata", "annotations").Key(v1alpha1.AnnotationProfilingDeadline), given,
				"must be a duration of a second or more, such as 30m"))
		}
	}
	if text, err := json.Marshal(dgdr.Spec); err == nil && len(text) > maxRequest {
		errs = append(errs, field.TooLong(at, "", maxRequest))
	}
	return sorted(errs)
}

// maxRequest is how long a spec may be, in JSON. The status holds it once more,
// with the profiler's configuration and the graph, in one object of 1.5 MiB.
const maxRequest = 256 << 10

// profilerConfig checks what of a profiler's configuration the operator itself
// reads and completes; the rest is the profiler's.
func profilerConfig(config *runtime.RawExtension, clusterWide bool, at *field.Path) field.ErrorList {
	if config == nil || len(config.Raw) == 0 {
		return field.ErrorList{field.Required(at, "")}
	}
	var fields map[string]any
	if json.Unmarshal(config.Raw, &fields) != nil || fields == nil {
		return field.ErrorList{field.Invalid(at, string(config.Raw), "must be an object")}
	}
	var errs field.ErrorList
	for _, section := range []string{"deployment", "engine", "hardware", "sweep"} {
		switch value := fields[section].(type) {
		case nil, map[string]any:
		default:
			errs = append(errs, field.Invalid(at.Child(section), value, "must be an object"))
		}
	}
	hardware, _ := fields["hardware"].(map[string]any)
	for _, key := range []string{"enableGpuDiscovery", "enable_gpu_discovery"} {
		if hardware[key] == true && !clusterWide {
			errs = append(errs, field.Forbidden(at.Child("hardware", key), "this operator manages one namespace and sees no nodes; describe the hardware instead"))
		}
	}
	return errs
}

// overrides checks where the graph of a request goes.
func overrides(dgdr *v1alpha1.DynamoGraphDeploymentRequest, scope Scope, at *field.Path) field.ErrorList {
	o := dgdr.Spec.DeploymentOverrides
	if o == nil {
		return nil
	}
	errs := objectName(o.Name, at.Child("name"))
	if o.Namespace != "" {
		if err := scope.Target(dgdr.Namespace, o.Namespace); err != nil {
			errs = append(errs, field.Forbidden(at.Child("namespace"), err.Error()))
		}
	}
	return errs
}

// partial checks what can be told of overrides before there is a Job or a graph.
func partial(o *v1alpha1.RequestOverrides, at *field.Path) field.ErrorList {
	if o == nil {
		return nil
	}
	var errs field.ErrorList
	if err := joboverride.Apply(&batchv1.JobSpec{}, o.ProfilingJob); err != nil {
		errs = append(errs, field.Invalid(at.Child("profilingJob"), field.OmitValueType{}, err.Error()))
	}
	over, err := graphoverride.Parse(o.DGD)
	if err != nil {
		return append(errs, field.Invalid(at.Child("dgd"), field.OmitValueType{}, err.Error()))
	}
	return append(errs, objectName(over.Name, at.Child("dgd", "metadata", "name"))...)
}

// GuardReserved keeps requests out of the namespaces of the system.
const GuardReserved guard.Guard = "reserved-namespaces"

// Target says why a request of one namespace may not have its graph made in
// another, whoever consents. A request that is not in the cluster yet may have no
// namespace.
func (s Scope) Target(own, target string) error {
	switch {
	case target == own:
		return nil
	case own != "" && !s.ClusterWide:
		return errors.New("this operator manages one namespace")
	case slices.Contains(s.Reserved, target) && !GuardReserved.Off():
		return errors.New("it is of the system, of the operator, or excluded from its work")
	default:
		return nil
	}
}

// RequestWarnings tells what of a request will not be as it is written.
func RequestWarnings(dgdr *v1alpha1.DynamoGraphDeploymentRequest) []string {
	var w warnings
	w.payload(dgdr)
	if o := dgdr.Spec.Overrides; o != nil {
		for _, path := range joboverride.Ignored(o.ProfilingJob) {
			w.add(field.NewPath("spec", "overrides", "profilingJob").Child(path), "has no effect: the profiling Job's account, image and command are not the request's to choose here")
		}
	}
	if beta, _ := conversion.RequestToBeta(dgdr); beta.Spec.SearchStrategy == v1beta1.SearchStrategyThorough && (beta.Spec.Backend == "" || beta.Spec.Backend == "auto") {
		w.add(field.NewPath("spec", "searchStrategy"), "with backend auto dynamo-profiler chooses the engine by estimates and measures that one alone; name it to have another measured")
	}
	var given struct {
		Engine struct {
			Backend any `json:"backend"`
		} `json:"engine"`
		Deployment struct {
			Model any `json:"model"`
		} `json:"deployment"`
	}
	if config := dgdr.Spec.ProfilingConfig.Config; config == nil || json.Unmarshal(config.Raw, &given) != nil {
		return w.sorted()
	}
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
