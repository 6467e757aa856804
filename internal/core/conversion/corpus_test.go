package conversion_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/api/v1beta1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/conversion"
	"github.com/dynamo-operator/dynamo-operator/internal/core/crdschema"
)

// published are the documents of our API in a corpus that its own schema allows,
// defaulted as a server would.
func published(t testing.TB, dir string) (documents [][]byte, left []string) {
	t.Helper()
	for _, file := range files(t, dir, ".yaml") {
		text, err := os.ReadFile(file)
		must(t, err)
		for reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text))); ; {
			raw, err := reader.Read()
			if errors.Is(err, io.EOF) {
				break
			}
			must(t, err)
			var object map[string]any
			if yaml.Unmarshal(raw, &object) != nil || object == nil {
				left = append(left, file)
				continue
			}
			kind, _ := object["kind"].(string)
			version, _ := object["apiVersion"].(string)
			if !conversion.Convertible(kind) {
				continue
			}
			schema, known, err := crdschema.OfVersion(kind, version[len("nvidia.com/"):])
			must(t, err)
			if !known || len(schema.Check(object)) > 0 {
				left = append(left, file)
				continue
			}
			schema.Default(object)
			if spec, ok := object["spec"].(map[string]any); ok && kind == "DynamoGraphDeploymentRequest" && version == "nvidia.com/v1beta1" && spec["image"] == nil {
				spec["image"] = "profiler" // admission fills it in
			}
			encoded, err := json.Marshal(object)
			must(t, err)
			documents = append(documents, encoded)
		}
	}
	return documents, left
}

// TestPublishedManifestsComeBack: every manifest that the original published in
// 2026 goes to the other version and back without a change.
func TestPublishedManifestsComeBack(t *testing.T) {
	documents, left := published(t, shared(t, "corpus-2026"))
	for _, document := range documents {
		var head struct{ APIVersion, Kind string }
		must(t, json.Unmarshal(document, &head))
		other := "nvidia.com/v1beta1"
		if head.APIVersion == other {
			other = "nvidia.com/v1alpha1"
		}
		there, err := conversion.Convert(document, other)
		must(t, err)
		back, err := conversion.Convert(there.JSON, head.APIVersion)
		must(t, err)
		if diff := cmp.Diff(lean(t, document), lean(t, back.JSON)); diff != "" {
			t.Errorf("%s %s (-want +got):\n%s", head.APIVersion, head.Kind, diff)
		}
		// What the other version is told, its schema allows.
		var object map[string]any
		must(t, json.Unmarshal(there.JSON, &object))
		schema, _, err := crdschema.OfVersion(head.Kind, other[len("nvidia.com/"):])
		must(t, err)
		if problems := schema.Check(object); len(problems) > 0 {
			t.Errorf("%s %s is not allowed as %s: %v", head.APIVersion, head.Kind, other, problems)
		}
		if len(there.Ignored)+len(back.Ignored) > 0 {
			t.Errorf("%s: ignored %v, %v", head.Kind, there.Ignored, back.Ignored)
		}
	}
	t.Logf("%d documents; left out because their own schema does not allow them: %d %v", len(documents), len(left), left)
}

// lean drops what an empty value says nothing with.
func lean(t *testing.T, document []byte) any {
	t.Helper()
	var value any
	must(t, json.Unmarshal(document, &value))
	return prune(value)
}

func prune(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for key, below := range v {
			below = prune(below)
			switch b := below.(type) {
			case nil:
				delete(v, key)
				continue
			case []any:
				if len(b) == 0 {
					delete(v, key)
					continue
				}
			case map[string]any:
				if len(b) == 0 && (key == "resources" || key == "metadata" || key == "status" || key == "labels" || key == "annotations") {
					delete(v, key)
					continue
				}
			case string:
				if b == "" {
					delete(v, key)
					continue
				}
			case bool:
				if !b && key != "autoApply" {
					delete(v, key)
					continue
				}
			}
			v[key] = below
		}
	case []any:
		for i := range v {
			v[i] = prune(v[i])
		}
	}
	return value
}

// BenchmarkLargest converts the largest published graph there and back.
func BenchmarkLargest(b *testing.B) {
	documents, _ := published(b, shared(b, "corpus-2026"))
	var largest []byte
	for _, document := range documents {
		if len(document) > len(largest) {
			largest = document
		}
	}
	var head struct{ APIVersion string }
	must(b, json.Unmarshal(largest, &head))
	other := "nvidia.com/v1beta1"
	if head.APIVersion == other {
		other = "nvidia.com/v1alpha1"
	}
	there, err := conversion.Convert(largest, other)
	must(b, err)
	benchmark(b, head.APIVersion, largest, there.JSON)
}

func benchmark(b *testing.B, version string, here, there []byte) {
	b.Helper()
	alpha, beta := here, there
	if version == "nvidia.com/v1beta1" {
		alpha, beta = there, here
	}
	var a v1alpha1.DynamoGraphDeployment
	var z v1beta1.DynamoGraphDeployment
	must(b, json.Unmarshal(alpha, &a))
	must(b, json.Unmarshal(beta, &z))
	// The time on a processor stays the same on a machine with other work.
	run := func(what string, convert func()) {
		b.Run(what, func(b *testing.B) {
			start, n := processorTime(b), 0
			for b.Loop() {
				convert()
				n++
			}
			b.ReportMetric(float64(processorTime(b)-start)/float64(n), "cpu-ns/op")
		})
	}
	inJSON := func(from []byte, to string) func() {
		return func() {
			if _, err := conversion.Convert(from, to); err != nil {
				b.Fatal(err)
			}
		}
	}
	run("to v1beta1", func() { conversion.GraphToBeta(&a) })
	run("to v1alpha1", func() { conversion.GraphToAlpha(&z) })
	run("to v1beta1 as JSON", inJSON(alpha, "nvidia.com/v1beta1"))
	run("to v1alpha1 as JSON", inJSON(beta, "nvidia.com/v1alpha1"))
}

// processorTime is the time that processors have worked for this process.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var used syscall.Rusage
	must(b, syscall.Getrusage(syscall.RUSAGE_SELF, &used))
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
