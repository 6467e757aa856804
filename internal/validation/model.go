package validation

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
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
	if model.Spec.ModelType == v1alpha1.ModelTypeLoRA {
		errs = append(errs, source(model.Spec.Source, at.Child("source"))...)
	}
	return sorted(errs)
}

func source(s *v1alpha1.ModelSource, at *field.Path) field.ErrorList {
	switch uri := at.Child("uri"); {
	case s == nil:
		return field.ErrorList{field.Required(at, "a lora is fetched from somewhere")}
	case s.URI == "":
		return field.ErrorList{field.Required(uri, "")}
	case !slices.ContainsFunc(sources, func(prefix string) bool { return strings.HasPrefix(s.URI, prefix) }):
		return field.ErrorList{field.Invalid(uri, s.URI, "must begin with "+strings.Join(sources, ", "))}
	default:
		return nil
	}
}
