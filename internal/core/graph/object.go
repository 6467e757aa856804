package graph

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
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
	CreateOnly bool
	// FromChild has a child of the owner hand it over, if that controls it.
	FromChild    bool
	UpdatePolicy UpdatePolicy
	// RetainTemplates has a workload that an earlier operator made keep its pod
	// templates until others are wanted than now.
	RetainTemplates bool
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
	// OwnershipByUID is labelled with the uid of the graph that it was created for, and has
	// no owner reference: the garbage collector never deletes it. Whether it goes with
	// the graph is decided by the graph's finalizer.
	OwnershipByUID
)

// MadeFor reports whether an object that names an owner was made for it: it is controlled by
// that, or of OwnershipShared. Others let their own objects name an owner, to have them
// collected with it. What names a request its profilers made: they are no controllers.
func MadeFor(object, owner Object) bool {
	if _, request := owner.(*v1alpha1.DynamoGraphDeploymentRequest); request {
		return true
	}
	return metav1.IsControlledBy(object, owner) || object.GetLabels()[v1alpha1.LabelManagedBy] == v1alpha1.ManagedBy
}

// UIDLabels are the labels of an object of OwnershipByUID. An owner that no server
// knows yet has no uid.
func UIDLabels(owner Object) map[string]string {
	labels := map[string]string{v1alpha1.LabelGraphName: owner.GetName()}
	if uid := owner.GetUID(); uid != "" {
		labels[v1alpha1.LabelGraphUID] = string(uid)
	}
	return labels
}

// CreatedFor reports whether an object of OwnershipByUID was created for an owner.
func CreatedFor(object, owner Object) bool {
	return owner.GetUID() != "" && object.GetLabels()[v1alpha1.LabelGraphUID] == string(owner.GetUID())
}
