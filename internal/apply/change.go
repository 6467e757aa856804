package apply

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Action is what happened to one object.
type Action string

const (
	Created Action = "Created"
	Updated Action = "Updated"
	Deleted Action = "Deleted"
)

// Change is one write that the cluster took.
type Change struct {
	Action Action
	Kind   schema.GroupVersionKind
	Key    types.NamespacedName
}

func (c Change) String() string {
	return fmt.Sprintf("%s %s %s", c.Action, c.Kind.Kind, c.Key.Name)
}

// ChangeSet lists the writes of one Sync, in order. Empty means that nothing
// was written, and so nothing is to be said.
type ChangeSet []Change
