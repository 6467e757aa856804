// Package status says what was seen, in the words of the API: one function a
// kind from graph and snapshot to the whole status. It takes the time as a
// value, so that the same world always gives the same status.
package status

import (
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/fault"
	"github.com/dynamo-operator/dynamo-operator/internal/core/sanitise"
)

// condition is one condition before it meets the earlier ones.
type condition struct {
	ok              bool
	reason, message string
}

// setCondition writes a verdict into conditions. The transition time moves only when
// the verdict turns. A message may quote what a tenant wrote, so it is sanitised.
func setCondition(conditions *[]metav1.Condition, kind string, v condition, generation int64, now metav1.Time) {
	state := metav1.ConditionFalse
	if v.ok {
		state = metav1.ConditionTrue
	}
	meta.SetStatusCondition(conditions, metav1.Condition{
		Type: kind, Status: state, Reason: v.reason, Message: fitted(sanitise.Text(v.message)),
		ObservedGeneration: generation, LastTransitionTime: now,
	})
}

// longestMessage is how many characters the API lets a message have.
const longestMessage = 32768

// fitted cuts a message short that the API would refuse, and the whole status with
// it: it may quote what others wrote, at any length.
func fitted(message string) string {
	if len(message) <= longestMessage || utf8.RuneCountInString(message) <= longestMessage {
		return message
	}
	const more = "..."
	return string([]rune(message)[:longestMessage-len(more)]) + more
}

// failure is the verdict on an error. A fault explains itself; anything else
// is retried, and its text is the best that there is.
func failure(err error) condition {
	if f, known := fault.From(err); known {
		return condition{reason: f.Reason, message: err.Error()}
	}
	return condition{reason: v1alpha1.ReasonReconcileFailed, message: err.Error()}
}
