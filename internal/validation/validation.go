// Package validation holds the rules that a spec must obey, once, for the
// webhook, the controllers and the command line. A function returns all
// violations at once, in a stable order; none looks at the cluster.
package validation

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/fault"
)

// Fault turns violations into the error that a reconcile ends with: the user
// has to edit the object. It is nil when there are none.
func Fault(errs field.ErrorList) error {
	if len(errs) == 0 {
		return nil
	}
	return fault.New(fault.Invalid, v1alpha1.ReasonValidationFailed, "%v", errs.ToAggregate())
}

// sorted brings violations into the order in which a reader looks for them.
func sorted(errs field.ErrorList) field.ErrorList {
	slices.SortStableFunc(errs, func(a, b *field.Error) int {
		return cmp.Or(cmp.Compare(a.Field, b.Field), cmp.Compare(a.Type, b.Type), cmp.Compare(a.Detail, b.Detail))
	})
	return errs
}
