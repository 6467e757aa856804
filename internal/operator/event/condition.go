package event

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
)

// onTheWay are reasons of conditions that are false because something is not
// done yet, not because something is wrong.
var onTheWay = map[string]bool{
	v1alpha1.ReasonProfilingRunning:  true,
	v1alpha1.ReasonDeploymentCreated: true,
}

// Turned tells about each condition whose status or reason is another than
// before. A message that merely moves on is no event.
func Turned(r events.EventRecorder, about runtime.Object, before, after []metav1.Condition) {
	for _, c := range after {
		if c.Type == v1alpha1.ConditionSucceeded {
			continue // the condition that it sums up has told
		}
		was := meta.FindStatusCondition(before, c.Type)
		if was != nil && was.Status == c.Status && was.Reason == c.Reason {
			continue
		}
		kind := corev1.EventTypeNormal
		if c.Status == metav1.ConditionFalse && !onTheWay[c.Reason] {
			kind = corev1.EventTypeWarning
		}
		r.Eventf(about, nil, kind, c.Reason, "Reconcile", "%s", shortened(cmp.Or(c.Message, c.Reason)))
	}
}
