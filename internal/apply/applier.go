// Package apply is the only writer of children. It brings the objects that one
// owner wants into the cluster by server-side apply and removes those it no
// longer wants. It sends nothing when nothing would change, touches no field
// that others manage, and never takes over or deletes an object of another
// owner. It does not know what the objects mean.
package apply

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/fault"
	"github.com/dynamo-operator/dynamo-operator/internal/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/manifest"
)

// FieldManager is the name under which the API server records our fields.
const FieldManager = "dynamo-operator"

// Applier writes children. Reads come from the client's informer cache.
type Applier struct {
	client client.Client
	direct client.Reader
	// partly are kinds of which the cache does not hold all objects: that it
	// has none proves nothing.
	partly map[schema.GroupVersionKind]bool
	writes writeLog
}

// New makes an Applier over a client whose reads are cached, except in part for
// some kinds, and a reader that asks the API server itself.
func New(cached client.Client, direct client.Reader, partly ...client.Object) (*Applier, error) {
	a := &Applier{client: cached, direct: direct, partly: map[schema.GroupVersionKind]bool{}}
	for _, object := range partly {
		kind, err := manifest.Kind(object, cached.Scheme())
		if err != nil {
			return nil, err
		}
		a.partly[kind] = true
	}
	return a, nil
}

// Sync makes the cluster hold what owner wants, and removes what is in owned but
// not wanted. One object's failure does not keep the others from being written;
// the errors come back joined.
func (a *Applier) Sync(ctx context.Context, owner graph.Object, wanted []graph.Wanted, owned []graph.Object) (ChangeSet, error) {
	var (
		changes ChangeSet
		errs    []error
		keep    = make(map[identity]bool, len(wanted))
	)
	for _, w := range wanted {
		id, err := a.identify(w.Object)
		if err != nil {
			return changes, err
		}
		keep[id] = true
		action, err := a.bring(ctx, owner, w, id)
		if err != nil {
			errs = append(errs, fmt.Errorf("apply %s: %w", id, err))
		} else if action != "" {
			changes = append(changes, Change{action, id.kind, id.key})
		}
	}
	for _, object := range owned {
		id, err := a.identify(object)
		if err != nil {
			return changes, err
		}
		if keep[id] || object.GetDeletionTimestamp() != nil {
			continue
		}
		if err := a.remove(ctx, owner, object, id); err != nil {
			errs = append(errs, fmt.Errorf("delete %s: %w", id, err))
			continue
		}
		changes = append(changes, Change{Deleted, id.kind, id.key})
	}
	return changes, errors.Join(errs...)
}

// bring writes one object if it has to, and says what that did.
func (a *Applier) bring(ctx context.Context, owner graph.Object, w graph.Wanted, id identity) (Action, error) {
	fields, err := manifest.Of(w, owner, a.client.Scheme())
	if err != nil {
		return "", err
	}
	payload := &unstructured.Unstructured{Object: fields}
	live, err := a.live(ctx, a.client, id)
	if err == nil && live == nil && (a.partly[id.kind] || a.writes.covers(id, payload, "")) {
		// Of a kind that the cache holds in part, or made a moment ago: the
		// cache may be behind, or somebody has deleted it since. Only the
		// server knows.
		live, err = a.live(ctx, a.direct, id)
	}
	switch {
	case err != nil:
		return "", err
	case live == nil:
		return a.apply(ctx, owner, w.Tie, payload, id, "")
	case w.Once:
		return "", nil
	}
	mine, err := claim(owner, live, w.Tie, id)
	if err != nil || !mine {
		return "", err
	}
	seen := live.GetResourceVersion()
	if a.writes.covers(id, payload, seen) || upToDate(payload, live, manager(owner, w.Tie)) {
		return "", nil
	}
	return a.apply(ctx, owner, w.Tie, payload, id, seen)
}

// apply sends a payload. The server may find that it changes nothing, which is
// then no change.
func (a *Applier) apply(ctx context.Context, owner graph.Object, tie graph.Tie, payload *unstructured.Unstructured, id identity, seen string) (Action, error) {
	sent := payload.DeepCopy()
	err := a.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(sent),
		client.FieldOwner(manager(owner, tie)), client.ForceOwnership)
	if err != nil {
		return "", err
	}
	a.writes.record(id, payload, seen, sent.GetResourceVersion())
	switch seen {
	case "":
		return Created, nil
	case sent.GetResourceVersion():
		return "", nil
	default:
		return Updated, nil
	}
}

// live reads an object; nil means that there is none.
func (a *Applier) live(ctx context.Context, from client.Reader, id identity) (graph.Object, error) {
	empty, err := a.client.Scheme().New(id.kind)
	if err != nil {
		return nil, err
	}
	object := empty.(client.Object)
	if err := from.Get(ctx, id.key, object); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	if object.GetDeletionTimestamp() != nil {
		return nil, fault.New(fault.Waiting, v1alpha1.ReasonChildTerminating,
			"%s is being deleted and will be made again once it is gone", id)
	}
	return object, nil
}

// remove deletes an object that its owner no longer wants, or leaves it to the
// other owners that it has.
func (a *Applier) remove(ctx context.Context, owner, object graph.Object, id identity) error {
	if !metav1.IsControlledBy(object, owner) && len(object.GetOwnerReferences()) > 1 {
		release := &unstructured.Unstructured{}
		release.SetGroupVersionKind(id.kind)
		release.SetNamespace(id.key.Namespace)
		release.SetName(id.key.Name)
		return a.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(release), client.FieldOwner(manager(owner, graph.Joint)))
	}
	uid := object.GetUID()
	err := a.client.Delete(ctx, object.(client.Object),
		client.Preconditions{UID: &uid}, client.PropagationPolicy(metav1.DeletePropagationBackground))
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // gone, or replaced by another object of the same name
	}
	return err
}

// Annotate records something of ours on an object that is not a child, such as
// a decision that has to outlive this process.
func (a *Applier) Annotate(ctx context.Context, object graph.Object, annotations map[string]string) error {
	id, err := a.identify(object)
	if err != nil {
		return err
	}
	note := &unstructured.Unstructured{}
	note.SetGroupVersionKind(id.kind)
	note.SetNamespace(id.key.Namespace)
	note.SetName(id.key.Name)
	note.SetUID(object.GetUID()) // an object made anew is not the one that we decided about
	note.SetAnnotations(annotations)
	if err := a.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(note), client.FieldOwner(FieldManager), client.ForceOwnership); err != nil {
		return fmt.Errorf("annotate %s: %w", id, err)
	}
	return nil
}

// Merge changes single fields of an object that is not a child.
func (a *Applier) Merge(ctx context.Context, object graph.Object, fields map[string]any) error {
	patch, err := json.Marshal(fields)
	if err != nil {
		return err
	}
	target := object.DeepCopyObject().(client.Object)
	if err := a.client.Patch(ctx, target, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(FieldManager)); err != nil {
		return fmt.Errorf("change %s: %w", client.ObjectKeyFromObject(target), err)
	}
	return nil
}

// Release removes a finalizer that nobody here needs: earlier operators put it
// on every object, and it would hold deletion up for ever.
func (a *Applier) Release(ctx context.Context, object graph.Object, finalizer string) error {
	if !slices.Contains(object.GetFinalizers(), finalizer) {
		return nil
	}
	target := object.DeepCopyObject().(client.Object)
	before := target.DeepCopyObject().(client.Object)
	target.SetFinalizers(slices.DeleteFunc(target.GetFinalizers(), func(f string) bool { return f == finalizer }))
	// The list is replaced as a whole, so it must be the one that we saw.
	err := a.client.Patch(ctx, target, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), client.FieldOwner(FieldManager))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("remove finalizer %s: %w", finalizer, err)
	}
	return nil
}

// upToDate compares a payload with the live object and a manager's record in it.
func upToDate(payload *unstructured.Unstructured, live graph.Object, manager string) bool {
	owned := ownedFields(live.GetManagedFields(), manager)
	if owned == nil {
		return false
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(live)
	return err == nil && settled(payload.Object, fields, owned)
}

// identity is the name of one object in the cluster.
type identity struct {
	kind schema.GroupVersionKind
	key  types.NamespacedName
}

func (id identity) String() string {
	return id.kind.Kind + " " + id.key.String()
}

func (a *Applier) identify(object graph.Object) (identity, error) {
	kind, err := manifest.Kind(object, a.client.Scheme())
	if err != nil {
		return identity{}, err
	}
	return identity{kind, types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}}, nil
}
