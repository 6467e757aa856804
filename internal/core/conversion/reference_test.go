package conversion_test

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/yaml"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/api/v1beta1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/conversion"
)

// shared is where the recordings and published manifests are: beside the
// repository, or beside the worktree of it.
func shared(t testing.TB, name string) string {
	t.Helper()
	for dir, err := filepath.Abs("."); err == nil && dir != "/"; dir = filepath.Dir(dir) {
		path := filepath.Join(dir, "shared", name)
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	t.Skipf("shared/%s is not here", name)
	return ""
}

// objects reads the objects of one kind from a recording, by name.
func objects[T any](t *testing.T, file, kind string) map[string]*T {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var raw []json.RawMessage
	if err := json.Unmarshal(text, &raw); err != nil {
		t.Fatal(err)
	}
	all := map[string]*T{}
	for _, r := range raw {
		var head struct {
			Kind     string
			Metadata struct{ Name string }
		}
		if err := json.Unmarshal(r, &head); err != nil {
			t.Fatal(err)
		}
		if head.Kind != kind {
			continue
		}
		object := new(T)
		if err := json.Unmarshal(r, object); err != nil {
			t.Fatal(err)
		}
		all[head.Metadata.Name] = object
	}
	return all
}

func files(t testing.TB, dir, extension string) []string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && filepath.Ext(path) == extension {
			all = append(all, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestOriginalsAlphaReadsBackAsItsBeta holds our conversion against the
// original's: what 1.4.1 shows as v1alpha1, payloads included, becomes what it
// shows as v1beta1. One difference is meant: a type word outside v1beta1's enum
// is no type there.
func TestOriginalsAlphaReadsBackAsItsBeta(t *testing.T) {
	dir := shared(t, "reference-1.4")
	count := 0
	for _, file := range files(t, filepath.Join(dir, "alpha-views"), ".json") {
		name, err := filepath.Rel(filepath.Join(dir, "alpha-views"), file)
		must(t, err)
		twin := filepath.Join(dir, "component", name)
		if _, err := os.Stat(twin); err != nil {
			t.Errorf("%s has no recording as v1beta1", name)
			continue
		}
		t.Run(strings.TrimSuffix(name, ".json"), func(t *testing.T) {
			want := objects[v1beta1.DynamoGraphDeployment](t, twin, "DynamoGraphDeployment")
			for name, alpha := range objects[v1alpha1.DynamoGraphDeployment](t, file, "DynamoGraphDeployment") {
				count++
				got, ignored := conversion.GraphToBeta(alpha)
				compareSpec(t, name, withoutOwnWords(want[name]).Spec, got.Spec, ignored)
				if misfit, found := conversion.Unfit(alpha); found {
					t.Errorf("%s: users would be warned of %+v", name, misfit)
				}
				back, ignored := conversion.GraphToAlpha(got)
				compareSpec(t, name+" and back", alpha.Spec, back.Spec, ignored)
				// The other way: its v1beta1, with its payload, as v1alpha1.
				fromBeta, ignored := conversion.GraphToAlpha(want[name])
				compareSpec(t, name+" from v1beta1", spelled(alpha).Spec, spelled(fromBeta).Spec, ignored)
			}
			components := objects[v1beta1.DynamoComponentDeployment](t, twin, "DynamoComponentDeployment")
			for name, alpha := range objects[v1alpha1.DynamoComponentDeployment](t, file, "DynamoComponentDeployment") {
				count++
				got, ignored := conversion.ComponentToBeta(alpha)
				compareSpec(t, name, components[name].Spec, got.Spec, ignored)
				back, ignored := conversion.ComponentToAlpha(got)
				compareSpec(t, name+" and back", alpha.Spec, back.Spec, ignored)
			}
			adapters := objects[v1beta1.DynamoGraphDeploymentScalingAdapter](t, twin, "DynamoGraphDeploymentScalingAdapter")
			for name, alpha := range objects[v1alpha1.DynamoGraphDeploymentScalingAdapter](t, file, "DynamoGraphDeploymentScalingAdapter") {
				count++
				compareSpec(t, name, adapters[name].Spec, conversion.AdapterToBeta(alpha).Spec, nil)
			}
		})
	}
	t.Logf("%d objects compared", count)
}

func compareSpec(t *testing.T, name string, want, got any, ignored []string) {
	t.Helper()
	if len(ignored) > 0 {
		t.Errorf("%s: of the payload did not count: %v", name, ignored)
	}
	if !equality.Semantic.DeepEqual(want, got) {
		t.Errorf("%s (-want +got):\n%s", name, cmp.Diff(asYAML(t, want), asYAML(t, got)))
	}
}

func asYAML(t *testing.T, object any) string {
	t.Helper()
	text, err := yaml.Marshal(object)
	must(t, err)
	return string(text)
}

// withoutOwnWords drops types that v1beta1 has no word for.
func withoutOwnWords(in *v1beta1.DynamoGraphDeployment) *v1beta1.DynamoGraphDeployment {
	in = in.DeepCopy()
	for i := range in.Spec.Components {
		switch c := &in.Spec.Components[i]; c.Type {
		case "frontend", "worker", "prefill", "decode", "planner", "epp":
		default:
			c.Type = ""
		}
	}
	return in
}

// spelled drops what the original adds to v1alpha1 without meaning: a size of
// shared memory that is disabled.
func spelled(in *v1alpha1.DynamoGraphDeployment) *v1alpha1.DynamoGraphDeployment {
	in = in.DeepCopy()
	for _, s := range in.Spec.Services {
		if s != nil && s.SharedMemory != nil && s.SharedMemory.Disabled {
			s.SharedMemory.Size = nil
		}
	}
	return in
}
