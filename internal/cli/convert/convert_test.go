package convert

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dynamo-operator/dynamo-operator/internal/cli/output"
)

const graph = `apiVersion: nvidia.com/v1alpha1
kind: DynamoGraphDeployment
metadata: {name: chat}
spec:
  pvcs: [{name: cache}]
  services:
    Frontend:
      componentType: frontend
      ingress: {enabled: true, host: chat}
    decode:
      componentType: worker
      subComponentType: decode
      resources: {limits: {gpu: "1"}}
`

// run converts a text and returns what was printed and what was noted.
func run(t *testing.T, text, to string, format output.Format) (printed, noted string, err error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "graph.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, notes bytes.Buffer
	err = options{files: []string{file}, to: to, output: format}.run(nil, &out, &notes)
	return out.String(), notes.String(), err
}

func TestConvertTellsWhatItKept(t *testing.T) {
	printed, noted, err := run(t, graph, "v1beta1", "yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"apiVersion: nvidia.com/v1beta1", "type: decode", "nvidia.com/gpu: \"1\"", "nvidia.com/dgd-spec"} {
		if !strings.Contains(printed, want) {
			t.Errorf("%q is not in:\n%s", want, printed)
		}
	}
	for _, want := range []string{"spec.pvcs", "spec.services[Frontend].ingress"} {
		if !strings.Contains(noted, "v1beta1 cannot say it: "+want+"\n") {
			t.Errorf("%q is not noted in:\n%s", want, noted)
		}
	}
}

func TestConvertThereAndBackIsTheSame(t *testing.T) {
	there, _, err := run(t, graph, "v1beta1", "yaml")
	if err != nil {
		t.Fatal(err)
	}
	back, noted, err := run(t, there, "v1alpha1", "json")
	if err != nil {
		t.Fatal(err)
	}
	want, _, err := run(t, graph, "v1alpha1", "json")
	if err != nil {
		t.Fatal(err)
	}
	if back != want {
		t.Errorf("got:\n%s\nwant:\n%s", back, want)
	}
	if strings.Contains(noted, "kept") {
		t.Errorf("nothing is to be kept on the way back: %s", noted)
	}
}

func TestConvertRefuses(t *testing.T) {
	cases := map[string]struct{ text, to, problem string }{
		"an unknown field":   {strings.Replace(graph, "pvcs", "pvc", 1), "v1beta1", "spec.pvc"},
		"an unknown version": {strings.Replace(graph, "v1alpha1", "v1", 1), "v1beta1", "v1alpha1 or v1beta1"},
		"an unknown target":  {graph, "v2", "v1alpha1 or v1beta1"},
		"a file of nothing":  {"# to come\n", "v1beta1", "no object in "},
	}
	for rule, c := range cases {
		t.Run(rule, func(t *testing.T) {
			printed, _, err := run(t, c.text, c.to, "yaml")
			if err == nil || !strings.Contains(err.Error(), c.problem) {
				t.Errorf("error %v does not say %s", err, c.problem)
			}
			if printed != "" {
				t.Errorf("printed:\n%s", printed)
			}
		})
	}
}

func TestConvertLeavesOthersAlone(t *testing.T) {
	text := "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n---\napiVersion: nvidia.com/v1alpha1\nkind: DynamoModel\nmetadata:\n  name: b\n"
	printed, noted, err := run(t, text, "v1beta1", "yaml")
	if err != nil {
		t.Fatal(err)
	}
	if printed != "---\n"+text {
		t.Errorf("printed:\n%s", printed)
	}
	if strings.Count(noted, "printed as it is") != 2 {
		t.Errorf("noted:\n%s", noted)
	}
}
