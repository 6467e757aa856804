// Package crdschema does offline what an API server does to an object of ours at
// admission: it applies the defaults of the shipped CRDs and validates against
// their schemas and CEL rules.
package crdschema

import (
	"context" //nolint:depguard // the evaluator takes one; it waits for nothing
	"fmt"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/config/crd"
)

// Schema is the shape of one kind.
type Schema struct {
	root *schema.Structural
	// rules compiles the CEL rules, which takes a moment, once.
	rules func() *cel.Validator
}

// Of is the schema of a kind in the version that is stored; false if we define
// no such kind.
func Of(kind string) (Schema, bool, error) {
	return OfVersion(kind, v1alpha1.SchemeGroupVersion.Version)
}

// OfVersion is the schema of a kind in one version, whether or not it is served;
// false if we define no such kind or version.
func OfVersion(kind, version string) (Schema, bool, error) {
	all, err := load()
	if err != nil {
		return Schema{}, false, err
	}
	s, known := all[kindVersion{kind, version}]
	return s, known, nil
}

type kindVersion struct{ kind, version string }

// load reads the definitions, which takes a moment, once.
var load = sync.OnceValues(func() (map[kindVersion]Schema, error) {
	objects, err := crd.Objects()
	if err != nil {
		return nil, err
	}
	all := map[kindVersion]Schema{}
	for _, object := range objects {
		for _, version := range object.Spec.Versions {
			root, err := structural(version.Schema.OpenAPIV3Schema)
			if err != nil {
				return nil, fmt.Errorf("definition of %s %s: %w", object.Spec.Names.Kind, version.Name, err)
			}
			rules := sync.OnceValue(func() *cel.Validator { return cel.NewValidator(root, true, celconfig.PerCallLimit) })
			all[kindVersion{object.Spec.Names.Kind, version.Name}] = Schema{root, rules}
		}
	}
	return all, nil
})

func structural(published *apiextensionsv1.JSONSchemaProps) (*schema.Structural, error) {
	var internal apiextensions.JSONSchemaProps
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(published, &internal, nil); err != nil {
		return nil, err
	}
	return schema.NewStructural(&internal)
}

// Default fills in what an object leaves out, in place, and drops nulls where
// the schema knows none: both as a server stores it.
func (s Schema) Default(object map[string]any) {
	defaulting.Default(object, s.root)
	defaulting.PruneNonNullableNullsWithoutDefaults(object, s.root)
}

// Rules evaluates the CEL rules, and that of lists that have keys, over an object
// with its defaults in which Check finds nothing. Rules about a change hold at a
// creation.
func (s Schema) Rules(object map[string]any) field.ErrorList {
	errs := listtype.ValidateListSetsAndMaps(nil, s.root, object)
	broken, _ := s.rules().Validate(context.Background(), nil, s.root, object, nil, celconfig.RuntimeCELCostBudget)
	return append(errs, broken...)
}
