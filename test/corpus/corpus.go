// Package corpus reads published manifests of this API, for tests that ask
// whether we still take them as they are. It does not judge them.
package corpus

import (
	"bytes"
	"encoding/csv"
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

// DirEnv and Dir2026Env name folders of manifests to read instead of the usual ones.
const (
	DirEnv     = "DYNAMO_CORPUS_DIR"
	Dir2026Env = "DYNAMO_CORPUS_2026_DIR"
)

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
	return In(t, folder(t, DirEnv, "corpus"))
}

// LeftOut is a manifest that nobody can apply as it is.
type LeftOut struct{ File, Why string }

// Of2026 returns the documents of both versions that were published from February
// 2026 on and can stand alone, in the order of All. A folder without an index is
// read whole. It skips the test if there is no corpus.
func Of2026(t *testing.T) (documents []Document, left []LeftOut) {
	t.Helper()
	dir := folder(t, Dir2026Env, "corpus-2026")
	index, err := os.Open(filepath.Join(dir, "index.csv"))
	if errors.Is(err, fs.ErrNotExist) {
		return In(t, dir), nil
	}
	if err != nil {
		t.Fatalf("read corpus: %v", err)
	}
	defer index.Close()
	rows, err := csv.NewReader(index).ReadAll()
	if err != nil || len(rows) == 0 {
		t.Fatalf("read corpus: index.csv has %d rows, %v", len(rows), err)
	}
	column := map[string]int{}
	for i, name := range rows[0] {
		column[name] = i
	}
	for _, row := range rows[1:] {
		file, category, schema := row[column["file"]], row[column["category"]], row[column["schema"]]
		if category != "standalone" && category != "test-data" {
			continue
		}
		here, err := read(dir, filepath.Join(dir, file))
		switch {
		case errors.Is(err, fs.ErrNotExist): // listed, and not copied
		case err != nil:
			t.Fatalf("read corpus: %v", err)
		case schema != "ok":
			left = append(left, LeftOut{File: file, Why: "no release admits it: " + schema})
		default:
			documents = append(documents, here...)
		}
	}
	slices.SortStableFunc(documents, func(a, b Document) int { return strings.Compare(a.File, b.File) })
	return documents, left
}

// In returns the documents below a folder in the same order.
func In(t *testing.T, dir string) []Document {
	t.Helper()
	var documents []Document
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".yaml") {
			return err
		}
		all, err := read(dir, path)
		documents = append(documents, all...)
		return err
	})
	if err != nil {
		t.Fatalf("read corpus: %v", err)
	}
	return documents
}

// read returns the documents of one file below dir.
func read(dir, path string) ([]Document, error) {
	name, err := filepath.Rel(dir, path)
	if err != nil {
		return nil, err
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	all, err := split(raw)
	if err != nil {
		return nil, fmt.Errorf("decode %s: %w", name, err)
	}
	for i := range all {
		all[i].File = filepath.ToSlash(name)
	}
	return all, nil
}

func folder(t *testing.T, env, name string) string {
	t.Helper()
	dir := os.Getenv(env)
	if dir == "" {
		_, self, _, _ := runtime.Caller(0)
		dir = filepath.Join(filepath.Dir(self), "..", "..", "..", "shared", name)
	}
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		t.Skipf("no corpus of published manifests here: set %s to a folder of them", env)
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
