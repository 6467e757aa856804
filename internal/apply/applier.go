// Package apply is the only writer of children. It brings the objects that one
// owner desires into the cluster by server-side apply and removes those it no
// longer desires. It sends nothing when nothing would change, touches no field
// that others manage, and never takes over or deletes an object of another
// owner. It does not know what the objects mean.
package apply

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/fault"
	"github.com/dynamo-operator/dynamo-operator/internal/graph"
)

// FieldManager is the name under which the API server records our fields.
const FieldManager = "dynamo-operator"

// Applier writes children. Reads come from the client's informer cache.
type Applier struct {
	client client.Client
	direct client.Reader
	writes writeLog
}

// New makes an Applier over a client whose reads are cached and a reader that
// asks the API server itself.
func New(cached client.Client, direct client.Reader) *Applier {
	return &Applier{client: cached, direct: direct}
}

// Sync makes the cluster hold desired, all controlled by owner, and deletes
// what is in owned but not in desired. One object's failure does not keep the
// others from being written; the errors come back joined.
func (a *Applier) Sync(ctx context.Context, owner graph.Object, desired, owned []graph.Object) (ChangeSet, error) {
	var (
		changes ChangeSet
		errs    []error
		wanted  = make(map[identity]bool, len(desired))
	)
	for _, object := range desired {
		id, err := a.identify(object)
		if err != nil {
			return changes, err
		}
		wanted[id] = true
		action, err := a.apply(ctx, owner, object, id)
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
		if wanted[id] || object.GetDeletionTimestamp() != nil || !metav1.IsControlledBy(object, owner) {
			continue
		}
		if err := a.delete(ctx, object); err != nil {
			errs = append(errs, fmt.Errorf("delete %s: %w", id, err))
			continue
		}
		changes = append(changes, Change{Deleted, id.kind, id.key})
	}
	return changes, errors.Join(errs...)
}

// apply writes one object if it has to, and says what that did.
func (a *Applier) apply(ctx context.Context, owner, object graph.Object, id identity) (Action, error) {
	payload, err := a.payload(owner, object, id)
	if err != nil {
		return "", err
	}
	live, err := a.live(ctx, a.client, id)
	if err == nil && live == nil && a.writes.covers(id, payload, "") {
		// Made a moment ago: either the cache is behind, or somebody has
		// deleted it since. Only the server knows.
		live, err = a.live(ctx, a.direct, id)
	}
	if err != nil {
		return "", err
	}
	action, before := Created, ""
	if live != nil {
		action, before = Updated, live.GetResourceVersion()
		if err := ownedBy(owner, live, id); err != nil {
			return "", err
		}
		if live.GetDeletionTimestamp() != nil {
			return "", fault.New(fault.Waiting, v1alpha1.ReasonChildTerminating,
				"%s is being deleted and will be made again once it is gone", id)
		}
		if a.writes.covers(id, payload, before) || upToDate(payload, live) {
			return "", nil
		}
	}
	sent := payload.DeepCopy()
	if err := a.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(sent), client.FieldOwner(FieldManager), client.ForceOwnership); err != nil {
		return "", err
	}
	a.writes.record(id, payload, before, sent.GetResourceVersion())
	if sent.GetResourceVersion() == before {
		return "", nil
	}
	return action, nil
}

// payload is exactly what we want to say about an object, and no more.
func (a *Applier) payload(owner, object graph.Object, id identity) (*unstructured.Unstructured, error) {
	owned := object.DeepCopyObject().(graph.Object)
	if err := controllerutil.SetControllerReference(owner, owned, a.client.Scheme()); err != nil {
		return nil, err
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(owned)
	if err != nil {
		return nil, err
	}
	delete(fields, "status")
	payload := &unstructured.Unstructured{Object: fields}
	payload.SetGroupVersionKind(id.kind)
	return payload, nil
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
	return object, nil
}

// ownedBy refuses objects of somebody else that happen to have a name of ours.
func ownedBy(owner, live graph.Object, id identity) error {
	if metav1.IsControlledBy(live, owner) {
		return nil
	}
	by := "nobody"
	if ref := metav1.GetControllerOf(live); ref != nil {
		by = ref.Kind + " " + ref.Name
	}
	return fault.New(fault.Conflict, v1alpha1.ReasonNameConflict,
		"%s exists and is controlled by %s; rename the service or remove that object", id, by)
}

func (a *Applier) delete(ctx context.Context, object graph.Object) error {
	uid := object.GetUID()
	err := a.client.Delete(ctx, object.(client.Object),
		client.Preconditions{UID: &uid}, client.PropagationPolicy(metav1.DeletePropagationBackground))
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // gone, or replaced by another object of the same name
	}
	return err
}

// upToDate compares a payload with the live object and our record in it.
func upToDate(payload *unstructured.Unstructured, live graph.Object) bool {
	owned := ownedFields(live.GetManagedFields())
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
	kind, err := apiutil.GVKForObject(object, a.client.Scheme())
	if err != nil {
		return identity{}, fmt.Errorf("object %s: %w", object.GetName(), err)
	}
	return identity{kind, types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}}, nil
}
