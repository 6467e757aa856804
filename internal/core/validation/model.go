package validation

import (
	"slices"
	"strings"
	"unicode"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	models "github.com/dynamo-operator/dynamo-operator/internal/core/loraplan"
)

// sources are where engines can fetch an adapter from.
var sources = []string{"s3://", "hf://", "file://"}

// Model checks a DynamoModel on its own.
func Model(model *v1alpha1.DynamoModel) field.ErrorList {
	at := field.NewPath("spec")
	var errs field.ErrorList
	if model.Spec.ModelName == "" {
		errs = append(errs, field.Required(at.Child("modelName"), ""))
	}
	if model.Spec.BaseModelName == "" {
		errs = append(errs, field.Required(at.Child("baseModelName"), ""))
	}
	switch model.Spec.ModelType {
	case "", v1alpha1.ModelTypeBase, v1alpha1.ModelTypeAdapter:
	case v1alpha1.ModelTypeLoRA:
		errs = append(errs, adapterName(model.Spec.ModelName, at.Child("modelName"))...)
		errs = append(errs, source(model.Spec.Source, at.Child("source"))...)
	default:
		errs = append(errs, field.NotSupported(at.Child("modelType"), model.Spec.ModelType,
			[]v1alpha1.ModelType{v1alpha1.ModelTypeBase, v1alpha1.ModelTypeLoRA, v1alpha1.ModelTypeAdapter}))
	}
	return sorted(errs)
}

func adapterName(name string, at *field.Path) field.ErrorList {
	if fault := models.NameFault(name); name != "" && fault != "" {
		return field.ErrorList{field.Invalid(at, name, fault)}
	}
	return nil
}

func source(s *v1alpha1.ModelSource, at *field.Path) field.ErrorList {
	switch uri := at.Child("uri"); {
	case s == nil:
		return field.ErrorList{field.Required(at, "a lora is fetched from somewhere")}
	case s.URI == "":
		return field.ErrorList{field.Required(uri, "")}
	case !slices.ContainsFunc(sources, func(prefix string) bool { return strings.HasPrefix(s.URI, prefix) }):
		return field.ErrorList{field.Invalid(uri, s.URI, "must begin with "+strings.Join(sources, ", "))}
	case slices.Contains(sources, s.URI), strings.ContainsFunc(s.URI, unicode.IsSpace):
		return field.ErrorList{field.Invalid(uri, s.URI, "must name a place, without spaces")}
	default:
		return nil
	}
}
