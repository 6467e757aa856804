package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
)

// stale is a label that an earlier operator put on children and we do not want.
const stale = "earlier/label"

// bequeath turns the children of a graph into what an earlier operator would
// have left: its manager's name, its hash, its finalizers, and no record of
// ours. It returns what must not change.
func (w world) bequeath(name string) map[string]string {
	w.Helper()
	for _, object := range w.childrenOf(name) {
		entries := object.GetManagedFields()
		for i := range entries {
			if strings.HasPrefix(entries[i].Manager, "dynamo-operator") && entries[i].Subresource == "" {
				entries[i].Manager, entries[i].Operation = "manager", metav1.ManagedFieldsOperationUpdate
			}
		}
		object.SetManagedFields(entries)
		annotations, labels := object.GetAnnotations(), object.GetLabels()
		if annotations == nil {
			annotations = map[string]string{}
		}
		if labels == nil {
			labels = map[string]string{}
		}
		annotations[v1alpha1.AnnotationLastAppliedHash], annotations[v1alpha1.AnnotationLastAppliedGeneration] = "44136fa3", "1"
		if object.GetKind() != v1alpha1.KindDynamoComponentDeployment {
			labels[stale] = "yes" // a component's labels are its pods' as well
		}
		object.SetAnnotations(annotations)
		object.SetLabels(labels)
		if object.GetKind() == v1alpha1.KindDynamoComponentDeployment {
			object.SetFinalizers([]string{v1alpha1.Finalizer})
		}
		if err := w.cluster.Client.Update(w.ctx, &object, client.FieldOwner("manager")); err != nil {
			w.Fatalf("bequeath %s %s: %v", object.GetKind(), object.GetName(), err)
		}
	}
	patch := fmt.Sprintf(`{"metadata":{"finalizers":[%q],"annotations":{%q:null,%q:null}}}`,
		v1alpha1.Finalizer, v1alpha1.AnnotationWorkloadProvider, v1alpha1.AnnotationWorkloadChoice)
	if err := w.cluster.Client.Patch(w.ctx, w.graph(name), client.RawPatch(types.MergePatchType, []byte(patch)), client.FieldOwner("manager")); err != nil {
		w.Fatal(err)
	}
	return w.lasting(name)
}

// lasting is what a takeover must not touch: which objects and pods there are.
func (w world) lasting(name string) map[string]string {
	w.Helper()
	lasting := map[string]string{}
	for _, object := range w.childrenOf(name) {
		lasting[object.GetKind()+" "+object.GetName()] = string(object.GetUID())
	}
	for _, pod := range w.pods(w.ctx) {
		lasting["Pod "+pod.Name] = string(pod.UID)
	}
	return lasting
}

// childrenOf reads the objects that a graph, or a component of it, controls.
func (w world) childrenOf(name string) []unstructured.Unstructured {
	w.Helper()
	owners := map[types.UID]bool{w.graph(name).UID: true}
	var all []unstructured.Unstructured
	for _, kind := range childKinds { // components come before their own children
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind)
		if err := w.cluster.Client.List(w.ctx, list, client.InNamespace(w.namespace)); err != nil {
			w.Fatal(err)
		}
		for _, object := range list.Items {
			if ref := metav1.GetControllerOf(&object); ref != nil && owners[ref.UID] {
				all = append(all, object)
				if kind.Kind == v1alpha1.KindDynamoComponentDeployment {
					owners[object.GetUID()] = true
				}
			}
		}
	}
	if len(all) < 10 {
		w.Fatalf("graph %s has only %d children", name, len(all))
	}
	return all
}

// adopted waits until nothing shows that an earlier operator was there.
func (w world) adopted(before map[string]string) {
	w.Helper()
	w.eventually("all children to be ours", func(context.Context) error {
		for _, object := range w.childrenOf("old") {
			name := object.GetKind() + " " + object.GetName()
			if object.GetLabels()[stale] != "" || object.GetAnnotations()[v1alpha1.AnnotationLastAppliedHash] != "" {
				return errors.New(name + " keeps what is no longer wanted")
			}
			if slices.ContainsFunc(object.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool {
				return e.Manager == "manager" && e.Subresource == ""
			}) {
				return errors.New(name + " has fields of the earlier operator")
			}
			if slices.Contains(object.GetFinalizers(), v1alpha1.Finalizer) {
				return errors.New(name + " is still held")
			}
		}
		return nil
	})
	dgd := w.ready("old")
	if len(dgd.Finalizers) > 0 || dgd.Annotations[v1alpha1.AnnotationWorkloadProvider] != v1alpha1.WorkloadProviderComponent {
		w.Errorf("finalizers %v, annotations %v", dgd.Finalizers, dgd.Annotations)
	}
	after := w.lasting("old")
	for what, was := range before {
		if after[what] != was {
			w.Errorf("%s was %q and is %q", what, was, after[what])
		}
	}
	if len(after) != len(before) {
		w.Errorf("%d things before, %d after", len(before), len(after))
	}
	w.quiet(6 * time.Second)
}
