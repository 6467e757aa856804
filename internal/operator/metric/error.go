package metric

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/dynamo-operator/dynamo-operator/internal/core/fault"
)

// errorTypes are tried in this order.
var errorTypes = []struct {
	name string
	is   func(error) bool
}{
	{"not_found", apierrors.IsNotFound},
	{"already_exists", apierrors.IsAlreadyExists},
	{"conflict", func(err error) bool { return apierrors.IsConflict(err) || ofClass(err, fault.Conflict) }},
	{"validation", func(err error) bool { return apierrors.IsInvalid(err) || ofClass(err, fault.Invalid) }},
	{"bad_request", apierrors.IsBadRequest},
	{"unauthorized", apierrors.IsUnauthorized},
	{"forbidden", apierrors.IsForbidden},
	{"timeout", func(err error) bool { return apierrors.IsTimeout(err) || errors.Is(err, context.DeadlineExceeded) }},
	{"server_timeout", apierrors.IsServerTimeout},
	{"unavailable", apierrors.IsServiceUnavailable},
	{"rate_limited", apierrors.IsTooManyRequests},
}

// ErrorType is one of few words for an error.
func ErrorType(err error) string {
	for _, t := range errorTypes {
		if t.is(err) {
			return t.name
		}
	}
	return "internal"
}

func ofClass(err error, class fault.Class) bool {
	f, known := fault.From(err)
	return known && f.Class == class
}
