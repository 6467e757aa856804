package main

import (
	"fmt"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// eachValue is the path step from a map or a list to the schema of its values.
const eachValue = "*"

// at applies change to the schema at path. Properties are values in a map, so
// each one on the way is written back.
func at(schema *apiextensionsv1.JSONSchemaProps, change func(*apiextensionsv1.JSONSchemaProps), path ...string) error {
	if len(path) == 0 {
		change(schema)
		return nil
	}
	step, rest := path[0], path[1:]
	if step == eachValue {
		if schema.Items != nil && schema.Items.Schema != nil {
			return at(schema.Items.Schema, change, rest...)
		}
		if schema.AdditionalProperties == nil || schema.AdditionalProperties.Schema == nil {
			return fmt.Errorf("no map or list where one is expected, %d steps from the end of the path", len(path))
		}
		return at(schema.AdditionalProperties.Schema, change, rest...)
	}
	child, ok := schema.Properties[step]
	if !ok {
		return fmt.Errorf("no field %q", step)
	}
	if err := at(&child, change, rest...); err != nil {
		return fmt.Errorf("in %q: %w", step, err)
	}
	schema.Properties[step] = child
	return nil
}

// dropDescriptions removes the descriptions below a schema, not its own.
func dropDescriptions(schema *apiextensionsv1.JSONSchemaProps) {
	for name, child := range schema.Properties {
		child.Description = ""
		dropDescriptions(&child)
		schema.Properties[name] = child
	}
	for _, child := range nested(schema) {
		child.Description = ""
		dropDescriptions(child)
	}
}

// nested are the schemas of a list's items or a map's values.
func nested(schema *apiextensionsv1.JSONSchemaProps) []*apiextensionsv1.JSONSchemaProps {
	var all []*apiextensionsv1.JSONSchemaProps
	if schema.Items != nil && schema.Items.Schema != nil {
		all = append(all, schema.Items.Schema)
	}
	if schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil {
		all = append(all, schema.AdditionalProperties.Schema)
	}
	return all
}

func without(list []string, name string) []string {
	return slices.DeleteFunc(list, func(s string) bool { return s == name })
}
