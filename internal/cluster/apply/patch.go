package apply

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
)

// patchOwner changes single fields of the owner. It is a merge patch and no apply:
// an apply of an object that users write makes the API server convert it into every
// version that its managed fields name, which is not possible while nothing
// converts.
func (p *run) patchOwner(ctx context.Context, fields map[string]any) (graph.Object, error) {
	id, err := p.identify(p.owner)
	if err != nil {
		return nil, err
	}
	patch, err := json.Marshal(fields)
	if err != nil {
		return nil, err
	}
	target := p.owner.DeepCopyObject().(client.Object)
	if err := p.client.Patch(ctx, target, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(FieldManager)); err != nil {
		return nil, fmt.Errorf("patch %s: %w", id, err)
	}
	p.other(Change{Updated, id.kind, id.key})
	return target, nil
}

// patchChild changes single fields of the very child that was seen.
func (p *run) patchChild(ctx context.Context, patch ChildPatch) error {
	id, err := p.identify(patch.Object)
	if err != nil {
		return err
	}
	fields := maps.Clone(patch.Fields)
	metadata := map[string]any{}
	if given, ok := fields["metadata"].(map[string]any); ok {
		metadata = maps.Clone(given)
	}
	metadata["uid"], metadata["resourceVersion"] = patch.Object.GetUID(), patch.Object.GetResourceVersion()
	fields["metadata"] = metadata
	text, err := json.Marshal(fields)
	if err != nil {
		return err
	}
	err = p.client.Patch(ctx, patch.Object.DeepCopyObject().(client.Object), client.RawPatch(types.MergePatchType, text), client.FieldOwner(FieldManager))
	switch {
	case apierrors.IsConflict(err) || apierrors.IsNotFound(err):
		return nil // the informer is behind, and the next reconcile knows more
	case err != nil:
		return fmt.Errorf("patch %s: %w", id, err)
	}
	p.changed(Updated, id)
	return nil
}

// scale sets the replicas of an object that others made from a child, the way an
// autoscaler would. One that is gone meanwhile needs none.
func (p *run) scale(ctx context.Context, object graph.Object, replicas int32) error {
	id, err := p.identify(object)
	if err != nil {
		return err
	}
	patch := fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas)
	target := object.DeepCopyObject().(client.Object)
	err = p.client.SubResource("scale").Patch(ctx, target, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(FieldManager))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("scale %s to %d: %w", id, replicas, err)
	}
	p.other(Change{Updated, id.kind, id.key})
	return nil
}

// other notes a change of something that is no child.
func (p *run) other(change Change) {
	p.others = append(p.others, change)
	p.tell(change)
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

// Label adds labels to the very object that was seen, which others made.
func (a *Applier) Label(ctx context.Context, object graph.Object, labels map[string]string) error {
	if len(labels) == 0 {
		return nil
	}
	p := &run{Applier: a, owner: object}
	return p.patchChild(ctx, ChildPatch{Object: object, Fields: map[string]any{"metadata": map[string]any{"labels": labels}}})
}
