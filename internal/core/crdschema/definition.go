// Package definition does without a server what an API server does to an object
// of ours before anybody sees it: it fills in the defaults of the definitions
// that we ship, and finds what they do not allow. CEL rules are not evaluated;
// package validation repeats each of them.
package crdschema

import (
	"fmt"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"

	"github.com/dynamo-operator/dynamo-operator/config/crd"
)

// Schema is the shape of one kind.
type Schema struct {
	root *schema.Structural
}

// Of is the schema of a kind; false if we define no such kind.
func Of(kind string) (Schema, bool, error) {
	all, err := load()
	if err != nil {
		return Schema{}, false, err
	}
	root, known := all[kind]
	return Schema{root}, known, nil
}

// load reads the definitions, which takes a moment, once.
var load = sync.OnceValues(func() (map[string]*schema.Structural, error) {
	objects, err := crd.Objects()
	if err != nil {
		return nil, err
	}
	all := map[string]*schema.Structural{}
	for _, object := range objects {
		root, err := structural(object)
		if err != nil {
			return nil, fmt.Errorf("definition of %s: %w", object.Spec.Names.Kind, err)
		}
		all[object.Spec.Names.Kind] = root
	}
	return all, nil
})

func structural(object *apiextensionsv1.CustomResourceDefinition) (*schema.Structural, error) {
	var internal apiextensions.JSONSchemaProps
	published := object.Spec.Versions[0].Schema.OpenAPIV3Schema
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(published, &internal, nil); err != nil {
		return nil, err
	}
	return schema.NewStructural(&internal)
}
