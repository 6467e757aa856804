// Package fault names the consequences an error can have for a reconcile:
// who has to act before a retry makes sense. Constructors carry the CamelCase
// reason that the status will show. Anything that is not a Fault is transient
// and is retried with back-off.
package fault

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// Class says what has to happen before a retry can help.
type Class string

const (
	// Invalid: the user must edit the object; retrying is pointless.
	Invalid Class = "Invalid"
	// Waiting: something outside must appear or change; its watch wakes us.
	Waiting Class = "Waiting"
	// Unsupported: the cluster lacks an optional API; the CRD watch wakes us.
	Unsupported Class = "Unsupported"
	// Conflict: an object of somebody else has a name that we need.
	Conflict Class = "Conflict"
)

// Fault is an error with a known consequence.
type Fault struct {
	Class   Class
	Reason  string // CamelCase, becomes the condition's reason
	Message string // one sentence for the person it will wake
	// After is when a fault that is waited out is looked at again even if no
	// watch tells of a change; zero leaves it to the watches.
	After time.Duration
}

func (f *Fault) Error() string { return f.Message }

// New makes a Fault; its message follows fmt.Sprintf.
func New(class Class, reason, format string, args ...any) *Fault {
	return &Fault{Class: class, Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// Again has the fault looked at again after a while, for what no watch can tell.
func (f *Fault) Again(after time.Duration) *Fault {
	f.After = after
	return f
}

// From finds the Fault in an error chain.
func From(err error) (*Fault, bool) {
	return errors.AsType[*Fault](err)
}

// Retry reports whether back-off is the right answer to err: some part of it
// is not a fault, or nothing that we watch will tell when it is over.
func Retry(err error) bool {
	switch e := err.(type) { //nolint:errorlint // walks the tree itself, branch by branch
	case nil:
		return false
	case *Fault:
		return e.Class == Conflict
	case interface{ Unwrap() []error }:
		return slices.ContainsFunc(e.Unwrap(), Retry)
	case interface{ Unwrap() error }:
		inner := e.Unwrap()
		return inner == nil || Retry(inner)
	default:
		return true
	}
}

// Wait is the soonest time after which a fault in err is to be looked at again;
// zero when only a change can help.
func Wait(err error) time.Duration {
	switch e := err.(type) { //nolint:errorlint // walks the tree itself, branch by branch
	case nil:
		return 0
	case *Fault:
		return e.After
	case interface{ Unwrap() []error }:
		soonest := time.Duration(0)
		for _, inner := range e.Unwrap() {
			if w := Wait(inner); w > 0 && (soonest == 0 || w < soonest) {
				soonest = w
			}
		}
		return soonest
	case interface{ Unwrap() error }:
		return Wait(e.Unwrap())
	default:
		return 0
	}
}
