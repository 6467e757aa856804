package installation

import (
	"context"
	"fmt"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
)

// Registration names the webhooks that the operator registers while it runs.
const Registration = "dynamo-operator-validating"

// Kinds are the kinds that people write, those that make others first.
func Kinds() []schema.GroupVersionKind {
	var kinds []schema.GroupVersionKind
	for _, kind := range []string{"DynamoGraphDeploymentRequest", "DynamoModel", "DynamoGraphDeployment", "DynamoComponentDeployment", "DynamoGraphDeploymentScalingAdapter"} {
		kinds = append(kinds, v1alpha1.SchemeGroupVersion.WithKind(kind))
	}
	return kinds
}

// Remove takes the operator out: first itself, then its webhooks, which nobody
// serves from then on, then the rest.
func (i Installer) Remove(ctx context.Context, objects []*unstructured.Unstructured) error {
	isOperator := func(object *unstructured.Unstructured) bool { return object.GetKind() == "Deployment" }
	at := slices.IndexFunc(objects, isOperator)
	if at >= 0 {
		if err := i.Delete(ctx, objects[at:at+1]); err != nil {
			return err
		}
	}
	registered := &unstructured.Unstructured{}
	registered.SetGroupVersionKind(admissionregistrationv1.SchemeGroupVersion.WithKind("ValidatingWebhookConfiguration"))
	registered.SetName(Registration)
	if err := i.Delete(ctx, []*unstructured.Unstructured{registered}); err != nil {
		return err
	}
	return i.Delete(ctx, slices.DeleteFunc(slices.Clone(objects), isOperator))
}

// Purge deletes all objects of a kind with what they own, in a namespace or in all, and
// waits until they are gone. It returns how many there were.
func (i Installer) Purge(ctx context.Context, kind schema.GroupVersionKind, namespace string) (int, error) {
	objects, err := i.all(ctx, kind, namespace)
	if err != nil {
		return 0, err
	}
	for _, object := range objects {
		err := i.Client.Delete(ctx, object, client.PropagationPolicy(metav1.DeletePropagationForeground))
		if client.IgnoreNotFound(err) != nil {
			return 0, fmt.Errorf("delete %s %s/%s: %w", kind.Kind, object.GetNamespace(), object.GetName(), err)
		}
	}
	return len(objects), until(ctx, "every "+kind.Kind+" to go", func(ctx context.Context) error {
		rest, err := i.all(ctx, kind, namespace)
		if err == nil && len(rest) > 0 {
			err = fmt.Errorf("%d are left, such as %s/%s", len(rest), rest[0].GetNamespace(), rest[0].GetName())
		}
		return err
	})
}

// free takes the operator's finalizer off the objects of a kind, since nobody is left to
// do it. It returns how many objects there are.
func (i Installer) free(ctx context.Context, kind schema.GroupVersionKind, namespace string, mine func(namespace string) bool) (int, error) {
	objects, err := i.all(ctx, kind, namespace)
	if err != nil {
		return 0, err
	}
	stay := 0
	for _, object := range objects {
		if !mine(object.GetNamespace()) {
			continue
		}
		stay++
		if err := i.freeOne(ctx, object); err != nil {
			return 0, fmt.Errorf("free %s %s/%s: %w", kind.Kind, object.GetNamespace(), object.GetName(), err)
		}
	}
	return stay, nil
}

// freeOne tries again if somebody else wrote meanwhile: finalizers are a list, and what
// others put there stays.
func (i Installer) freeOne(ctx context.Context, object *metav1.PartialObjectMetadata) error {
	for {
		before := object.DeepCopy()
		if !controllerutil.RemoveFinalizer(object, v1alpha1.Finalizer) {
			return nil
		}
		err := i.Client.Patch(ctx, object, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
		if !apierrors.IsConflict(err) {
			return client.IgnoreNotFound(err)
		}
		// The operator's role lets it list every kind, but not get each.
		again, err := i.all(ctx, object.GroupVersionKind(), before.Namespace, client.MatchingFields{"metadata.name": before.Name})
		if err != nil || len(again) == 0 {
			return err
		}
		object = again[0]
	}
}

// all lists what a kind's objects are called and held by; one that is not served has no
// objects.
func (i Installer) all(ctx context.Context, kind schema.GroupVersionKind, namespace string, options ...client.ListOption) ([]*metav1.PartialObjectMetadata, error) {
	var list metav1.PartialObjectMetadataList
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	if err := i.Client.List(ctx, &list, append(options, client.InNamespace(namespace))...); err != nil {
		if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
			return nil, nil
		}
		return nil, fmt.Errorf("list %s: %w", kind.Kind, err)
	}
	objects := make([]*metav1.PartialObjectMetadata, 0, len(list.Items))
	for n := range list.Items {
		list.Items[n].SetGroupVersionKind(kind)
		objects = append(objects, &list.Items[n])
	}
	return objects, nil
}
