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

// Wanted is an object that an owner wants to exist.
type Wanted struct {
	Object
	Tie Tie
	// Once is made if it is absent and left alone after that: it holds data, or
	// others write to it.
	Once bool
	Turn Turn
}

// Turn is when an object that exists may take a change.
type Turn int

const (
	// AtOnce is whenever it is wanted.
	AtOnce Turn = iota
	// InTurn is when none of another name is taking one.
	InTurn
	// Later is not now.
	Later
)

// Tie is how an object hangs on the owner that wants it.
type Tie int

const (
	// Controlled belongs to one owner and goes with it.
	Controlled Tie = iota
	// Joint belongs to all owners that want it and goes with the last.
	Joint
	// Loose serves a namespace and outlives any owner.
	Loose
	// Labelled leads back to the request that wants it by labels: it outlives the
	// request and may be in another namespace, but is nobody else's.
	Labelled
)
