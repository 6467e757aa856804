// Package input reads the files that a verb is given with -f: YAML or JSON, one
// document or several, from a path, the files of a folder, or standard input. It
// does not judge what the documents mean.
package input

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// Document is one object of a file.
type Document struct {
	// Source is where it stands: the file and, if that holds several, which one.
	Source string
	*unstructured.Unstructured
}

// String names the document for a person.
func (d Document) String() string {
	return fmt.Sprintf("%s: %s %s", d.Source, d.GetKind(), d.GetName())
}

// Stdin is the path that means standard input.
const Stdin = "-"

// Flag adds -f, which a verb cannot do without.
func Flag(flags *pflag.FlagSet, files *[]string) {
	flags.StringArrayVarP(files, "filename", "f", nil, "file or folder to read, - for standard input; may be repeated")
	Require(flags, "filename")
}

// Require has a verb refuse to run without a flag.
func Require(flags *pflag.FlagSet, name string) {
	if err := cobra.MarkFlagRequired(flags, name); err != nil {
		panic(err) // a flag that nobody defined: a mistake in the program
	}
}

// Read reads the documents of all paths, in order.
func Read(paths []string, stdin io.Reader) ([]Document, error) {
	var all []Document
	paths, err := files(paths)
	if err != nil {
		return nil, err
	}
	for _, path := range paths {
		text, err := readFile(path, stdin)
		if err != nil {
			return nil, err
		}
		documents, err := Parse(path, text)
		if err != nil {
			return nil, err
		}
		all = append(all, documents...)
	}
	return all, nil
}

// files puts manifests of a folder, by name, where the folder stands.
func files(paths []string) ([]string, error) {
	var all []string
	for _, path := range paths {
		if info, err := os.Stat(path); path == Stdin || err != nil || !info.IsDir() {
			all = append(all, path)
			continue
		}
		entries, err := os.ReadDir(path)
		if err != nil {
			return nil, err
		}
		for _, entry := range entries {
			if kind := filepath.Ext(entry.Name()); !entry.IsDir() && (kind == ".yaml" || kind == ".yml" || kind == ".json") {
				all = append(all, filepath.Join(path, entry.Name()))
			}
		}
	}
	return all, nil
}

func readFile(path string, stdin io.Reader) ([]byte, error) {
	if path == Stdin {
		return io.ReadAll(stdin)
	}
	return os.ReadFile(path)
}

// Parse takes a text apart. A list is its items.
func Parse(name string, text []byte) ([]Document, error) {
	var objects []*unstructured.Unstructured
	for reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text))); ; {
		raw, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return number(name, objects), nil
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		found, err := decode(raw)
		if err != nil {
			return nil, fmt.Errorf("%s: document %d: %w", name, len(objects)+1, err)
		}
		objects = append(objects, found...)
	}
}

// decode reads one document; none if it is empty.
func decode(raw []byte) ([]*unstructured.Unstructured, error) {
	text, err := yaml.YAMLToJSONStrict(raw)
	if err != nil {
		return nil, err
	}
	var value any
	if err := json.Unmarshal(text, &value); err != nil {
		return nil, err
	}
	if value == nil {
		return nil, nil
	}
	fields, ok := value.(map[string]any)
	if !ok {
		return nil, errors.New("is no object")
	}
	object := &unstructured.Unstructured{Object: fields}
	if !object.IsList() {
		return []*unstructured.Unstructured{object}, nil
	}
	var items []*unstructured.Unstructured
	err = object.EachListItem(func(item runtime.Object) error {
		items = append(items, item.(*unstructured.Unstructured))
		return nil
	})
	return items, err
}

func number(name string, objects []*unstructured.Unstructured) []Document {
	documents := make([]Document, len(objects))
	for i, object := range objects {
		documents[i] = Document{name, object}
		if len(objects) > 1 {
			documents[i].Source = fmt.Sprintf("%s: document %d", name, i+1)
		}
	}
	return documents
}
