package addon

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// readManifests returns the objects of every YAML file in a folder, in the order of file names.
func readManifests(folder string) ([]*unstructured.Unstructured, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	if err != nil {
		return nil, fmt.Errorf("list manifests: %w", err)
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("no manifests in %s", folder)
	}
	var objects []*unstructured.Unstructured
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("read manifest: %w", err)
		}
		more, err := parseManifest(data)
		if err != nil {
			return nil, fmt.Errorf("parse %s: %w", file, err)
		}
		objects = append(objects, more...)
	}
	return objects, nil
}

func parseManifest(data []byte) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	for decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 4096); ; {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(&object.Object)
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, err
		}
		if len(object.Object) == 0 {
			continue // an empty document, as before a leading separator
		}
		// A generator's leavings; both belong to the server.
		unstructured.RemoveNestedField(object.Object, "metadata", "creationTimestamp")
		unstructured.RemoveNestedField(object.Object, "status")
		if object.GetKind() == kindCRD {
			dropDescriptions(object.Object["spec"])
		}
		objects = append(objects, object)
	}
}

// dropDescriptions removes the prose from a schema. It is four fifths of the biggest kinds, of which the API server keeps
// several copies and which it has to digest before a cluster is ready.
func dropDescriptions(node any) {
	switch n := node.(type) {
	case map[string]any:
		if _, prose := n["description"].(string); prose { // a property of that name is no string but a schema
			delete(n, "description")
		}
		for _, child := range n {
			dropDescriptions(child)
		}
	case []any:
		for _, child := range n {
			dropDescriptions(child)
		}
	}
}
