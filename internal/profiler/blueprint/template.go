package blueprint

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/version"
	"github.com/dynamo-operator/dynamo-operator/internal/profiler/config"
	"github.com/dynamo-operator/dynamo-operator/internal/profiler/search"
)

func typeMeta() metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: v1alpha1.KindDynamoGraphDeployment}
}

// placeholder stands for an image that the request did not name.
func placeholder(backend string) string { return "my-registry/" + backend + "-runtime:my-tag" }

func (o Options) image() string {
	if o.Image != "" {
		return o.Image
	}
	if o.Request != nil {
		if image := EngineImage(o.Request.Image, o.Backend); image != "" {
			return image
		}
	}
	if o.Backend == config.TRTLLM {
		return placeholder("tensorrtllm")
	}
	return placeholder(string(o.Backend))
}

// released are programs that are published beside the runtimes of engines, under
// the same tag.
var released = []string{"dynamo-planner", "dynamo-frontend"}

// EngineImage is the runtime of an engine that is published beside the image that a
// request of v1beta1 names; empty if that tells nothing.
func EngineImage(image string, engine config.Backend) string {
	at := strings.LastIndexByte(image, '/') + 1
	name, tag, tagged := strings.Cut(image[at:], ":")
	if !tagged || !slices.Contains(released, name) {
		return ""
	}
	runtime := string(engine)
	if engine == config.TRTLLM {
		runtime = "tensorrtllm"
	}
	return image[:at] + runtime + "-runtime:" + tag
}

// mockImage is what runs mock engines: the image that the request names, where it
// has them, or that of ours beside our profiler.
func (o Options) mockImage() string {
	switch {
	case o.Image != "":
		return o.Image
	case o.Request != nil && EngineImage(o.Request.Image, config.VLLM) != "":
		return o.Request.Image
	case o.Request != nil:
		if image, found := version.Beside(o.Request.Image, version.Mocker); found {
			return image
		}
	}
	return placeholder("mocker")
}

// template is a graph for an engine, without layouts.
func template(o Options, mode config.Mode) *v1alpha1.DynamoGraphDeployment {
	g := &v1alpha1.DynamoGraphDeployment{TypeMeta: typeMeta()}
	g.Spec.BackendFramework = v1alpha1.BackendFramework(o.Backend)
	worker := func(role string) *v1alpha1.SharedSpec {
		c := &corev1.Container{Image: o.image(), Command: []string{"python3", "-m", "dynamo." + string(o.Backend)}}
		if o.Backend == config.SGLang {
			c.Args = []string{"--page-size", "16", "--trust-remote-code", "--skip-tokenizer-init"}
		}
		return &v1alpha1.SharedSpec{
			ComponentType: v1alpha1.ComponentTypeWorker, SubComponentType: role,
			ExtraPodSpec: &v1alpha1.ExtraPodSpec{MainContainer: c}, Envs: token(),
		}
	}
	g.Spec.Services = map[string]*v1alpha1.SharedSpec{"Frontend": frontend(o.image())}
	if mode == config.Aggregated {
		g.Spec.Services["worker"] = worker("")
		return g
	}
	g.Spec.Services["prefill"] = worker(v1alpha1.SubComponentTypePrefill)
	g.Spec.Services["decode"] = worker(v1alpha1.SubComponentTypeDecode)
	return g
}

func frontend(image string) *v1alpha1.SharedSpec {
	return &v1alpha1.SharedSpec{
		ComponentType: v1alpha1.ComponentTypeFrontend, Replicas: new(int32(1)),
		ExtraPodSpec: &v1alpha1.ExtraPodSpec{MainContainer: &corev1.Container{Image: image}},
	}
}

// token is the key to gated models, where there is one.
func token() []corev1.EnvVar {
	return []corev1.EnvVar{{Name: "HF_TOKEN", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
		LocalObjectReference: corev1.LocalObjectReference{Name: "hf-token-secret"}, Key: "HF_TOKEN", Optional: new(true),
	}}}}
}

// addPlanner adds a planner to a graph that is to have one: of the seed's contract
// where there are two halves to scale and nobody said no, of 1.x where one is asked
// for.
func (o Options) addPlanner(g *v1alpha1.DynamoGraphDeployment, c search.Candidate, backend string) {
	switch {
	case o.Request != nil && o.Request.Planner != nil:
		g.Spec.Services["Planner"] = configuredPlanner(g, c, o, backend)
	case o.Request == nil && c.Prefill != nil && o.ProfileData != "" && o.Planner["enabled"] != "false":
		g.Spec.Services["Planner"] = planner(g, c, o, backend)
	}
}

// configuredPlanner is a planner of 1.x, which takes one document: what was found,
// and over it what the request says, whatever it is.
func configuredPlanner(g *v1alpha1.DynamoGraphDeployment, c search.Candidate, o Options, backend string) *v1alpha1.SharedSpec {
	settings := map[string]any{"environment": "kubernetes", "backend": backend, "mode": "agg", "decode_engine_num_gpu": c.Decode.Layout.GPUs()}
	if c.Prefill != nil {
		settings["mode"], settings["prefill_engine_num_gpu"] = "disagg", c.Prefill.Layout.GPUs()
	}
	if o.ProfileData != "" {
		settings["profile_results_dir"] = dataPath
	}
	for name, target := range map[string]float64{"ttft": o.Goal.TTFT, "itl": o.Goal.ITL} {
		if _, given := o.Request.Planner[name+"_ms"]; !given {
			settings[name] = target
		}
	}
	if budget := max(o.Budget, c.GPUs); budget > plannersOwn {
		settings["max_gpu_budget"] = budget
	}
	maps.Copy(settings, o.Request.Planner)
	delete(settings, "enabled")
	if backend == mockBackend {
		settings["backend"] = backend // the engines are not those that were asked about
	}
	text, err := json.Marshal(settings)
	if err != nil {
		panic(err) // it was read from JSON
	}
	image := plannerImage(g, o)
	if EngineImage(o.Request.Image, o.Backend) != "" {
		image = o.Request.Image
	}
	s := &v1alpha1.SharedSpec{
		ComponentType: v1alpha1.ComponentTypePlanner, Replicas: new(int32(1)),
		ExtraPodSpec: &v1alpha1.ExtraPodSpec{MainContainer: &corev1.Container{
			Image: image, Command: []string{"python3", "-m", "dynamo.planner"}, Args: []string{"--config", string(text)},
		}},
	}
	if o.ProfileData != "" {
		mountData(s, o)
	}
	return s
}

// plannersOwn is a planner's budget of GPUs unless it is told another; a graph that
// starts with more would be scaled down at once.
const plannersOwn = 8

// mockBackend is how a planner knows mock engines.
const mockBackend = "mocker"

// plannerImage is that of the frontend.
func plannerImage(g *v1alpha1.DynamoGraphDeployment, o Options) string {
	image := o.image()
	for _, s := range g.Spec.SortedServices() {
		if s.ComponentType == v1alpha1.ComponentTypeFrontend && s.ExtraPodSpec != nil && s.ExtraPodSpec.MainContainer != nil {
			image = s.ExtraPodSpec.MainContainer.Image
		}
	}
	return image
}

// planner scales the two halves of a graph from the profile.
func planner(g *v1alpha1.DynamoGraphDeployment, c search.Candidate, o Options, backend string) *v1alpha1.SharedSpec {
	flags := map[string]string{
		"environment": "kubernetes", "backend": backend, "profile-results-dir": dataPath,
		"ttft": number64(o.Goal.TTFT), "itl": number64(o.Goal.ITL),
		"prefill-engine-num-gpu": strconv.Itoa(c.Prefill.Layout.GPUs()),
		"decode-engine-num-gpu":  strconv.Itoa(c.Decode.Layout.GPUs()),
	}
	if budget := max(o.Budget, c.GPUs); o.Budget > 0 || budget > plannersOwn {
		flags["max-gpu-budget"] = strconv.Itoa(budget)
	}
	maps.Copy(flags, o.Planner)
	delete(flags, "enabled")
	delete(flags, "namespace")
	var args []string
	for _, name := range slices.Sorted(maps.Keys(flags)) {
		args = append(args, fmt.Sprintf("--%s=%s", name, flags[name]))
	}
	s := &v1alpha1.SharedSpec{
		ComponentType: v1alpha1.ComponentTypePlanner, Replicas: new(int32(1)),
		ExtraPodSpec: &v1alpha1.ExtraPodSpec{MainContainer: &corev1.Container{
			Image: plannerImage(g, o), WorkingDir: "/workspace/components/src/dynamo/planner",
			Command: []string{"python3", "-m", "dynamo.planner.planner_sla"}, Args: args,
		}},
	}
	mountData(s, o)
	return s
}

// mountData gives a service the profile.
func mountData(s *v1alpha1.SharedSpec, o Options) {
	mountVolume(s, corev1.VolumeMount{Name: dataVolume, MountPath: dataPath, ReadOnly: true}, corev1.VolumeSource{
		ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: o.ProfileData}},
	})
}

// mountVolume gives a service a volume of its pods.
func mountVolume(s *v1alpha1.SharedSpec, mount corev1.VolumeMount, source corev1.VolumeSource) {
	c := mainContainer(s)
	c.VolumeMounts = append(c.VolumeMounts, mount)
	if s.ExtraPodSpec.PodSpec == nil {
		s.ExtraPodSpec.PodSpec = &corev1.PodSpec{}
	}
	s.ExtraPodSpec.Volumes = append(s.ExtraPodSpec.Volumes, corev1.Volume{Name: mount.Name, VolumeSource: source})
}

// mockBlock is the mock engine's block size.
const mockBlock = 64

// Mocker is the graph with mock engines in place of real ones. They take their
// times from the profile, so it needs no GPU.
func Mocker(c search.Candidate, o Options) *v1alpha1.DynamoGraphDeployment {
	image := o.mockImage()
	g := &v1alpha1.DynamoGraphDeployment{TypeMeta: typeMeta(), ObjectMeta: metav1.ObjectMeta{Name: o.Name}}
	g.Spec.Services = map[string]*v1alpha1.SharedSpec{"Frontend": frontend(image)}
	worker := func(w search.Worker, role string) *v1alpha1.SharedSpec {
		args := []string{"--model-path", o.Model, "--model-name", o.Model, "--speedup-ratio", "1.0"}
		if o.ProfileData != "" {
			args = append(args, "--planner-profile-data", dataPath)
		}
		ranks := w.Layout.Ranks()
		args = append(args, "--num-gpu-blocks-override", strconv.Itoa(max(1, w.CacheTokens/ranks/mockBlock)), "--block-size", strconv.Itoa(mockBlock))
		if ranks > 1 {
			args = append(args, "--data-parallel-size", strconv.Itoa(ranks))
		}
		if role != "" {
			args = append(args, "--is-"+role+"-worker")
		}
		s := &v1alpha1.SharedSpec{
			ComponentType: v1alpha1.ComponentTypeWorker, SubComponentType: role, Replicas: new(int32(w.Replicas)),
			ExtraPodSpec: &v1alpha1.ExtraPodSpec{MainContainer: &corev1.Container{
				Image: image, Command: []string{"python3", "-m", "dynamo.mocker"}, Args: args,
			}},
		}
		if o.ProfileData != "" {
			mountData(s, o)
		}
		return s
	}
	if c.Prefill == nil {
		g.Spec.Services["worker"] = worker(c.Decode, "")
	} else {
		g.Spec.Services["prefill"] = worker(*c.Prefill, v1alpha1.SubComponentTypePrefill)
		g.Spec.Services["decode"] = worker(c.Decode, v1alpha1.SubComponentTypeDecode)
	}
	o.Image = image
	o.addPlanner(g, c, mockBackend)
	return g
}

func number64(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }
