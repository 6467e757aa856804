package validation

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/policy"
)

// rollouts checks the annotations that say how workers are rolled out: one that cannot
// be read must not be taken for none, which would be straight through.
func rollouts(annotations map[string]string, at *field.Path) field.ErrorList {
	_, problems := policy.Parse(annotations)
	var errs field.ErrorList
	for _, p := range problems {
		errs = append(errs, field.Invalid(at.Key(p.Annotation), p.Value, p.Message))
	}
	return errs
}
