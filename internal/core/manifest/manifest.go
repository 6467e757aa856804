// Package manifest turns an object that is wanted into the fields that are sent
// for it. The operator applies them, the command line prints them, tests compare
// them: all three see the same bytes. It sends nothing itself.
package manifest

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
)

// Of is exactly what an owner wants to say about an object, and no more: its
// kind, its fields and its tie to the owner, but no status.
func Of(w graph.Desired, owner graph.Object, kinds *runtime.Scheme) (map[string]any, error) {
	kind, err := Kind(w.Object, kinds)
	if err != nil {
		return nil, err
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(w.Object)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", kind.Kind, w.GetName(), err)
	}
	fields["apiVersion"], fields["kind"] = kind.ToAPIVersionAndKind()
	delete(fields, "status")
	switch w.Ownership {
	case graph.OwnershipNone, graph.OwnershipByLabel:
		return fields, nil
	case graph.OwnershipByUID:
		for key, value := range graph.UIDLabels(owner) {
			if err := unstructured.SetNestedField(fields, value, "metadata", "labels", key); err != nil {
				return nil, fmt.Errorf("%s %s: %w", kind.Kind, w.GetName(), err)
			}
		}
		return fields, nil
	default:
		return fields, tie(fields, w, owner, kinds)
	}
}

// Kind is the kind of an object.
func Kind(object graph.Object, kinds *runtime.Scheme) (schema.GroupVersionKind, error) {
	all, _, err := kinds.ObjectKinds(object)
	if err != nil {
		return schema.GroupVersionKind{}, fmt.Errorf("object %s: %w", object.GetName(), err)
	}
	return all[0], nil
}

// tie writes the reference to the owner. An owner that no server knows yet has
// no uid, and then the reference has none.
func tie(fields map[string]any, w graph.Desired, owner graph.Object, kinds *runtime.Scheme) error {
	kind, err := Kind(owner, kinds)
	if err != nil {
		return err
	}
	if w.GetNamespace() != owner.GetNamespace() {
		return fmt.Errorf("object %s/%s cannot be owned by %s %s/%s: they are in different namespaces",
			w.GetNamespace(), w.GetName(), kind.Kind, owner.GetNamespace(), owner.GetName())
	}
	apiVersion, name := kind.ToAPIVersionAndKind()
	reference := map[string]any{"apiVersion": apiVersion, "kind": name, "name": owner.GetName()}
	if uid := owner.GetUID(); uid != "" {
		reference["uid"] = string(uid)
	}
	if w.Ownership == graph.OwnershipController {
		reference["controller"], reference["blockOwnerDeletion"] = true, true
	}
	metadata, _ := fields["metadata"].(map[string]any)
	metadata["ownerReferences"] = []any{reference}
	return nil
}
