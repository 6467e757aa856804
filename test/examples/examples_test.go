// Package examples holds the gallery to what it shows: every example is what the
// operator takes, and what becomes of its pods does not change unnoticed.
package examples

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/dynamo-operator/dynamo-operator/internal/cli/input"
	"github.com/dynamo-operator/dynamo-operator/internal/cli/installation"
	"github.com/dynamo-operator/dynamo-operator/internal/cli/render"
	"github.com/dynamo-operator/dynamo-operator/internal/cli/validate"
	"github.com/dynamo-operator/dynamo-operator/internal/operator/config"
	"github.com/dynamo-operator/dynamo-operator/internal/testkit/golden"
)

const gallery = "../../examples"

// manifests are the files of the gallery that hold objects of our API.
func manifests(t *testing.T) []string {
	t.Helper()
	var files []string
	for _, pattern := range []string{"*.yaml", "requests/*.yaml"} {
		found, err := filepath.Glob(filepath.Join(gallery, pattern))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	if len(files) < 15 {
		t.Fatalf("the gallery has %d files", len(files))
	}
	return files
}

func TestEveryExampleIsValid(t *testing.T) {
	for _, file := range manifests(t) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		documents, err := input.Parse(filepath.Base(file), text)
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		for _, d := range documents {
			if !validate.Ours(d) {
				continue
			}
			verdict, err := validate.Judge(d, config.Default().Rules())
			if err != nil {
				t.Fatal(err)
			}
			if len(verdict.Problems) > 0 || len(verdict.Warnings) > 0 {
				t.Errorf("%s: %v %v", d, verdict.Problems, verdict.Warnings)
			}
		}
	}
}

// template is where a workload describes its pods.
var template = map[string][]string{
	"Deployment":      {"spec", "template"},
	"LeaderWorkerSet": {"spec", "leaderWorkerTemplate"},
	"PodCliqueSet":    {"spec", "template"},
}

// TestPodsOfExamplesStayAsTheyAre fails when a change would replace running
// pods on an upgrade. If that is meant, say so in the changelog and update the
// golden file (go test ./test/examples -update).
func TestPodsOfExamplesStayAsTheyAre(t *testing.T) {
	var lines []string
	for _, orchestrator := range []string{"lws", "grove"} {
		for _, file := range manifests(t) {
			if filepath.Base(filepath.Dir(file)) == "requests" {
				continue
			}
			for _, object := range rendered(t, file, orchestrator) {
				path, isWorkload := template[object.GetKind()]
				if !isWorkload {
					continue
				}
				content, _, err := unstructured.NestedMap(object.Object, path...)
				if err != nil {
					t.Fatal(err)
				}
				text, err := json.Marshal(content)
				if err != nil {
					t.Fatal(err)
				}
				sum := sha256.Sum256(text)
				lines = append(lines, fmt.Sprintf("%s %s %s %s", orchestrator, object.GetKind(), object.GetName(), hex.EncodeToString(sum[:8])))
			}
		}
	}
	slices.Sort(lines)
	golden.Text(t, "testdata/templates.txt", strings.Join(lines, "\n")+"\n")
}

// rendered is what kubectl dynamo render makes of a file.
func rendered(t *testing.T, file, orchestrator string) []*unstructured.Unstructured {
	t.Helper()
	command := render.Command()
	var out, notes bytes.Buffer
	command.SetOut(&out)
	command.SetErr(&notes)
	command.SetArgs([]string{"-f", file, "--orchestrator", orchestrator})
	if err := command.Execute(); err != nil {
		t.Fatalf("%s: %v %s", file, err, notes.String())
	}
	objects, err := installation.Decode(&out)
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

// TestEveryExampleIsToldAbout keeps examples from being forgotten.
func TestEveryExampleIsToldAbout(t *testing.T) {
	pages, err := filepath.Glob("../../docs/guide/*.md")
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
	}
	var untold []string
	for _, file := range manifests(t) {
		if !strings.Contains(all.String(), filepath.Base(file)) {
			untold = append(untold, filepath.Base(file))
		}
	}
	if diff := cmp.Diff([]string(nil), untold); diff != "" {
		t.Errorf("no guide mentions these examples:\n%s", diff)
	}
}
