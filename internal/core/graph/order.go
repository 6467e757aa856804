package graph

import (
	"maps"
	"slices"
	"strings"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
)

// StartAfter reads the names in a service's AnnotationStartAfter as they are
// written, empty ones among them; none if it says nothing.
func StartAfter(annotations map[string]string) []string {
	text := strings.TrimSpace(annotations[v1alpha1.AnnotationStartAfter])
	if text == "" {
		return nil
	}
	names := strings.Split(text, ",")
	for i := range names {
		names[i] = strings.TrimSpace(names[i])
	}
	return names
}

func startAfter(annotations map[string]string) []string {
	return slices.Compact(slices.Sorted(slices.Values(StartAfter(annotations))))
}

// withoutOrder drops what counts for a graph alone: on a pod template a change of
// it would replace pods that have long started.
func withoutOrder(annotations map[string]string) map[string]string {
	if _, given := annotations[v1alpha1.AnnotationStartAfter]; !given {
		return annotations
	}
	rest := maps.Clone(annotations)
	delete(rest, v1alpha1.AnnotationStartAfter)
	return rest
}
