// Package conversion turns objects of the API group nvidia.com from v1alpha1 into
// v1beta1 and back. It is pure and total: no call, no clock, and no input that it
// fails on, so that every replica of the webhook, the command line and the graph
// builder can use the same functions.
//
// Most fields exist in both versions. What the target cannot say is kept, sparse
// and typed as in the source, in an annotation of the target (the payload), and
// put back on the way home. Payloads are written by whoever may write the object,
// so one is never believed over the object itself: a restored object counts only
// if converting it again gives what is visible now. docs/design/0013 has the
// rules and the reasons.
//
// Status has no payload: every field of it exists in both versions, because a
// status decides what is made and an annotation is not protected as a status is.
//
// A conversion returns, beside the object, the parts of a payload that did not
// count, for whoever wants to tell. Exported functions do not modify their argument,
// and the result shares no memory with it.
package conversion

import (
	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/api/v1beta1"
)

// The versions that objects are converted between.
var (
	Alpha = v1alpha1.SchemeGroupVersion.Version
	Beta  = v1beta1.SchemeGroupVersion.Version
)
