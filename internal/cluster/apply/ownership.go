package apply

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/fault"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/guard"
)

// Ownership keeps children off objects that are somebody else's: what has the name
// of a child may be an administrator's, and a graph its tenant's.
const Ownership guard.Guard = "ownership"

// manager is the name under which an owner's wishes are recorded. Owners of a
// joint object have one each, so that none takes away what another wants. So have
// requests: on the graph that one makes, its own controller notes decisions.
func manager(owner graph.Object, tie graph.Ownership) string {
	switch tie {
	case graph.OwnershipShared:
		return FieldManager + "-" + string(owner.GetUID())
	case graph.OwnershipByLabel:
		return FieldManager + "-request"
	default:
		return FieldManager
	}
}

// claim decides whether a live object is ours to write. One that belongs to
// somebody else and has a name that we need is a conflict; one that serves the
// whole namespace and was brought by somebody else is left as it is.
func (p *run) claim(ctx context.Context, live graph.Object, how graph.Ownership, id identity) (mine bool, err error) {
	switch how {
	case graph.OwnershipNone:
		return live.GetLabels()["app.kubernetes.io/managed-by"] == FieldManager, nil
	case graph.OwnershipShared:
		mine = live.GetLabels()[v1alpha1.LabelManagedBy] == v1alpha1.ManagedBy
	case graph.OwnershipByLabel:
		mine = graph.OfRequest(live, p.owner)
	default:
		mine = metav1.IsControlledBy(live, p.owner)
	}
	if mine || Ownership.Off() {
		return true, nil
	}
	if how == graph.OwnershipByLabel {
		return false, fault.New(fault.Conflict, v1alpha1.ReasonNameConflict,
			"%s exists and is not of this request; remove it, or choose another name", id)
	}
	ref := metav1.GetControllerOf(live)
	if ref == nil {
		return false, fault.New(fault.Conflict, v1alpha1.ReasonNameConflict,
			"%s exists and is controlled by nobody; rename the service or remove that object", id)
	}
	bygone, err := p.orphaned(ctx, ref)
	switch {
	case err != nil:
		return false, err
	case bygone:
		return false, fault.New(fault.Waiting, v1alpha1.ReasonChildTerminating,
			"%s is left from an earlier %s %s that was deleted; it is made again once the garbage collector has removed it", id, ref.Kind, ref.Name)
	}
	return false, fault.New(fault.Conflict, v1alpha1.ReasonNameConflict,
		"%s exists and is controlled by %s %s; rename the service or remove that object", id, ref.Kind, ref.Name)
}

// Disown lets objects of an owner that is about to go outlive it.
func (a *Applier) Disown(ctx context.Context, owner graph.Object, objects []graph.Object) error {
	p := &run{Applier: a, owner: owner}
	for _, object := range objects {
		id, err := a.identify(object)
		if err != nil {
			return err
		}
		action, err := p.disown(ctx, object, id)
		if client.IgnoreNotFound(err) != nil {
			return err
		}
		if action != "" {
			p.changed(action, id)
		}
	}
	return nil
}

// disown takes the owner's reference off an object that is to outlive it from now
// on, so that the garbage collector leaves it when the owner goes.
func (p *run) disown(ctx context.Context, live graph.Object, id identity) (Action, error) {
	before, after := live.DeepCopyObject().(client.Object), live.DeepCopyObject().(client.Object)
	after.SetOwnerReferences(slices.DeleteFunc(after.GetOwnerReferences(), func(ref metav1.OwnerReference) bool {
		return ref.UID == p.owner.GetUID()
	}))
	// The list is replaced as a whole, so it must be the one that we saw.
	err := p.client.Patch(ctx, after, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), client.FieldOwner(FieldManager))
	if err != nil {
		return "", fmt.Errorf("take the owner off %s: %w", id, err)
	}
	return Updated, nil
}

// orphaned reports whether a controller reference names an earlier object of the
// owner's name. It is gone, since there is only ever one, and what it controlled
// follows it. Which of the two is the later one only the server knows.
func (p *run) orphaned(ctx context.Context, ref *metav1.OwnerReference) (bool, error) {
	id, err := p.identify(p.owner)
	if err != nil {
		return false, err
	}
	if ref.Name != p.owner.GetName() || ref.Kind != id.kind.Kind || ref.APIVersion != id.kind.GroupVersion().String() {
		return false, nil
	}
	return true, p.ownerPresent(ctx)
}
