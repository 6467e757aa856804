package installation

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"

	manifests "github.com/dynamo-operator/dynamo-operator/config"
	"github.com/dynamo-operator/dynamo-operator/config/crd"
)

// Definitions are the definitions of the operator's API.
func Definitions() ([]*unstructured.Unstructured, error) {
	return decodeAll(crd.Manifests)
}

// Operator is everything else, in an order in which it can be applied: what
// others refer to first, and the operator itself last, so that it finds its
// rights when it starts.
func Operator() ([]*unstructured.Unstructured, error) {
	objects, err := decodeAll(manifests.Operator)
	if err != nil {
		return nil, err
	}
	Sort(objects)
	return objects, nil
}

// Converter is what converts between the versions of the API where no operator for
// the whole cluster does, in a namespace.
func Converter(home string) ([]*unstructured.Unstructured, error) {
	objects, err := decodeAll(manifests.Converter)
	if err != nil {
		return nil, err
	}
	for _, object := range objects {
		if object.GetNamespace() != "" {
			object.SetNamespace(home)
		}
		subjects, found, err := unstructured.NestedSlice(object.Object, "subjects")
		if err != nil {
			return nil, err
		}
		if !found {
			continue
		}
		for _, subject := range subjects {
			if fields, ok := subject.(map[string]any); ok {
				fields["namespace"] = home
			}
		}
		if err := unstructured.SetNestedSlice(object.Object, subjects, "subjects"); err != nil {
			return nil, err
		}
	}
	Sort(objects)
	return objects, nil
}

// Sort brings objects into an order in which they can be applied.
func Sort(objects []*unstructured.Unstructured) {
	slices.SortStableFunc(objects, func(a, b *unstructured.Unstructured) int { return rank(a) - rank(b) })
}

func rank(object *unstructured.Unstructured) int {
	switch object.GetKind() {
	case "Namespace", "Lease": // a Lease goes when nobody has the right to make it again
		return 0
	case "Deployment", "Job", "CronJob":
		return 2
	default:
		return 1
	}
}

// decodeAll reads every manifest below a root; Kustomize's own files are none.
func decodeAll(from fs.FS) ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	err := fs.WalkDir(from, ".", func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || path.Base(file) == "kustomization.yaml" {
			return err
		}
		text, err := fs.ReadFile(from, file)
		if err != nil {
			return err
		}
		objects, err := Decode(bytes.NewReader(text))
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		all = append(all, objects...)
		return nil
	})
	return all, err
}

// Decode reads a stream of YAML documents.
func Decode(r io.Reader) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	for decoder := yaml.NewYAMLOrJSONDecoder(r, 4096); ; {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(&object.Object)
		switch {
		case errors.Is(err, io.EOF):
			return objects, nil
		case err != nil:
			return nil, err
		case len(object.Object) > 0:
			objects = append(objects, object)
		}
	}
}
