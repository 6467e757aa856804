package apply

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/fault"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
)

// replace makes an object again that cannot take a change. One that nothing
// hangs on is gone when it is deleted, and made at once; of another the event
// that tells of its end brings the reconcile that makes it.
//
//	differs in a fixed field --delete--> terminating --gone--> made again
func (p *run) replace(ctx context.Context, tie graph.Ownership, payload *unstructured.Unstructured, live graph.Object, id identity) (Action, error) {
	n := traits[id.kind.GroupKind()]
	if n.retainsData {
		return "", immutableFault(id)
	}
	if err := p.ownerPresent(ctx); err != nil {
		return "", err
	}
	deleted, err := p.delete(ctx, live, id)
	switch {
	case err != nil || !deleted:
		return "", err
	case n.ownsPods || len(live.GetFinalizers()) > 0:
		return Replaced, nil
	}
	_, err = p.apply(ctx, tie, payload, id, nil)
	return Replaced, err
}

// delete removes the very object that was seen. One that pods hang on stays
// until they are gone. It reports whether it did: the object may be gone, or
// another may have its name.
func (p *run) delete(ctx context.Context, object graph.Object, id identity) (bool, error) {
	how := metav1.DeletePropagationBackground
	if traits[id.kind.GroupKind()].ownsPods {
		how = metav1.DeletePropagationForeground
	}
	uid := object.GetUID()
	err := p.client.Delete(ctx, object.DeepCopyObject().(client.Object), client.Preconditions{UID: &uid}, client.PropagationPolicy(how))
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return false, nil
	}
	if err == nil {
		p.writes.forget(id)
	}
	return err == nil, err
}

// expand gives an object that is only ever made the one change that it may take:
// a claim can ask for more. Any other wish is refused.
func (p *run) expand(ctx context.Context, payload *unstructured.Unstructured, live graph.Object, id identity) (Action, error) {
	n := traits[id.kind.GroupKind()]
	if !n.retainsData || ownedFields(live.GetManagedFields(), FieldManager) == nil {
		return "", nil // made by an earlier operator: it serves as it is
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(live)
	if err != nil {
		return "", err
	}
	switch field := n.immutableDiff(payload, fields); {
	case field == "":
		return "", nil
	case field != strings.Join(capacity, ".") || !larger(payload.Object, fields):
		return "", fault.New(fault.Invalid, v1alpha1.ReasonImmutableField,
			"%s of %s cannot be changed; put the old value back, or use another name", field, id)
	}
	more, _, _ := unstructured.NestedString(payload.Object, capacity...) // larger has read it
	patch := fmt.Appendf(nil, `{"spec":{"resources":{"requests":{"storage":%q}}}}`, more)
	err = p.client.Patch(ctx, live.DeepCopyObject().(client.Object), client.RawPatch(types.MergePatchType, patch), client.FieldOwner(FieldManager))
	if apierrors.IsForbidden(err) || apierrors.IsInvalid(err) {
		return "", fault.New(fault.Invalid, v1alpha1.ReasonImmutableField,
			"%s cannot grow to %s: %s; to have it made again without its data, delete it", id, more, serverMessage(err))
	}
	if err != nil {
		return "", err
	}
	return Updated, nil
}

// capacity is how much a claim asks for.
var capacity = []string{"spec", "resources", "requests", "storage"}

func larger(want, have map[string]any) bool {
	asked, _, err := unstructured.NestedString(want, capacity...)
	if err != nil {
		return false
	}
	given, _, err := unstructured.NestedString(have, capacity...)
	if err != nil {
		return false
	}
	a, err := resource.ParseQuantity(asked)
	if err != nil {
		return false
	}
	g, err := resource.ParseQuantity(given)
	return err == nil && a.Cmp(g) > 0
}

func immutableFault(id identity) error {
	return fault.New(fault.Invalid, v1alpha1.ReasonImmutableField,
		"%s cannot take the change and holds data, so it is not made again; put the old value back, or use another name", id)
}
