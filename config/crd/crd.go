// Package crd holds the CustomResourceDefinitions as they are shipped, for
// programs that install them. It does not install them itself.
package crd

import (
	"embed"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// Manifests holds one YAML file for each definition.
//
//go:embed nvidia.com_*.yaml
var Manifests embed.FS

// Objects decodes the definitions, in ascending order of their file names.
func Objects() ([]*apiextensionsv1.CustomResourceDefinition, error) {
	entries, err := Manifests.ReadDir(".")
	if err != nil {
		return nil, fmt.Errorf("list embedded definitions: %w", err)
	}
	objects := make([]*apiextensionsv1.CustomResourceDefinition, 0, len(entries))
	for _, entry := range entries {
		raw, err := Manifests.ReadFile(entry.Name())
		if err != nil {
			return nil, fmt.Errorf("read embedded %s: %w", entry.Name(), err)
		}
		object := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict(raw, object); err != nil {
			return nil, fmt.Errorf("decode embedded %s: %w", entry.Name(), err)
		}
		objects = append(objects, object)
	}
	return objects, nil
}
