package apply

import (
	"context"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/fault"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
)

// ownerPresent asks the server, once a reconcile and before anything is made, whether the
// owner is there to stay. The cache may show children that deletion has taken
// away before it shows that the owner is being deleted; what would be made then
// is what deletion has just removed.
func (p *run) ownerPresent(ctx context.Context) error {
	if p.present != nil {
		return nil
	}
	id, err := p.identify(p.owner)
	if err != nil {
		return err
	}
	owner := &metav1.PartialObjectMetadata{}
	owner.SetGroupVersionKind(id.kind)
	err = p.direct.Get(ctx, types.NamespacedName{Namespace: p.owner.GetNamespace(), Name: p.owner.GetName()}, owner)
	switch {
	case apierrors.IsNotFound(err):
		return ownerDeleted(p.owner)
	case err != nil:
		return fmt.Errorf("look for %s: %w", id, err)
	case owner.GetUID() != p.owner.GetUID() || owner.GetDeletionTimestamp() != nil:
		return ownerDeleted(p.owner)
	}
	p.present = owner
	return nil
}

// ownerAsSeen reports whether the owner is to the server what was decided about. A
// user who takes something away and puts it back a moment later may be seen between
// the two: what is deleted then is wanted.
func (p *run) ownerAsSeen(ctx context.Context) (bool, error) {
	if err := p.ownerPresent(ctx); err != nil {
		return false, err
	}
	return p.present.GetGeneration() == p.owner.GetGeneration() && maps.Equal(p.present.GetAnnotations(), p.owner.GetAnnotations()), nil
}

func ownerDeleted(owner graph.Object) error {
	return fault.New(fault.Waiting, v1alpha1.ReasonDeleting, "%s is being deleted", owner.GetName())
}

// OwnerDeleted reports whether a reconcile was ended because its owner is going: there is
// nothing left to do, and nothing to say.
func OwnerDeleted(err error) bool {
	f, known := fault.From(err)
	return known && f.Reason == v1alpha1.ReasonDeleting
}

// namespaceTerminating reports whether nothing can be made because the namespace is
// being deleted, and the owner with it.
func namespaceTerminating(err error) bool {
	return apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}
