package conversion

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/api/v1beta1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/conversion"
	"github.com/dynamo-operator/dynamo-operator/internal/core/crdschema"
	"github.com/dynamo-operator/dynamo-operator/internal/testkit/summary"
)

type document struct {
	file string
	*unstructured.Unstructured
}

// placeholder marks a template: its values are filled in before it is applied.
const placeholder = "${HW_"

// published reads the documents of both versions that can stand alone. One whose
// values are placeholders is left out.
func published(t *testing.T) []document {
	t.Helper()
	dir := ""
	for at, err := filepath.Abs("."); err == nil && at != "/"; at = filepath.Dir(at) {
		if path := filepath.Join(at, "shared", "corpus-2026"); exists(path) {
			dir = path
			break
		}
	}
	if dir == "" {
		t.Skip("shared/corpus-2026 is not here")
	}
	index, err := os.ReadFile(filepath.Join(dir, "index.csv"))
	if err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(bytes.NewReader(index)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var all []document
	for _, row := range rows {
		if category := row[6]; category != "standalone" && category != "test-data" {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, row[0]))
		if errors.Is(err, os.ErrNotExist) {
			continue // held back
		}
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), placeholder) {
			t.Logf("left out, its values are placeholders: %s", row[0])
			continue
		}
		for reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text))); ; {
			raw, err := reader.Read()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			object := &unstructured.Unstructured{}
			if err := yaml.Unmarshal(raw, &object.Object); err != nil {
				t.Fatalf("%s: %v", row[0], err)
			}
			if conversion.Convertible(object.GetKind()) {
				all = append(all, document{row[0], object})
			}
		}
	}
	return all
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// TestPublishedManifestsInBothVersions: each is admitted in its own version,
// applying it again changes nothing, and it can be read in both.
func TestPublishedManifestsInBothVersions(t *testing.T) {
	documents := published(t)
	c := start(t)
	for n, way := range [][]string{{"apply", "--validate=strict", "-f", "-"}, {"apply", "--validate=strict", "-f", "-", "--server-side"}} {
		t.Run("kubectl "+strings.Join(way, " "), func(t *testing.T) {
			var namespaces, objects strings.Builder
			byNamespace := map[string]document{}
			for i, d := range documents {
				namespace := fmt.Sprintf("way-%d-%d", n, i)
				byNamespace[namespace] = d
				fmt.Fprintf(&namespaces, "{apiVersion: v1, kind: Namespace, metadata: {name: %s}}\n---\n", namespace)
				object := d.DeepCopy()
				object.SetNamespace(namespace)
				raw, err := object.MarshalJSON()
				if err != nil {
					t.Fatal(err)
				}
				fmt.Fprintf(&objects, "%s\n---\n", raw)
			}
			c.must(t, namespaces.String(), "create", "-f", "-")
			stdout, stderr, err := c.kubectl(t, objects.String(), way...)
			admitted := strings.Count(stdout, "\n")
			summary.Line(t, "kubectl %s: admitted %d of %d published documents of both versions", strings.Join(way, " "), admitted, len(documents))
			if err != nil || admitted != len(documents) {
				t.Errorf("%v: %s", err, stderr)
			}
			if _, stderr, err := c.kubectl(t, objects.String(), way...); err != nil {
				t.Errorf("applied again: %v: %s", err, stderr)
			}
			same := 0
			for _, version := range []string{conversion.Alpha, conversion.Beta} {
				began := time.Now()
				found := c.list(t, version)
				t.Logf("%d objects read as %s in %s", len(found), version, time.Since(began).Round(time.Millisecond))
				for _, got := range found {
					d, ours := byNamespace[got.GetNamespace()]
					if !ours {
						continue
					}
					if got.GetGeneration() != 1 {
						t.Errorf("%s: applied again it is at generation %d", d.file, got.GetGeneration())
					}
					if diff := cmp.Diff(specOf(t, d.Unstructured), specAs(t, got, d.GetAPIVersion())); diff != "" {
						t.Errorf("%s, read as %s (-published +read):\n%s", d.file, version, diff)
						continue
					}
					same++
				}
			}
			summary.Line(t, "kubectl %s: %d of %d documents and versions read back as they were published", strings.Join(way, " "), same, 2*len(documents))
		})
	}
}

// list reads all objects of one version.
func (c cluster) list(t *testing.T, version string) []*unstructured.Unstructured {
	t.Helper()
	var all []*unstructured.Unstructured
	for _, resource := range []string{"dynamographdeployments", "dynamocomponentdeployments", "dynamographdeploymentrequests", "dynamographdeploymentscalingadapters"} {
		var list unstructured.UnstructuredList
		text := c.must(t, "", "get", resource+"."+version+".nvidia.com", "--all-namespaces", "-o", "json")
		if err := json.Unmarshal([]byte(text), &list); err != nil {
			t.Fatal(err)
		}
		for i := range list.Items {
			all = append(all, &list.Items[i])
		}
	}
	return all
}

// specOf is the spec of a published document, defaulted as a server does.
func specOf(t *testing.T, object *unstructured.Unstructured) string {
	t.Helper()
	object = object.DeepCopy()
	_, version, _ := strings.Cut(object.GetAPIVersion(), "/")
	schema, known, err := crdschema.OfVersion(object.GetKind(), version)
	if err != nil || !known {
		t.Fatalf("%s %s: %v", object.GetKind(), version, err)
	}
	schema.Default(object.Object)
	return specAs(t, object, object.GetAPIVersion())
}

// specAs is the spec of an object in a version, without what says nothing.
func specAs(t *testing.T, object *unstructured.Unstructured, apiVersion string) string {
	t.Helper()
	raw, err := object.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	result, err := conversion.Convert(raw, apiVersion)
	if err != nil {
		t.Fatal(err)
	}
	typed := types[apiVersion+" "+object.GetKind()]()
	for range 2 {
		if err := json.Unmarshal(result.JSON, typed); err != nil {
			t.Fatal(err)
		}
		if result.JSON, err = json.Marshal(typed); err != nil {
			t.Fatal(err)
		}
		typed = types[apiVersion+" "+object.GetKind()]()
	}
	var fields map[string]any
	if err := json.Unmarshal(result.JSON, &fields); err != nil {
		t.Fatal(err)
	}
	text, err := yaml.Marshal(fields["spec"])
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

var types = map[string]func() any{
	"nvidia.com/v1alpha1 DynamoGraphDeployment":               func() any { return &v1alpha1.DynamoGraphDeployment{} },
	"nvidia.com/v1alpha1 DynamoComponentDeployment":           func() any { return &v1alpha1.DynamoComponentDeployment{} },
	"nvidia.com/v1alpha1 DynamoGraphDeploymentRequest":        func() any { return &v1alpha1.DynamoGraphDeploymentRequest{} },
	"nvidia.com/v1alpha1 DynamoGraphDeploymentScalingAdapter": func() any { return &v1alpha1.DynamoGraphDeploymentScalingAdapter{} },
	"nvidia.com/v1beta1 DynamoGraphDeployment":                func() any { return &v1beta1.DynamoGraphDeployment{} },
	"nvidia.com/v1beta1 DynamoComponentDeployment":            func() any { return &v1beta1.DynamoComponentDeployment{} },
	"nvidia.com/v1beta1 DynamoGraphDeploymentRequest":         func() any { return &v1beta1.DynamoGraphDeploymentRequest{} },
	"nvidia.com/v1beta1 DynamoGraphDeploymentScalingAdapter":  func() any { return &v1beta1.DynamoGraphDeploymentScalingAdapter{} },
}
