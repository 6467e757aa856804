package apply

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
)

// HoldWithNote is Hold with an annotation beside the finalizer, in one write; an
// empty value removes the annotation. It is a patch of the difference and no
// apply, which would take away what else we applied to the object.
func (a *Applier) HoldWithNote(ctx context.Context, object graph.Object, finalizer, annotation, value string) error {
	id, err := a.identify(object)
	if err != nil {
		return err
	}
	held := slices.Contains(object.GetFinalizers(), finalizer)
	if held && object.GetAnnotations()[annotation] == value {
		return nil
	}
	target := object.DeepCopyObject().(client.Object)
	before := object.DeepCopyObject().(client.Object)
	if !held {
		target.SetFinalizers(append(target.GetFinalizers(), finalizer))
	}
	annotations := maps.Clone(object.GetAnnotations())
	if annotations == nil {
		annotations = map[string]string{}
	}
	if annotations[annotation] = value; value == "" {
		delete(annotations, annotation)
	}
	target.SetAnnotations(annotations)
	// The list of finalizers is replaced as a whole, so it must be the one that
	// we saw. That the object is gone is an error: nothing may follow.
	err = a.client.Patch(ctx, target, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), client.FieldOwner(FieldManager))
	if err != nil {
		return fmt.Errorf("hold %s: %w", id, err)
	}
	a.tell(Change{Updated, id.kind, id.key})
	return nil
}
