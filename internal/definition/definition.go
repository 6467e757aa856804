// Package definition does without a server what an API server does to an object
// of ours before anybody sees it: it fills in the defaults of the definitions
// that we ship, and finds what they do not allow. CEL rules are not evaluated;
// package validation repeats each of them.
package definition

import (
	"fmt"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/config/crd"
)

// Schema is the shape of one kind.
type Schema struct {
	root *schema.Structural
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
	root, known := all[shape{kind, version}]
	return Schema{root}, known, nil
}

type shape struct{ kind, version string }

// load reads the definitions, which takes a moment, once.
var load = sync.OnceValues(func() (map[shape]*schema.Structural, error) {
	objects, err := crd.Objects()
	if err != nil {
		return nil, err
	}
	all := map[shape]*schema.Structural{}
	for _, object := range objects {
		for _, version := range object.Spec.Versions {
			root, err := structural(version.Schema.OpenAPIV3Schema)
			if err != nil {
				return nil, fmt.Errorf("definition of %s %s: %w", object.Spec.Names.Kind, version.Name, err)
			}
			all[shape{object.Spec.Names.Kind, version.Name}] = root
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
