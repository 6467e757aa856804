package installation

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/dynamo-operator/dynamo-operator/internal/core/version"
)

// installed are the images that an installation would run.
func installed(t *testing.T, i Images) []string {
	t.Helper()
	objects, err := Operator()
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, object := range objects {
		if err := i.set(object); err != nil {
			t.Fatal(err)
		}
		containers, _, err := unstructured.NestedSlice(object.Object, "spec", "template", "spec", "containers")
		if err != nil {
			t.Fatal(err)
		}
		for _, container := range containers {
			all = append(all, container.(map[string]any)["image"].(string))
		}
		text, _, err := unstructured.NestedString(object.Object, "data", configFile)
		if err != nil {
			t.Fatal(err)
		}
		var configuration struct{ Profiler struct{ Image, Role string } }
		if err := yaml.Unmarshal([]byte(text), &configuration); err != nil {
			t.Fatal(err)
		}
		if p := configuration.Profiler; p.Image != "" {
			all = append(all, p.Image)
			if p.Role == "" {
				t.Error("the rest of the configuration is lost")
			}
		}
	}
	return all
}

func TestEveryImageOfAnInstallation(t *testing.T) {
	for name, c := range map[string]struct {
		registry, image string
		want            []string
	}{
		"those of this build":                          {"", "", []string{"dynamo-profiler:dev", "dynamo-operator:dev"}},
		"those of this build in a registry":            {"registry.example/team", "", []string{"registry.example/team/dynamo-profiler:dev", "registry.example/team/dynamo-operator:dev"}},
		"the profiler beside the operator":             {"", "registry.example/team/dynamo-operator:v2", []string{"registry.example/team/dynamo-profiler:v2", "registry.example/team/dynamo-operator:v2"}},
		"an operator of another name stands by itself": {"", "registry.example/op:v2", []string{"dynamo-profiler:dev", "registry.example/op:v2"}},
	} {
		i, err := ImagesFrom(c.registry, c.image)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, installed(t, i)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	if _, err := ImagesFrom("registry.example", "dynamo-operator:v2"); err == nil {
		t.Error("a registry and an image were both taken")
	}
}

// TestOneVersionEverywhere because a chart, Kustomize and a program of one checkout
// install the same images, and nothing else says which.
func TestOneVersionEverywhere(t *testing.T) {
	var chart struct{ AppVersion string }
	text, err := os.ReadFile("../../../charts/platform/Chart.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, &chart); err != nil {
		t.Fatal(err)
	}
	if chart.AppVersion != version.Short() {
		t.Errorf("appVersion is %s, a program that nobody gave a version says %s", chart.AppVersion, version.Short())
	}
	for _, path := range []string{"manager/manager.yaml", "cert-manager/configuration.yaml", "namespaced/configuration.yaml"} {
		text, err := os.ReadFile("../../../config/" + path)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), version.Profiler+":") {
			t.Errorf("config/%s names the profiler's image; the operator knows its own", path)
		}
		for line := range strings.Lines(string(text)) {
			if _, image, found := strings.Cut(line, "image: "); found && strings.TrimSpace(image) != version.Image(version.Operator) {
				t.Errorf("config/%s: image %s, want %s", path, image, version.Image(version.Operator))
			}
		}
	}
}
