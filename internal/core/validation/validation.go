// Package validation holds the rules that a spec must obey, once, for the
// webhook, the controllers and the command line. A function returns all
// violations at once, in a stable order; none looks at the cluster.
package validation

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/fault"
	"github.com/dynamo-operator/dynamo-operator/internal/core/guard"
)

// Judgement has controllers refuse what the webhooks refuse: those fail open, so
// what nobody was asked about may be stored.
const Judgement guard.Guard = "validation"

// Fault turns violations into the error that a reconcile ends with: the user
// has to edit the object. It is nil when there are none.
func Fault(errs field.ErrorList) error {
	if len(errs) == 0 || Judgement.Off() {
		return nil
	}
	return fault.New(fault.Invalid, v1alpha1.ReasonValidationFailed, "%v", Brief(errs).ToAggregate())
}

// maxProblems and maxValue bound what is said about an object: a condition has
// room for some thousand characters, and whoever writes the object could fill it.
const (
	maxProblems = 20
	maxValue    = 120
)

// Brief is the beginning of a long list, and how many more there are.
func Brief(errs field.ErrorList) field.ErrorList {
	if len(errs) <= maxProblems {
		return errs
	}
	more := field.Invalid(field.NewPath("spec"), "", fmt.Sprintf("and %d more problems", len(errs)-maxProblems))
	return append(slices.Clone(errs[:maxProblems]), more)
}

// short cuts a value that is only quoted so that its place is found.
func short(value any) any {
	text, ok := value.(string)
	if !ok || len(text) <= maxValue {
		return value
	}
	return strings.ToValidUTF8(text[:maxValue], "") + "..."
}

// sorted brings violations into the order in which a reader looks for them, and
// cuts long values.
func sorted(errs field.ErrorList) field.ErrorList {
	for _, e := range errs {
		e.BadValue = short(e.BadValue)
	}
	slices.SortStableFunc(errs, func(a, b *field.Error) int {
		return cmp.Or(cmp.Compare(a.Field, b.Field), cmp.Compare(a.Type, b.Type), cmp.Compare(a.Detail, b.Detail))
	})
	return errs
}
