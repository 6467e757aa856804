package apply

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
)

// Action is what happened to one object.
type Action string

const (
	Created Action = "Created"
	Updated Action = "Updated"
	Deleted Action = "Deleted"
	// Adopted objects of an earlier operator are recorded as ours.
	Adopted Action = "Adopted"
	// Replaced objects cannot take a change: they are deleted to be made again.
	Replaced Action = "Replaced"
	// Awaited objects were written by an earlier reconcile and are still seen as they
	// were before: what they say is about that.
	Awaited Action = "Awaited"
	// Postponed objects are to change once it is their turn, and were left as
	// they are.
	Postponed Action = "Postponed"
)

// Change is one write that the cluster took, or one that is still to come.
type Change struct {
	Action Action
	Kind   schema.GroupVersionKind
	Key    types.NamespacedName
}

func (c Change) String() string {
	return fmt.Sprintf("%s %s %s", c.Action, c.Kind.Kind, c.Key.Name)
}

// ChangeSet lists what one Sync did, in order.
type ChangeSet []Change

// Written names the objects that are not any more what they were. None means
// that nothing was written, and so nothing is to be said.
func (s ChangeSet) Written() []graph.Ref {
	return s.named(func(a Action) bool { return a != Postponed })
}

// Postponed names the objects whose turn has not come.
func (s ChangeSet) Postponed() []graph.Ref {
	return s.named(func(a Action) bool { return a == Postponed })
}

func (s ChangeSet) named(which func(Action) bool) []graph.Ref {
	var refs []graph.Ref
	for _, c := range s {
		if which(c.Action) {
			refs = append(refs, graph.Ref{Kind: c.Kind.Kind, Name: c.Key.Name})
		}
	}
	return refs
}
