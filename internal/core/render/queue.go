package render

import (
	"cmp"
	"strings"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/snapshot"
)

// defaultQueue is the KAI queue of graphs that name none.
const defaultQueue = "dynamo"

// Queue is the KAI queue that a graph's pods are scheduled from; empty where
// there is no KAI scheduler.
func Queue(annotations map[string]string, have snapshot.Capabilities) string {
	if !have.All(snapshot.APIKAI) {
		return ""
	}
	return cmp.Or(strings.TrimSpace(annotations[v1alpha1.AnnotationKaiQueue]), defaultQueue)
}
