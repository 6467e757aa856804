package blueprint

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
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
	if o.Backend == config.TRTLLM {
		return placeholder("tensorrtllm")
	}
	return placeholder(string(o.Backend))
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

// planner scales the two halves of a graph from the profile.
func planner(g *v1alpha1.DynamoGraphDeployment, c search.Candidate, o Options, backend string) *v1alpha1.SharedSpec {
	flags := map[string]string{
		"environment": "kubernetes", "backend": backend, "profile-results-dir": dataPath,
		"ttft": number64(o.Goal.TTFT), "itl": number64(o.Goal.ITL),
		"prefill-engine-num-gpu": strconv.Itoa(c.Prefill.Layout.GPUs()),
		"decode-engine-num-gpu":  strconv.Itoa(c.Decode.Layout.GPUs()),
	}
	// The planner's own budget is 8 GPUs; a graph that starts with more would be
	// scaled down at once.
	const plannersOwn = 8
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
	image := o.image()
	for _, s := range g.Spec.SortedServices() {
		if s.ComponentType == v1alpha1.ComponentTypeFrontend && s.ExtraPodSpec != nil && s.ExtraPodSpec.MainContainer != nil {
			image = s.ExtraPodSpec.MainContainer.Image
		}
	}
	s := &v1alpha1.SharedSpec{
		ComponentType: v1alpha1.ComponentTypePlanner, Replicas: new(int32(1)),
		ExtraPodSpec: &v1alpha1.ExtraPodSpec{MainContainer: &corev1.Container{
			Image: image, WorkingDir: "/workspace/components/src/dynamo/planner",
			Command: []string{"python3", "-m", "dynamo.planner.planner_sla"}, Args: args,
		}},
	}
	mountData(s, o)
	return s
}

// mountData gives a service the profile.
func mountData(s *v1alpha1.SharedSpec, o Options) {
	c := mainContainer(s)
	c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: dataVolume, MountPath: dataPath, ReadOnly: true})
	if s.ExtraPodSpec.PodSpec == nil {
		s.ExtraPodSpec.PodSpec = &corev1.PodSpec{}
	}
	s.ExtraPodSpec.Volumes = append(s.ExtraPodSpec.Volumes, corev1.Volume{Name: dataVolume, VolumeSource: corev1.VolumeSource{
		ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: o.ProfileData}},
	}})
}

// mockBlock is the mock engine's block size.
const mockBlock = 64

// Mocker is the graph with mock engines in place of real ones. They take their
// times from the profile, so it needs no GPU.
func Mocker(c search.Candidate, o Options) *v1alpha1.DynamoGraphDeployment {
	image := o.Image
	if image == "" {
		image = placeholder("mocker")
	}
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
		return g
	}
	g.Spec.Services["prefill"] = worker(*c.Prefill, v1alpha1.SubComponentTypePrefill)
	g.Spec.Services["decode"] = worker(c.Decode, v1alpha1.SubComponentTypeDecode)
	if o.ProfileData != "" && o.Planner["enabled"] != "false" {
		o.Image = image
		g.Spec.Services["Planner"] = planner(g, c, o, "mocker")
	}
	return g
}

func number64(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }
