// Package golden compares what a test got with a file beside it. Run the tests
// with -update to write the files anew, then read the diff: a moved pod template
// is an upgrade that restarts pods.
package golden

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/yaml"

	"github.com/dynamo-operator/dynamo-operator/internal/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/scheme"
)

var update = flag.Bool("update", false, "write golden files instead of comparing with them")

// Objects compares Kubernetes objects, in their order, with a file of YAML
// documents.
func Objects(t *testing.T, path string, objects []graph.Object) {
	t.Helper()
	var text bytes.Buffer
	for _, object := range objects {
		document, err := yaml.Marshal(manifest(t, object))
		if err != nil {
			t.Fatal(err)
		}
		text.WriteString("---\n")
		text.Write(document)
	}
	Text(t, path, text.String())
}

// manifest is an object as a user would write it: with its kind, without status.
func manifest(t *testing.T, object graph.Object) map[string]any {
	t.Helper()
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		t.Fatal(err)
	}
	kind, err := apiutil.GVKForObject(object, scheme.New())
	if err != nil {
		t.Fatal(err)
	}
	fields["apiVersion"], fields["kind"] = kind.ToAPIVersionAndKind()
	delete(fields, "status")
	return fields
}

// Text compares a text with a file.
func Text(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v (run the tests with -update to write it)", err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}
