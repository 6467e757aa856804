package apply

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
)

// Annotate records something of ours on an object that is not a child, such as
// a decision that has to outlive this process.
func (a *Applier) Annotate(ctx context.Context, object graph.Object, annotations map[string]string) error {
	id, err := a.identify(object)
	if err != nil {
		return err
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid":         object.GetUID(), // an object made anew is not the one that we decided about
		"annotations": annotations,
	}})
	if err != nil {
		return err
	}
	// An apply would convert the object into every version that its managed fields
	// name, and wait for who does that.
	target := object.DeepCopyObject().(client.Object)
	if err := a.client.Patch(ctx, target, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(FieldManager)); err != nil {
		return fmt.Errorf("annotate %s: %w", id, err)
	}
	a.tell(Change{Updated, id.kind, id.key})
	return nil
}

// Merge changes single fields of an object that is not a child.
func (a *Applier) Merge(ctx context.Context, object graph.Object, fields map[string]any) error {
	id, err := a.identify(object)
	if err != nil {
		return err
	}
	patch, err := json.Marshal(fields)
	if err != nil {
		return err
	}
	target := object.DeepCopyObject().(client.Object)
	if err := a.client.Patch(ctx, target, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(FieldManager)); err != nil {
		return fmt.Errorf("change %s: %w", id, err)
	}
	a.tell(Change{Updated, id.kind, id.key})
	return nil
}

// Scale sets the replicas of an object that others made from a child, the way
// an autoscaler would. One that is gone meanwhile needs none.
func (a *Applier) Scale(ctx context.Context, object graph.Object, replicas int32) error {
	id, err := a.identify(object)
	if err != nil {
		return err
	}
	patch := fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas)
	target := object.DeepCopyObject().(client.Object)
	err = a.client.SubResource("scale").Patch(ctx, target, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(FieldManager))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("scale %s to %d: %w", id, replicas, err)
	}
	a.tell(Change{Updated, id.kind, id.key})
	return nil
}

// AddFinalizer puts a finalizer on an object: something outside the cluster has to be
// undone before it may go.
func (a *Applier) AddFinalizer(ctx context.Context, object graph.Object, finalizer string) error {
	if slices.Contains(object.GetFinalizers(), finalizer) {
		return nil
	}
	return a.setFinalizers(ctx, object, append(slices.Clone(object.GetFinalizers()), finalizer))
}

// RemoveFinalizer removes a finalizer. Earlier operators put one on every object, and
// it would hold deletion up for ever.
func (a *Applier) RemoveFinalizer(ctx context.Context, object graph.Object, finalizer string) error {
	if !slices.Contains(object.GetFinalizers(), finalizer) {
		return nil
	}
	return a.setFinalizers(ctx, object, slices.DeleteFunc(slices.Clone(object.GetFinalizers()), func(f string) bool { return f == finalizer }))
}

func (a *Applier) setFinalizers(ctx context.Context, object graph.Object, finalizers []string) error {
	id, err := a.identify(object)
	if err != nil {
		return err
	}
	target := object.DeepCopyObject().(client.Object)
	before := object.DeepCopyObject().(client.Object)
	target.SetFinalizers(finalizers)
	// The list is replaced as a whole, so it must be the one that we saw.
	err = a.client.Patch(ctx, target, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), client.FieldOwner(FieldManager))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("set finalizers of %s: %w", id, err)
	}
	a.tell(Change{Updated, id.kind, id.key})
	return nil
}

// Discard deletes the very object that was seen, which no owner holds.
func (a *Applier) Discard(ctx context.Context, object graph.Object) error {
	id, err := a.identify(object)
	if err != nil {
		return err
	}
	p := &run{Applier: a, owner: object}
	deleted, err := p.delete(ctx, object, id)
	if deleted {
		a.tell(Change{Deleted, id.kind, id.key})
	}
	return err
}
