package validation

import (
	"regexp"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
)

// metadata checks what ends up as labels and annotations: one that the server
// refuses takes the whole workload with it.
func metadata(s *v1alpha1.SharedSpec, at *field.Path) field.ErrorList {
	errs := metavalidation.ValidateLabels(s.Labels, at.Child("labels"))
	errs = append(errs, apivalidation.ValidateAnnotations(s.Annotations, at.Child("annotations"))...)
	if m := s.ExtraPodMetadata; m != nil {
		errs = append(errs, metavalidation.ValidateLabels(m.Labels, at.Child("extraPodMetadata", "labels"))...)
		errs = append(errs, apivalidation.ValidateAnnotations(m.Annotations, at.Child("extraPodMetadata", "annotations"))...)
	}
	for name, value := range map[string]string{"componentType": string(s.ComponentType), "subComponentType": s.SubComponentType} {
		errs = append(errs, invalid(at.Child(name), value, "as a label ", validation.IsValidLabelValue(value))...)
	}
	return errs
}

// share is a number of pods, or a part of them.
var share = regexp.MustCompile(`^\d+%?$`)

var strategies = []string{string(appsv1.RecreateDeploymentStrategyType), string(appsv1.RollingUpdateDeploymentStrategyType)}

// strategy checks the annotations by which a user tunes how pods are replaced.
func strategy(annotations map[string]string, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if chosen := annotations[v1alpha1.AnnotationDeploymentStrategy]; chosen != "" && !slices.Contains(strategies, chosen) {
		errs = append(errs, field.NotSupported(at.Key(v1alpha1.AnnotationDeploymentStrategy), chosen, strategies))
	}
	for _, key := range []string{v1alpha1.AnnotationMaxSurge, v1alpha1.AnnotationMaxUnavailable} {
		if value, set := annotations[key]; set && value != "" && !share.MatchString(value) {
			errs = append(errs, field.Invalid(at.Key(key), value, "is neither a number such as 1 nor a share such as 25%"))
		}
	}
	if value := annotations[v1alpha1.AnnotationMinReadySeconds]; value != "" {
		if _, err := strconv.ParseUint(value, 10, 16); err != nil {
			errs = append(errs, field.Invalid(at.Key(v1alpha1.AnnotationMinReadySeconds), value, "is no number of seconds such as 30, or too large a one"))
		}
	}
	return errs
}
