package validate

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/api/v1beta1"
	"github.com/dynamo-operator/dynamo-operator/internal/cli/input"
	"github.com/dynamo-operator/dynamo-operator/internal/core/conversion"
	"github.com/dynamo-operator/dynamo-operator/internal/core/crdschema"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	rules "github.com/dynamo-operator/dynamo-operator/internal/core/validation"
)

// Verdict is what a cluster with the operator in it would say to a document.
type Verdict struct {
	// Object is the document as a server would store it; nil if it cannot be
	// read.
	Object   graph.Object
	Problems field.ErrorList
	Warnings []string
}

// Ours reports whether a document is of our API.
func Ours(d input.Document) bool {
	group, _, _ := strings.Cut(d.GetAPIVersion(), "/")
	return group == v1alpha1.GroupName
}

// Judge reads a document of our API by the definition of its version, then, as a
// server would store it, by the rules.
func Judge(d input.Document, scope rules.Scope) (Verdict, error) {
	if _, known := types[d.GetKind()]; !known {
		return refuse(field.NotSupported(field.NewPath("kind"), d.GetKind(), slices.Sorted(maps.Keys(types)))), nil
	}
	_, version, _ := strings.Cut(d.GetAPIVersion(), "/")
	schema, known, err := crdschema.OfVersion(d.GetKind(), version)
	if err != nil {
		return Verdict{}, err
	}
	if !known {
		return refuse(field.NotSupported(field.NewPath("apiVersion"), d.GetAPIVersion(), versionsOf(d.GetKind()))), nil
	}
	v := Verdict{Problems: append(metadata(d), schema.Check(d.Object)...)}
	stored := d.DeepCopy()
	schema.Default(stored.Object)
	object, ignored, err := read(stored.Object, d.GetKind())
	if err != nil {
		if len(v.Problems) == 0 {
			v.Problems = field.ErrorList{field.Invalid(field.NewPath("spec"), d.GetName(), err.Error())}
		}
		return v, nil
	}
	v.Object = object
	verdict := rules.Create(object, scope)
	v.Problems, v.Warnings = unite(v.Problems, verdict.Problems), verdict.Warnings
	for _, part := range ignored {
		v.Warnings = append(v.Warnings, "metadata.annotations: what is kept of the other version does not fit the object and is not used: "+part)
	}
	if len(v.Problems) == 0 { // the rules of the definition say again, less plainly, what ours do
		v.Problems = schema.Rules(stored.Object)
	}
	return v, nil
}

func refuse(problem *field.Error) Verdict {
	return Verdict{Problems: field.ErrorList{problem}}
}

// types make an empty object of each kind of our API.
var types = map[string]func() graph.Object{
	v1alpha1.KindDynamoGraphDeployment:               func() graph.Object { return &v1alpha1.DynamoGraphDeployment{} },
	v1alpha1.KindDynamoComponentDeployment:           func() graph.Object { return &v1alpha1.DynamoComponentDeployment{} },
	v1alpha1.KindDynamoModel:                         func() graph.Object { return &v1alpha1.DynamoModel{} },
	v1alpha1.KindDynamoGraphDeploymentRequest:        func() graph.Object { return &v1alpha1.DynamoGraphDeploymentRequest{} },
	v1alpha1.KindDynamoGraphDeploymentScalingAdapter: func() graph.Object { return &v1alpha1.DynamoGraphDeploymentScalingAdapter{} },
	v1alpha1.KindDynamoCheckpoint:                    func() graph.Object { return &v1alpha1.DynamoCheckpoint{} },
	v1alpha1.KindDynamoWorkerMetadata:                func() graph.Object { return &v1alpha1.DynamoWorkerMetadata{} },
}

// versionsOf are the versions that a kind has.
func versionsOf(kind string) []string {
	versions := []string{v1alpha1.SchemeGroupVersion.String()}
	if conversion.Convertible(kind) {
		versions = append(versions, v1beta1.SchemeGroupVersion.String())
	}
	return versions
}

// read reads fields into an object of the stored version, and tells what of the
// object's payload did not count.
func read(fields map[string]any, kind string) (graph.Object, []string, error) {
	text, err := json.Marshal(fields)
	if err != nil {
		return nil, nil, err
	}
	stored := conversion.Result{JSON: text}
	if conversion.Convertible(kind) {
		if stored, err = conversion.Convert(text, v1alpha1.SchemeGroupVersion.String()); err != nil {
			return nil, nil, err
		}
	}
	object := types[kind]()
	return object, stored.Ignored, json.Unmarshal(stored.JSON, object)
}

// metadata checks what no definition describes.
func metadata(d input.Document) field.ErrorList {
	at := field.NewPath("metadata")
	text, err := json.Marshal(d.Object["metadata"])
	if err != nil {
		return field.ErrorList{field.InternalError(at, err)}
	}
	strict := json.NewDecoder(bytes.NewReader(text))
	strict.DisallowUnknownFields()
	if err := strict.Decode(&metav1.ObjectMeta{}); err != nil {
		return field.ErrorList{field.Invalid(at, d.GetName(), strings.TrimPrefix(err.Error(), "json: "))}
	}
	if d.GetName() == "" && d.GetGenerateName() == "" {
		return field.ErrorList{field.Required(at.Child("name"), "")}
	}
	if problems := validation.IsDNS1123Subdomain(d.GetName()); d.GetName() != "" && len(problems) > 0 {
		return field.ErrorList{field.Invalid(at.Child("name"), d.GetName(), problems[0])}
	}
	return nil
}

// unite joins two lists; what both say of a field is said once.
func unite(first, second field.ErrorList) field.ErrorList {
	all := slices.Clone(first)
	for _, e := range second {
		if !slices.ContainsFunc(first, func(known *field.Error) bool { return known.Field == e.Field }) {
			all = append(all, e)
		}
	}
	slices.SortStableFunc(all, func(a, b *field.Error) int { return strings.Compare(a.Field, b.Field) })
	return all
}

// describe is a problem in one line.
func describe(e *field.Error) string {
	return fmt.Sprintf("%s: %s", e.Field, e.ErrorBody())
}
