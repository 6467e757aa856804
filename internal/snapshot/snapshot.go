// Package snapshot is what was seen of the cluster at one moment, as plain
// data. Decisions are made from it alone, so a test can write one as a literal.
package snapshot

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/dynamo-operator/dynamo-operator/internal/graph"
)

// Snapshot is the world around one object.
type Snapshot struct {
	// Owned are the children that the object controls, in a stable order.
	Owned []graph.Object
	// Pods are the pods behind the object's workloads, in a stable order.
	Pods []*corev1.Pod
}

// Find returns the owned child of type T with the given name.
func Find[T graph.Object](s Snapshot, name string) (T, bool) {
	for _, object := range s.Owned {
		if typed, ok := object.(T); ok && typed.GetName() == name {
			return typed, true
		}
	}
	var none T
	return none, false
}
