// Package event words the events that the operator emits. There is one for
// what happened, and none when nothing did.
package event

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"

	"github.com/dynamo-operator/dynamo-operator/internal/cluster/apply"
)

// limit is how long the API lets a note be.
const limit = 1024

// Applied tells about the writes of a reconcile: one event for what was created, one
// for what was updated, and so on.
func Applied(r events.EventRecorder, about runtime.Object, changes apply.ChangeSet) {
	for _, action := range []apply.Action{apply.Created, apply.Updated, apply.Replaced, apply.Deleted} {
		if what := listed(changes, action); what != "" {
			r.Eventf(about, nil, corev1.EventTypeNormal, string(action), "Reconcile", "%s", shortened(string(action)+" "+what))
		}
	}
}

// reasonSpecWarning is for what is admitted and not done as it is written.
const reasonSpecWarning = "SpecWarning"

// Warned tells what of an object will not be as it is written: those who wrote it
// past the webhook were not told.
func Warned(r events.EventRecorder, about runtime.Object, warnings []string) {
	if len(warnings) > 0 {
		r.Eventf(about, nil, corev1.EventTypeWarning, reasonSpecWarning, "Reconcile", "%s", shortened(strings.Join(warnings, "; ")))
	}
}

// listed names the objects that something happened to, by kind: "Service a, b;
// Role c".
func listed(changes apply.ChangeSet, action apply.Action) string {
	var (
		kinds []string
		names = map[string][]string{}
	)
	for _, c := range changes {
		if c.Action != action {
			continue
		}
		kind := c.Kind.Kind
		if names[kind] == nil {
			kinds = append(kinds, kind)
		}
		names[kind] = append(names[kind], c.Key.Name)
	}
	var parts []string
	for _, kind := range kinds {
		parts = append(parts, fmt.Sprintf("%s %s", kind, strings.Join(names[kind], ", ")))
	}
	return strings.Join(parts, "; ")
}

func shortened(note string) string {
	if len(note) <= limit {
		return note
	}
	return strings.ToValidUTF8(note[:limit-4], "") + " ..."
}
