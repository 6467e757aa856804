package crdschema

import (
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apimachinery/pkg/runtime"
)

// Default fills in what an object leaves out, in place, and drops nulls where
// the schema knows none: both as a server stores it.
func (s Schema) Default(object map[string]any) {
	fill(object, s.root)
}

func fill(value any, s *schema.Structural) {
	switch value := value.(type) {
	case map[string]any:
		fillObject(value, s)
	case []any:
		if s.Items == nil {
			return
		}
		for _, item := range value {
			fill(item, s.Items)
		}
	}
}

func fillObject(object map[string]any, s *schema.Structural) {
	for name, property := range s.Properties {
		present, found := object[name]
		if found && present == nil && !property.Nullable {
			delete(object, name)
			found = false
		}
		if !found && property.Default.Object != nil {
			object[name] = runtime.DeepCopyJSONValue(property.Default.Object)
		}
		if below, set := object[name]; set {
			fill(below, &property)
		}
	}
	if s.AdditionalProperties == nil || s.AdditionalProperties.Structural == nil {
		return
	}
	for name, below := range object {
		if _, named := s.Properties[name]; !named {
			fill(below, s.AdditionalProperties.Structural)
		}
	}
}
