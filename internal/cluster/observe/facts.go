package observe

import (
	"context"
	"fmt"
	"maps"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/snapshot"
)

// Facts reads what graphs depend on beside their own children.
type Facts struct {
	// Cached reads from the informers.
	Cached client.Reader
	// Direct asks the API server, for what is too rare to be watched.
	Direct client.Reader
	// Registries remembers what pull secrets are for; without it each is read
	// whenever it is looked for.
	Registries *Registries
	// Served, if it holds something, tells which optional APIs there are, to an
	// operator that may not read their definitions.
	Served *atomic.Pointer[snapshot.Capabilities]
	// Devices, if there is one, tells whether pods can claim devices. No definition
	// does.
	Devices *atomic.Bool
}

// Definition is an empty CustomResourceDefinition to watch by metadata alone.
func Definition() *metav1.PartialObjectMetadata {
	d := &metav1.PartialObjectMetadata{}
	d.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	return d
}

// Capabilities reads which optional APIs the cluster serves now.
func (f Facts) Capabilities(ctx context.Context) (snapshot.Capabilities, error) {
	have := snapshot.Capabilities{snapshot.APIDevices: f.Devices != nil && f.Devices.Load()}
	if f.Served != nil {
		if known := f.Served.Load(); known != nil {
			maps.Copy(have, *known)
			return have, nil
		}
	}
	for _, api := range snapshot.APIs {
		d := Definition()
		err := f.Cached.Get(ctx, types.NamespacedName{Name: string(api)}, d)
		if client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("look for %s: %w", api, err)
		}
		have[api] = err == nil && d.DeletionTimestamp == nil
	}
	return have, nil
}

// forPods is the index of accounts by whether they are meant for pods that name
// none. Each graph has an account, so looking for a label among all of them would
// take the longer the more graphs there are.
const forPods = "metadata.forPods"

// IndexAccounts prepares the informers' stores for Account.
func IndexAccounts(ctx context.Context, indexer client.FieldIndexer) error {
	err := indexer.IndexField(ctx, &corev1.ServiceAccount{}, forPods, func(object client.Object) []string {
		return []string{object.GetLabels()[v1alpha1.LabelComponentPod]}
	})
	if err != nil {
		return fmt.Errorf("index accounts by whom they are for: %w", err)
	}
	return nil
}

// Account reads which ServiceAccount of a namespace is meant for pods that name
// none: the first, by name, with the label for it; empty if there is none.
func (f Facts) Account(ctx context.Context, namespace string) (string, error) {
	var accounts corev1.ServiceAccountList
	err := f.Cached.List(ctx, &accounts, client.InNamespace(namespace), client.MatchingFields{forPods: "true"})
	if err != nil {
		return "", fmt.Errorf("list accounts of %s: %w", namespace, err)
	}
	first := ""
	for _, a := range accounts.Items {
		if first == "" || a.Name < first {
			first = a.Name
		}
	}
	return first, nil
}

// Queue is an empty queue of the KAI scheduler to watch by metadata alone.
func Queue() *metav1.PartialObjectMetadata {
	q := &metav1.PartialObjectMetadata{}
	q.SetGroupVersionKind(schema.GroupVersionKind{Group: "scheduling.run.ai", Version: "v2", Kind: "Queue"})
	return q
}

// QueueExists looks for a queue of the KAI scheduler.
func (f Facts) QueueExists(ctx context.Context, name string) (bool, error) {
	err := f.Cached.Get(ctx, types.NamespacedName{Name: name}, Queue())
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look for Queue %s: %w", name, err)
	}
	return true, nil
}

// AbsentClaims are those of some claims of a namespace that do not exist.
func (f Facts) AbsentClaims(ctx context.Context, namespace string, names []string) ([]string, error) {
	var absent []string
	for _, name := range names {
		err := f.Cached.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, &corev1.PersistentVolumeClaim{})
		if client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("look for PersistentVolumeClaim %s/%s: %w", namespace, name, err)
		}
		if err != nil {
			absent = append(absent, name)
		}
	}
	return absent, nil
}

// SecretExists asks for a Secret by name, without reading what it holds.
func (f Facts) SecretExists(ctx context.Context, namespace, name string) (bool, error) {
	return f.exists(ctx, corev1.SchemeGroupVersion.WithKind("Secret"), namespace, name)
}

// exists asks the API server for an object by name, without its content.
func (f Facts) exists(ctx context.Context, kind schema.GroupVersionKind, namespace, name string) (bool, error) {
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(kind)
	err := f.Direct.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, object)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look for %s %s/%s: %w", kind.Kind, namespace, name, err)
	}
	return true, nil
}
