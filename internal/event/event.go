// Package event words the events that the operator emits. There is one for
// what happened, and none when nothing did.
package event

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"

	"github.com/dynamo-operator/dynamo-operator/internal/apply"
)

// Applied tells about each write of a change set.
func Applied(r events.EventRecorder, about runtime.Object, changes apply.ChangeSet) {
	for _, c := range changes {
		reason := string(c.Action) + c.Kind.Kind
		r.Eventf(about, nil, corev1.EventTypeNormal, reason, "Reconcile", "%s %s %s", c.Action, c.Kind.Kind, c.Key.Name)
	}
}
