package apply

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/fault"
	"github.com/dynamo-operator/dynamo-operator/internal/graph"
)

// replace begins to make an object again that cannot take a change: it is
// deleted, and the event that tells of its end brings the pass that makes it.
//
//	differs in a fixed field --delete--> terminating --gone--> made again
func (p *pass) replace(ctx context.Context, live graph.Object, id identity) (Action, error) {
	if natures[id.kind.GroupKind()].precious {
		return "", frozen(id)
	}
	if err := p.stays(ctx); err != nil {
		return "", err
	}
	return Replaced, p.delete(ctx, live, id)
}

// delete removes the very object that was seen. One that pods hang on stays
// until they are gone.
func (p *pass) delete(ctx context.Context, object graph.Object, id identity) error {
	how := metav1.DeletePropagationBackground
	if natures[id.kind.GroupKind()].holds {
		how = metav1.DeletePropagationForeground
	}
	uid := object.GetUID()
	err := p.client.Delete(ctx, object.DeepCopyObject().(client.Object), client.Preconditions{UID: &uid}, client.PropagationPolicy(how))
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // gone, or replaced by another object of the same name
	}
	if err == nil {
		p.writes.forget(id)
	}
	return err
}

// unchangeable tells about an object that is only ever made, when what is
// wanted of it is no longer what was made.
func unchangeable(payload *unstructured.Unstructured, live graph.Object, id identity) error {
	n := natures[id.kind.GroupKind()]
	if !n.precious || ownedFields(live.GetManagedFields(), FieldManager) == nil {
		return nil // made by an earlier operator: it serves as it is
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(live)
	if err != nil {
		return err
	}
	if field := n.stubborn(payload, fields); field != "" {
		return fault.New(fault.Invalid, v1alpha1.ReasonImmutableField,
			"%s of %s cannot be changed; put the old value back, or use another name", field, id)
	}
	return nil
}

func frozen(id identity) error {
	return fault.New(fault.Invalid, v1alpha1.ReasonImmutableField,
		"%s cannot take the change and holds data, so it is not made again; put the old value back, or use another name", id)
}
