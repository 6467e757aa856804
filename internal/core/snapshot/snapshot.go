// Package snapshot is what was seen of the cluster at one moment, as plain
// data. Decisions are made from it alone, so a test can write one as a literal.
package snapshot

import (
	"slices"
	"time"

	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
)

// Snapshot is the world around one object.
type Snapshot struct {
	// Taken is when it was seen.
	Taken time.Time
	// Owned are the children that the object controls, in a stable order.
	Owned []graph.Object
	// Beneath are objects that others made from those children, such as Grove's
	// cliques. They are read, never written.
	Beneath []graph.Object
	// Written are children that were written after the snapshot was taken: what
	// it shows of them is no longer true.
	Written []graph.Ref
	// Postponed are children that are to change and whose turn has not come.
	Postponed []graph.Ref
	// Limited says which services may not have the replicas that were asked for, and who
	// holds the GPUs; empty if none is limited.
	Limited string
	// LimitedBy is whose budget it is that limits, by service; the others are not in it.
	LimitedBy map[string]string
	// Granted are the replicas that budgets leave of what was asked for, by service; those
	// that count against none are not in it.
	Granted map[string]int
	// Dormancy is there while the graph scales to zero.
	Dormancy *Dormancy
	// Evidence is what was seen of the pods beneath those children, by those who
	// look at pods.
	Evidence Evidence
}

// Outdated reports whether a child was written after the snapshot was taken.
// Nothing good may be said of it before it was seen again.
func (s Snapshot) Outdated(kind, name string) bool {
	return slices.Contains(s.Written, graph.Ref{Kind: kind, Name: name})
}

// Find returns the object of type T with the given name.
func Find[T graph.Object](s Snapshot, name string) (T, bool) {
	for _, object := range slices.Concat(s.Owned, s.Beneath) {
		if typed, ok := object.(T); ok && typed.GetName() == name {
			return typed, true
		}
	}
	var none T
	return none, false
}
