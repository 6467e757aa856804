package validation

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/api/v1beta1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/conversion"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
)

// Rules are written once, on the stored version, v1alpha1. Who wrote v1beta1 is told
// where the field stands there.

// wording says where fields of v1alpha1 stand in the version that an object is read
// as. The zero value leaves everything where it is.
type wording struct {
	// components are those of a graph by name, or one without a name for a
	// component; nil for what is read as v1alpha1.
	components map[string]*v1beta1.Component
}

func wordingOf(object graph.Object) wording {
	switch o := object.(type) {
	case *v1alpha1.DynamoGraphDeployment:
		if !conversion.MeansBeta(o) {
			return wording{}
		}
		beta, _ := conversion.GraphToBeta(o)
		w := wording{components: map[string]*v1beta1.Component{}}
		for i := range beta.Spec.Components {
			w.components[beta.Spec.Components[i].Name] = &beta.Spec.Components[i]
		}
		return w
	case *v1alpha1.DynamoComponentDeployment:
		if !conversion.MeansBeta(o) {
			return wording{}
		}
		beta, _ := conversion.ComponentToBeta(o)
		return wording{components: map[string]*v1beta1.Component{"": &beta.Spec.Component}}
	default:
		return wording{}
	}
}

// errors tells violations in the words of the version; two rules that come down to
// the same there are one.
func (w wording) errors(errs field.ErrorList) field.ErrorList {
	if w.components == nil {
		return errs
	}
	var told field.ErrorList
	for _, e := range errs {
		moved := *e
		moved.Field = w.path(e.Field)
		if !slices.ContainsFunc(told, func(known *field.Error) bool { return known.Error() == moved.Error() }) {
			told = append(told, &moved)
		}
	}
	return sorted(told)
}

// texts does the same for warnings, which begin with a path.
func (w wording) texts(list []string) []string {
	if w.components == nil {
		return list
	}
	var told []string
	for _, text := range list {
		path, rest, found := strings.Cut(text, ": ")
		if found {
			text = w.path(path) + ": " + rest
		}
		told = append(told, text)
	}
	slices.Sort(told)
	return slices.Compact(told)
}

var inService = regexp.MustCompile(`^spec\.services\[([^\]]*)\](.*)$`)

func (w wording) path(path string) string {
	_, alone := w.components[""]
	found := inService.FindStringSubmatch(path)
	switch {
	case found != nil:
		below, moved := w.below(found[1], found[2])
		if !moved {
			return path // v1beta1 has no place for it
		}
		return "spec.components[" + found[1] + "]" + below
	case alone && strings.HasPrefix(path, "spec."):
		if below, moved := w.below("", strings.TrimPrefix(path, "spec")); moved {
			return "spec" + below
		}
		return path
	}
	for from, to := range graphFields {
		if path == from || strings.HasPrefix(path, from+".") || strings.HasPrefix(path, from+"[") {
			return to + strings.TrimPrefix(path, from)
		}
	}
	return path
}

var graphFields = map[string]string{
	"spec.services": "spec.components",
	"spec.envs":     "spec.env",
	"spec.topologyConstraint.topologyProfile": "spec.topologyConstraint.clusterTopologyName",
}

const mainPath = ".podTemplate.spec.containers[main]"

// serviceFields are where fields of a service stand in a component, longest first.
var serviceFields = []struct{ from, to string }{
	{".extraPodSpec.mainContainer", mainPath},
	{".extraPodSpec", ".podTemplate.spec"},
	{".extraPodMetadata", ".podTemplate.metadata"},
	{".annotations", ".podTemplate.metadata.annotations"},
	{".labels", ".podTemplate.metadata.labels"},
	{".resources.limits.gpuType", mainPath + ".resources.limits"},
	{".resources.requests.gpuType", mainPath + ".resources.requests"},
	{".resources.limits.gpu", mainPath + ".resources.limits[nvidia.com/gpu]"},
	{".resources.requests.gpu", mainPath + ".resources.requests[nvidia.com/gpu]"},
	{".resources", mainPath + ".resources"},
	{".envs", mainPath + ".env"},
	{".livenessProbe", mainPath + ".livenessProbe"},
	{".readinessProbe", mainPath + ".readinessProbe"},
	{".componentType", ".type"},
	{".subComponentType", ".type"},
	{".serviceName", ".name"},
	{".sharedMemory.size", ".sharedMemorySize"},
	{".sharedMemory", ".sharedMemorySize"},
	{".scalingAdapter.enabled", ".scalingAdapter"},
	{".gpuMemoryService", ".experimental.gpuMemoryService"},
	{".failover", ".experimental.failover"},
	{".checkpoint", ".experimental.checkpoint"},
}

// onlyAlpha are fields that v1beta1 has no place for.
var onlyAlpha = []string{".ingress", ".dynamoNamespace", ".autoscaling", ".envFromSecret"}

var (
	mountIndex     = regexp.MustCompile(`^\.volumeMounts\[(\d+)\](.*)$`)
	containerIndex = regexp.MustCompile(`^\.extraPodSpec\.containers\[(\d+)\](.*)$`)
)

// below moves the path of a field below a service; false if there is no place.
func (w wording) below(name, path string) (string, bool) {
	for _, gone := range onlyAlpha {
		if strings.HasPrefix(path, gone) {
			return "", false
		}
	}
	spec := w.components[name]
	if spec == nil {
		spec = &v1beta1.Component{}
	}
	if at := mountIndex.FindStringSubmatch(path); at != nil {
		return mountPath(spec, number(at[1]), at[2]), true
	}
	if at := containerIndex.FindStringSubmatch(path); at != nil {
		n := number(at[1])
		if main := mainContainer(spec); main >= 0 && main <= n {
			n++
		}
		return ".podTemplate.spec.containers[" + strconv.Itoa(n) + "]" + at[2], true
	}
	for _, f := range serviceFields {
		if rest, found := strings.CutPrefix(path, f.from); found && (rest == "" || rest[0] == '.' || rest[0] == '[') {
			return f.to + rest, true
		}
	}
	return path, true
}

// mountPath is where a mount stands. The first of v1alpha1 is the compilation cache,
// if there is one.
func mountPath(spec *v1beta1.Component, n int, rest string) string {
	if spec.CompilationCache != nil {
		if n == 0 {
			return ".compilationCache" + strings.NewReplacer(".name", ".pvcName", ".mountPoint", ".mountPath", ".useAsCompilationCache", "").Replace(rest)
		}
		n--
	}
	return mainPath + ".volumeMounts[" + strconv.Itoa(n) + "]" + strings.Replace(rest, ".mountPoint", ".mountPath", 1)
}

func mainContainer(spec *v1beta1.Component) int {
	if spec.PodTemplate == nil {
		return -1
	}
	for i, c := range spec.PodTemplate.Spec.Containers {
		if c.Name == v1beta1.MainContainer {
			return i
		}
	}
	return -1
}

func number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0 // the expression finds digits alone
	}
	return n
}

// asRead is a graph as the rules read it: what v1beta1 says in the annotations of a
// pod template stands in those of the service.
func asRead(dgd *v1alpha1.DynamoGraphDeployment) *v1alpha1.DynamoGraphDeployment {
	if !conversion.MeansBeta(dgd) {
		return dgd
	}
	read := *dgd
	read.Spec.Services = map[string]*v1alpha1.SharedSpec{}
	for name, s := range dgd.Spec.SortedServices() {
		read.Spec.Services[name] = serviceAsRead(s)
	}
	return &read
}

func componentAsRead(dcd *v1alpha1.DynamoComponentDeployment) *v1alpha1.DynamoComponentDeployment {
	if !conversion.MeansBeta(dcd) {
		return dcd
	}
	read := *dcd
	read.Spec.SharedSpec = *serviceAsRead(&dcd.Spec.SharedSpec)
	return &read
}

func serviceAsRead(s *v1alpha1.SharedSpec) *v1alpha1.SharedSpec {
	if s.ExtraPodMetadata == nil {
		return s
	}
	read := *s
	read.Annotations = graph.WithSwitches(s.Annotations, s.ExtraPodMetadata.Annotations)
	return &read
}
