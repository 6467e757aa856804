package render

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/api/v1beta1"
	"github.com/dynamo-operator/dynamo-operator/internal/cli/input"
)

const betaExamples = "../../../examples/v1beta1"

// render is the output for a file, by kind and name.
func renderFile(t *testing.T, file string) map[string]input.Document {
	t.Helper()
	out, notes, err := execute(t, "", "-f", file)
	if err != nil {
		t.Fatalf("%v\n%s", err, notes)
	}
	documents, err := input.Parse("output", []byte(out))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]input.Document{}
	for _, d := range documents {
		all[d.GetKind()+"/"+d.GetName()] = d
	}
	return all
}

func TestOurKindsArePrintedInTheVersionOfTheManifest(t *testing.T) {
	files, err := filepath.Glob(betaExamples + "/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			beta := renderFile(t, file)
			alpha := renderFile(t, filepath.Join(betaExamples, "as-v1alpha1", filepath.Base(file)))
			components := 0
			for name, d := range beta {
				other, found := alpha[name]
				if !found {
					t.Errorf("of the twin no %s is made", name)
					continue
				}
				if group, _, _ := strings.Cut(d.GetAPIVersion(), "/"); group != v1alpha1.GroupName {
					if diff := cmp.Diff(other.Object, d.Object); diff != "" {
						t.Errorf("%s (-v1alpha1 +v1beta1):\n%s", name, diff)
					}
					continue
				}
				components++
				if d.GetAPIVersion() != v1beta1.SchemeGroupVersion.String() || other.GetAPIVersion() != v1alpha1.SchemeGroupVersion.String() {
					t.Errorf("%s is printed as %s, its twin as %s", name, d.GetAPIVersion(), other.GetAPIVersion())
				}
			}
			if components == 0 || len(alpha) != len(beta) {
				t.Errorf("%d objects, %d of ours, the twin has %d", len(beta), components, len(alpha))
			}
		})
	}
}

func TestAComponentOfV1Beta1IsRendered(t *testing.T) {
	out, _, err := execute(t, `{apiVersion: nvidia.com/v1beta1, kind: DynamoComponentDeployment, metadata: {name: alone}, spec: {type: worker, podTemplate: {spec: {containers: [{name: main, image: "i:1.4.1", args: [a]}, {name: beside, image: b}]}}}}`, "-f", "-")
	if err != nil {
		t.Fatal(err)
	}
	documents, err := input.Parse("output", []byte(out))
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range documents {
		if d.GetKind() != "Deployment" {
			continue
		}
		containers, _, err := unstructured.NestedSlice(d.Object, "spec", "template", "spec", "containers")
		if err != nil || len(containers) != 2 {
			t.Fatalf("containers %v, %v", containers, err)
		}
		return
	}
	t.Error("no Deployment")
}

func TestRefusalsAreInTheWordsOfTheVersion(t *testing.T) {
	const head = "apiVersion: nvidia.com/v1beta1\nkind: DynamoGraphDeployment\nmetadata: {name: chat}\nspec: "
	cases := map[string]struct{ text, says string }{
		"a rule":                          {head + `{components: [{name: w, type: worker, podTemplate: {spec: {containers: [{name: main, env: [{name: A, value: b, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]}]}}}]}`, "spec.components[w].podTemplate.spec.containers[main].env[0].valueFrom"},
		"a field of the other version":    {head + `{services: {w: {}}}`, "spec.services"},
		"a type that there is none of":    {head + `{components: [{name: w, type: main}]}`, "spec.components[0].type"},
		"a version that there is none of": {strings.Replace(head, "v1beta1", "v1", 1) + `{}`, "nvidia.com/v1beta1"},
		"a kind of one version":           {"apiVersion: nvidia.com/v1beta1\nkind: DynamoModel\nmetadata: {name: m}", ""},
	}
	for rule, c := range cases {
		t.Run(rule, func(t *testing.T) {
			_, _, err := execute(t, c.text, "-f", "-")
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v does not say %q", err, c.says)
			}
		})
	}
}
