package apply

import (
	"context"
	"fmt"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
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
func (p *run) claim(ctx context.Context, live graph.Object, w graph.Desired, id identity) (mine bool, err error) {
	how := w.Ownership
	switch how {
	case graph.OwnershipNone:
		return live.GetLabels()["app.kubernetes.io/managed-by"] == FieldManager, nil
	case graph.OwnershipShared:
		mine = live.GetLabels()[v1alpha1.LabelManagedBy] == v1alpha1.ManagedBy
	case graph.OwnershipByLabel:
		mine = graph.OfRequest(live, p.owner)
	case graph.OwnershipByUID:
		mine = graph.CreatedFor(live, p.owner)
	default:
		mine = metav1.IsControlledBy(live, p.owner)
	}
	if mine || Ownership.Off() {
		return true, nil
	}
	if how == graph.OwnershipByUID {
		return false, nil // somebody brought it before us: it serves as it is
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
	if above := metav1.GetControllerOf(p.owner); above != nil && above.UID == ref.UID && graph.FrontOf(live) {
		return false, nil // the graph has taken it over
	}
	if w.FromChild {
		if mine, err := p.childs(ctx, ref); mine || err != nil {
			return mine, err
		}
	}
	orphaned, err := p.orphaned(ctx, ref)
	switch {
	case err != nil:
		return false, err
	case orphaned:
		return false, fault.New(fault.Waiting, v1alpha1.ReasonChildTerminating,
			"%s is left from an earlier %s %s that was deleted; it is made again once the garbage collector has removed it", id, ref.Kind, ref.Name)
	}
	return false, fault.New(fault.Conflict, v1alpha1.ReasonNameConflict,
		"%s exists and is controlled by %s %s; rename the service or remove that object", id, ref.Kind, ref.Name)
}

// childs reports whether a controller reference names a component that the owner
// controls. Both are written by the same manager, so that the owner's reference takes the
// place of the child's.
func (p *run) childs(ctx context.Context, ref *metav1.OwnerReference) (bool, error) {
	if ref.Kind != v1alpha1.KindDynamoComponentDeployment {
		return false, nil
	}
	child := &v1alpha1.DynamoComponentDeployment{}
	if err := p.client.Get(ctx, client.ObjectKey{Namespace: p.owner.GetNamespace(), Name: ref.Name}, child); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	return child.UID == ref.UID && metav1.IsControlledBy(child, p.owner), nil
}

// ReleaseFromOwner replaces the owner's reference to objects that an earlier operator
// made by the labels of OwnershipByUID, so that the garbage collector leaves them.
func (a *Applier) ReleaseFromOwner(ctx context.Context, owner graph.Object, objects []graph.Object) error {
	ofOwner := func(ref metav1.OwnerReference) bool { return ref.UID == owner.GetUID() }
	for _, object := range objects {
		if !slices.ContainsFunc(object.GetOwnerReferences(), ofOwner) {
			continue
		}
		id, err := a.identify(object)
		if err != nil {
			return err
		}
		before, after := object.DeepCopyObject().(client.Object), object.DeepCopyObject().(client.Object)
		after.SetOwnerReferences(slices.DeleteFunc(after.GetOwnerReferences(), ofOwner))
		labels := maps.Clone(after.GetLabels())
		if labels == nil {
			labels = map[string]string{}
		}
		maps.Copy(labels, graph.UIDLabels(owner))
		after.SetLabels(labels)
		// The list is replaced as a whole, so it must be the one that we saw.
		err = a.client.Patch(ctx, after, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), client.FieldOwner(FieldManager))
		switch {
		case apierrors.IsNotFound(err):
		case err != nil:
			return fmt.Errorf("remove the owner reference of %s: %w", id, err)
		default:
			a.tell(Change{Updated, id.kind, id.key})
		}
	}
	return nil
}

// HandOver has an object of OwnershipByUID be one that was created for another owner.
func (a *Applier) HandOver(ctx context.Context, object, to graph.Object) error {
	id, err := a.identify(object)
	if err != nil {
		return err
	}
	before, after := object.DeepCopyObject().(client.Object), object.DeepCopyObject().(client.Object)
	labels := maps.Clone(after.GetLabels())
	maps.Copy(labels, graph.UIDLabels(to))
	after.SetLabels(labels)
	err = a.client.Patch(ctx, after, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), client.FieldOwner(FieldManager))
	switch {
	case apierrors.IsNotFound(err):
	case err != nil:
		return fmt.Errorf("hand %s over to %s: %w", id, to.GetName(), err)
	default:
		a.tell(Change{Updated, id.kind, id.key})
	}
	return nil
}

// orphaned reports whether a controller reference names an earlier object of the
// owner's name. It is gone, since there is only ever one, and what it controlled
// follows it. Which of the two is the later one only the server knows.
func (p *run) orphaned(ctx context.Context, ref *metav1.OwnerReference) (bool, error) {
	id, err := p.identify(p.owner)
	if err != nil {
		return false, err
	}
	named, err := schema.ParseGroupVersion(ref.APIVersion)
	if err != nil || ref.Name != p.owner.GetName() || ref.Kind != id.kind.Kind || named.Group != id.kind.Group {
		return false, nil
	}
	return true, p.ownerPresent(ctx)
}
