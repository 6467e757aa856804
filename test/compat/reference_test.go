package compat

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/dynamo-operator/dynamo-operator/internal/core/workload"
)

// recordingsIn is a folder that holds, by path and manifest, the objects that the
// original operator made. A variable of the environment may name it instead of
// the usual one; without any, the test is skipped.
func recordingsIn(t *testing.T, variable, usual string) string {
	t.Helper()
	dir := os.Getenv(variable)
	if dir == "" {
		_, self, _, _ := runtime.Caller(0)
		dir = filepath.Join(filepath.Dir(self), "..", "..", "..", "shared", usual)
	}
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		t.Skipf("no recordings of the original operator here: set %s to a folder of them", variable)
	}
	return dir
}

// recordingOf is the file of what the original made of a manifest.
func recordingOf(dir string, path workload.Provider, manifest string) string {
	return filepath.Join(dir, string(path), strings.TrimSuffix(manifest, filepath.Ext(manifest))+".json")
}

// reference reads what the original made of a manifest.
func reference(t *testing.T, dir string, path workload.Provider, manifest string) []*unstructured.Unstructured {
	t.Helper()
	raw, err := os.ReadFile(recordingOf(dir, path, manifest))
	if err != nil {
		t.Fatalf("read recording: %v", err)
	}
	var all []map[string]any
	if err := json.Unmarshal(raw, &all); err != nil {
		t.Fatalf("recording of %s: %v", manifest, err)
	}
	objects := make([]*unstructured.Unstructured, len(all))
	for i, object := range all {
		objects[i] = &unstructured.Unstructured{Object: object}
	}
	return objects
}
