// Package corpus reads published manifests of this API, for tests that ask
// whether we still take them as they are. It does not judge them.
package corpus

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// DirEnv names a folder of manifests to read instead of the usual one.
const DirEnv = "DYNAMO_CORPUS_DIR"

// Document is one object of a manifest.
type Document struct {
	// File is the manifest's path below the corpus.
	File string
	// Index counts the documents of the file from 0.
	Index int
	// JSON is the document as JSON.
	JSON []byte
	// Object is the document decoded.
	Object *unstructured.Unstructured
}

// Name is unique in the corpus and fit for the name of a subtest.
func (d Document) Name() string {
	return fmt.Sprintf("%s#%d-%s", d.File, d.Index, d.Object.GetName())
}

// OfGroup returns the documents of one API group, as All does.
func OfGroup(t *testing.T, group string) []Document {
	t.Helper()
	documents := slices.DeleteFunc(All(t), func(d Document) bool {
		return d.Object.GroupVersionKind().Group != group
	})
	if len(documents) == 0 {
		t.Fatalf("read corpus: no document of group %s", group)
	}
	return documents
}

// All returns every document, in order of the files and of their place in them.
// It skips the test if there is no corpus.
func All(t *testing.T) []Document {
	t.Helper()
	return In(t, folder(t))
}

// In returns the documents below a folder in the same order.
func In(t *testing.T, dir string) []Document {
	t.Helper()
	var documents []Document
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".yaml") {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		all, err := split(raw)
		if err != nil {
			return fmt.Errorf("decode %s: %w", name, err)
		}
		for _, d := range all {
			d.File = filepath.ToSlash(name)
			documents = append(documents, d)
		}
		return nil
	})
	if err != nil {
		t.Fatalf("read corpus: %v", err)
	}
	return documents
}

func folder(t *testing.T) string {
	t.Helper()
	dir := os.Getenv(DirEnv)
	if dir == "" {
		_, self, _, _ := runtime.Caller(0)
		dir = filepath.Join(filepath.Dir(self), "..", "..", "..", "shared", "corpus")
	}
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		t.Skipf("no corpus of published manifests here: set %s to a folder of them", DirEnv)
	}
	return dir
}

func split(manifest []byte) ([]Document, error) {
	decoder := yaml.NewYAMLToJSONDecoder(bytes.NewReader(manifest))
	var documents []Document
	for index := 0; ; index++ {
		object := &unstructured.Unstructured{}
		if err := decoder.Decode(&object.Object); errors.Is(err, io.EOF) {
			return documents, nil
		} else if err != nil {
			return nil, fmt.Errorf("document %d: %w", index, err)
		}
		if len(object.Object) == 0 {
			continue
		}
		raw, err := object.MarshalJSON()
		if err != nil {
			return nil, fmt.Errorf("document %d: %w", index, err)
		}
		documents = append(documents, Document{Index: index, JSON: raw, Object: object})
	}
}
