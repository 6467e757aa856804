package installation

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/operator/config"
)

// Registration names the webhooks that an operator for the whole cluster registers while
// it runs, and ManagerOfCluster the ClusterRole that only such a one has.
const (
	Registration     = "dynamo-operator-validating"
	ManagerOfCluster = "dynamo-operator-manager-cluster"
)

// Kinds are the kinds that people write, those that make others first.
func Kinds() []schema.GroupVersionKind {
	var kinds []schema.GroupVersionKind
	for _, kind := range []string{"DynamoGraphDeploymentRequest", "DynamoModel", "DynamoGraphDeployment", "DynamoComponentDeployment", "DynamoGraphDeploymentScalingAdapter"} {
		kinds = append(kinds, v1alpha1.SchemeGroupVersion.WithKind(kind))
	}
	return kinds
}

// Remove takes the operator out: first itself, then its webhooks, which nobody
// serves from then on, then the rest. Its namespace goes last, and stays if something of
// others is in it: whoever gave the operator a home there keeps what they have.
func (i Installer) Remove(ctx context.Context, objects []*unstructured.Unstructured, out io.Writer) error {
	first := byKind(objects, "Deployment")
	if of(objects, "ClusterRole", ManagerOfCluster) { // one for single namespaces registers none, and these are another's
		first = append(named(admissionregistrationv1.SchemeGroupVersion.WithKind("ValidatingWebhookConfiguration"), "", Registration), first...)
	}
	homes := byKind(objects, "Namespace")
	rest := slices.DeleteFunc(slices.Clone(objects), func(o *unstructured.Unstructured) bool {
		return o.GetKind() == "Deployment" || o.GetKind() == "Namespace"
	})
	// Delete goes against the order: the operator is the first to go.
	if err := i.Delete(ctx, slices.Concat(rest, first)); err != nil {
		return err
	}
	for _, home := range homes {
		if err := i.leave(ctx, home, out); err != nil {
			return err
		}
	}
	return nil
}

// leave takes away what the operator wrote for itself in its namespace, and then the
// namespace, if that was all.
func (i Installer) leave(ctx context.Context, home *unstructured.Unstructured, out io.Writer) error {
	secret, lease := corev1.SchemeGroupVersion.WithKind("Secret"), coordinationv1.SchemeGroupVersion.WithKind("Lease")
	defaults := config.Default()
	if err := i.Delete(ctx, slices.Concat(
		named(secret, home.GetName(), defaults.Certificate.Secret), named(secret, home.GetName(), MetricsToken), named(lease, home.GetName(), defaults.Leader.ID),
	)); err != nil {
		return err
	}
	for _, kind := range others() {
		objects, err := i.all(ctx, kind, home.GetName())
		if err != nil {
			return err
		}
		for _, object := range objects {
			if own(kind, object) {
				continue
			}
			fmt.Fprintf(out, "· namespace %s stays: %s %s is there, and perhaps more\n", home.GetName(), kind.Kind, object.Name)
			return nil
		}
	}
	return i.Delete(ctx, []*unstructured.Unstructured{home})
}

// everywhere are the ConfigMaps that Kubernetes, OpenShift and Istio put into every namespace.
var everywhere = []string{"kube-root-ca.crt", "openshift-service-ca.crt", "istio-ca-root-cert"}

// own reports whether an object is nobody's: what every namespace has, the Secrets of its
// ServiceAccounts included, and pods of ours that are collected a moment after their Job.
func own(kind schema.GroupVersionKind, object *metav1.PartialObjectMetadata) bool {
	return kind.Kind == "ConfigMap" && slices.Contains(everywhere, object.Name) ||
		kind.Kind == "Secret" && object.Annotations[corev1.ServiceAccountNameKey] != "" ||
		kind.Kind == "Pod" && strings.HasPrefix(object.Labels["app.kubernetes.io/name"], "dynamo-operator")
}

// others are the kinds by which a namespace is known to be used: all of our API, and
// what runs, keeps data or is configured.
func others() []schema.GroupVersionKind {
	core, apps, batch := corev1.SchemeGroupVersion, appsv1.SchemeGroupVersion, batchv1.SchemeGroupVersion
	return append(Kinds(), v1alpha1.SchemeGroupVersion.WithKind(v1alpha1.KindDynamoCheckpoint),
		apps.WithKind("Deployment"), apps.WithKind("StatefulSet"), apps.WithKind("DaemonSet"), batch.WithKind("CronJob"), batch.WithKind("Job"),
		core.WithKind("PersistentVolumeClaim"), core.WithKind("Pod"), core.WithKind("Service"), core.WithKind("Secret"), core.WithKind("ConfigMap"))
}

func byKind(objects []*unstructured.Unstructured, kind string) []*unstructured.Unstructured {
	var found []*unstructured.Unstructured
	for _, o := range objects {
		if o.GetKind() == kind {
			found = append(found, o)
		}
	}
	return found
}

func of(objects []*unstructured.Unstructured, kind, name string) bool {
	return slices.ContainsFunc(objects, func(o *unstructured.Unstructured) bool { return o.GetKind() == kind && o.GetName() == name })
}

// named is an object that is to be deleted, of which no more than its name is known.
func named(kind schema.GroupVersionKind, namespace, name string) []*unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(kind)
	o.SetNamespace(namespace)
	o.SetName(name)
	return []*unstructured.Unstructured{o}
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
