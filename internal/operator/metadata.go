package operator

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/dynamo-operator/dynamo-operator/internal/core/guard"
)

// newCache makes the informers. Of Secrets and ConfigMaps they ask for metadata
// alone: what is in them is up to 1 MiB of a tenant's choice each, and an operator
// that starts would have all of it sent before it looks at anybody's graph.
func newCache(cluster *rest.Config, options cache.Options) (cache.Cache, error) {
	all, err := cache.New(cluster, options)
	if err != nil || guard.Outlines.Off() {
		return all, err
	}
	return metadataOnly{all}, nil
}

// metadataOnly reads and watches Secrets and ConfigMaps by their metadata. Who
// reads one gets it without its content; who follows them is told of metadata.
type metadataOnly struct{ cache.Cache }

// withoutContent is what is asked of the informers in place of a typed object;
// false for a kind that they hold as it is.
func withoutContent(kind runtime.Object) (*metav1.PartialObjectMetadata, bool) {
	outline := &metav1.PartialObjectMetadata{}
	switch kind.(type) {
	case *corev1.Secret, *corev1.SecretList:
		outline.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	case *corev1.ConfigMap, *corev1.ConfigMapList:
		outline.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	default:
		return nil, false
	}
	return outline, true
}

func asHeld(kind client.Object) client.Object {
	if held, ok := withoutContent(kind); ok {
		return held
	}
	return kind
}

func (m metadataOnly) Get(ctx context.Context, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
	held, ok := withoutContent(into)
	if !ok {
		return m.Cache.Get(ctx, key, into, options...)
	}
	if err := m.Cache.Get(ctx, key, held, options...); err != nil {
		return err
	}
	switch into := into.(type) {
	case *corev1.Secret:
		*into = corev1.Secret{ObjectMeta: held.ObjectMeta}
	case *corev1.ConfigMap:
		*into = corev1.ConfigMap{ObjectMeta: held.ObjectMeta}
	}
	return nil
}

func (m metadataOnly) List(ctx context.Context, into client.ObjectList, options ...client.ListOption) error {
	one, ok := withoutContent(into)
	if !ok {
		return m.Cache.List(ctx, into, options...)
	}
	held := &metav1.PartialObjectMetadataList{}
	kind := one.GroupVersionKind()
	held.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	if err := m.Cache.List(ctx, held, options...); err != nil {
		return err
	}
	switch into := into.(type) {
	case *corev1.SecretList:
		into.ListMeta, into.Items = held.ListMeta, make([]corev1.Secret, len(held.Items))
		for i := range held.Items {
			into.Items[i].ObjectMeta = held.Items[i].ObjectMeta
		}
	case *corev1.ConfigMapList:
		into.ListMeta, into.Items = held.ListMeta, make([]corev1.ConfigMap, len(held.Items))
		for i := range held.Items {
			into.Items[i].ObjectMeta = held.Items[i].ObjectMeta
		}
	}
	return nil
}

func (m metadataOnly) GetInformer(ctx context.Context, kind client.Object, options ...cache.InformerGetOption) (cache.Informer, error) {
	return m.Cache.GetInformer(ctx, asHeld(kind), options...)
}

func (m metadataOnly) GetInformerForKind(ctx context.Context, kind schema.GroupVersionKind, options ...cache.InformerGetOption) (cache.Informer, error) {
	switch kind {
	case corev1.SchemeGroupVersion.WithKind("Secret"):
		return m.GetInformer(ctx, &corev1.Secret{}, options...)
	case corev1.SchemeGroupVersion.WithKind("ConfigMap"):
		return m.GetInformer(ctx, &corev1.ConfigMap{}, options...)
	default:
		return m.Cache.GetInformerForKind(ctx, kind, options...)
	}
}

func (m metadataOnly) RemoveInformer(ctx context.Context, kind client.Object) error {
	return m.Cache.RemoveInformer(ctx, asHeld(kind))
}

func (m metadataOnly) IndexField(ctx context.Context, kind client.Object, field string, extract client.IndexerFunc) error {
	return m.Cache.IndexField(ctx, asHeld(kind), field, extract)
}
