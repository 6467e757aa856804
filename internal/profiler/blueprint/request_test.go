package blueprint

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/dynamo-operator/dynamo-operator/api/v1beta1"
	"github.com/dynamo-operator/dynamo-operator/internal/profiler/config"
	"github.com/dynamo-operator/dynamo-operator/internal/profiler/search"
)

// pair is a prefill and a decode engine of one GPU each.
func pair() search.Candidate {
	one := search.Worker{Layout: tp(1), Replicas: 1, CacheTokens: 6400}
	prefill := one
	return search.Candidate{Mode: config.Disaggregated, Prefill: &prefill, Decode: one, GPUs: 2}
}

func betaOf(t *testing.T, o Options, mock bool) map[string]v1beta1.Component {
	t.Helper()
	g := Mocker(pair(), o)
	if !mock {
		var err error
		if g, err = Graph(pair(), o); err != nil {
			t.Fatal(err)
		}
	}
	text, err := o.YAML(g)
	if err != nil {
		t.Fatal(err)
	}
	var beta v1beta1.DynamoGraphDeployment
	if err := yaml.UnmarshalStrict([]byte(text), &beta); err != nil {
		t.Fatal(err)
	}
	if beta.APIVersion != v1beta1.SchemeGroupVersion.String() || len(beta.Annotations) > 0 {
		t.Errorf("%s with annotations %v", beta.APIVersion, beta.Annotations)
	}
	all := map[string]v1beta1.Component{}
	for _, c := range beta.Spec.Components {
		all[c.Name] = c
	}
	return all
}

// TestGraphsOfARequestOfBeta are v1beta1, of the release that the request names, and
// have a planner only if it asks.
func TestGraphsOfARequestOfBeta(t *testing.T) {
	o := Options{
		Name: "g", Backend: config.VLLM, Model: "m", PerNode: 8, ProfileData: "g-profile-data", Goal: config.SLA{TTFT: 200, ITL: 10},
		Cache: config.ModelCache{PVCName: "models", PVCPath: "m", MountPath: "/models"}, Request: &config.Request{Image: "r/dynamo-planner:1.4.0"},
	}
	plain := betaOf(t, o, false)
	if _, found := plain["Planner"]; found {
		t.Error("nobody asked for a planner")
	}
	decode := plain["decode"]
	main := decode.PodTemplate.Spec.Containers[0]
	if main.Image != "r/vllm-runtime:1.4.0" || decode.Type != "decode" {
		t.Errorf("a %s of %s", decode.Type, main.Image)
	}
	if v := decode.PodTemplate.Spec.Volumes; len(v) != 1 || v[0].PersistentVolumeClaim.ClaimName != "models" || main.VolumeMounts[0].MountPath != "/models" {
		t.Errorf("the model is not mounted: %+v", v)
	}

	o.Request.Planner = map[string]any{"enabled": true, "ttft": 5.0, "backend": "vllm", "nested": map[string]any{"x": 1.0}}
	for mock, backend := range map[bool]string{false: "vllm", true: "mocker"} {
		planner := betaOf(t, o, mock)["Planner"].PodTemplate.Spec.Containers[0]
		var told map[string]any
		if err := json.Unmarshal([]byte(planner.Args[1]), &told); err != nil {
			t.Fatal(err)
		}
		want := map[string]any{
			"environment": "kubernetes", "backend": backend, "mode": "disagg", "profile_results_dir": "/workspace/profiling_results", "ttft": 5.0, "itl": 10.0,
			"prefill_engine_num_gpu": 1.0, "decode_engine_num_gpu": 1.0, "nested": map[string]any{"x": 1.0},
		}
		if diff := cmp.Diff(want, told); diff != "" || planner.Image != "r/dynamo-planner:1.4.0" {
			t.Errorf("mock %v: the planner of %s is told (-want +got):\n%s", mock, planner.Image, diff)
		}
	}
	for image, want := range map[string]string{
		"r/dynamo-profiler:v2": "r/dynamo-mocker:v2", "r/dynamo-planner:1.4.0": "r/dynamo-planner:1.4.0", "": "my-registry/mocker-runtime:my-tag",
	} {
		o.Request = &config.Request{Image: image}
		if got := betaOf(t, o, true)["decode"].PodTemplate.Spec.Containers[0].Image; got != want {
			t.Errorf("beside %q mock engines are %s, not %s", image, got, want)
		}
	}
}
