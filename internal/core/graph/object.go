package graph

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Object is any Kubernetes object with metadata. Clients satisfy it with their
// own object type; pure code needs no more than this.
type Object interface {
	metav1.Object
	runtime.Object
}

// Ref names an object among the children of one owner.
type Ref struct {
	Kind, Name string
}

// Desired is an object that an owner wants to exist.
type Desired struct {
	Object
	Ownership Ownership
	// CreateOnly is made if it is absent and left alone after that: it holds data, or
	// others write to it.
	CreateOnly   bool
	UpdatePolicy UpdatePolicy
}

// UpdatePolicy is when an object that exists may take a change.
type UpdatePolicy int

const (
	// UpdateNow is whenever it is wanted.
	UpdateNow UpdatePolicy = iota
	// UpdateOneAtATime is when none of another name is taking one.
	UpdateOneAtATime
	// UpdateNever is not now.
	UpdateNever
)

// Ownership is how an object hangs on the owner that wants it.
type Ownership int

const (
	// OwnershipController belongs to one owner and goes with it.
	OwnershipController Ownership = iota
	// OwnershipShared belongs to all owners that want it and goes with the last.
	OwnershipShared
	// OwnershipNone serves a namespace and outlives any owner.
	OwnershipNone
	// OwnershipByLabel leads back to the request that wants it by labels: it outlives the
	// request and may be in another namespace, but is nobody else's.
	OwnershipByLabel
)
