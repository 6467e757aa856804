package apiversion

import (
	"context"
	"fmt"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/definition"
)

// Migrator stores anew, as v1alpha1, what was stored as v1beta1. From then on the
// operator's own work needs no converter. The leader does it, once, and writes
// nothing where nothing is to be done.
type Migrator struct {
	Direct client.Client
	// Stored are the definitions of which objects may be stored as v1beta1.
	Stored func() []string
	// Done is told of a definition that has none any more.
	Done  func()
	Every time.Duration
	Clock clock.WithTicker
}

// page is how many objects are asked for at a time.
const page = 200

// Start looks until ctx ends.
func (m *Migrator) Start(ctx context.Context) error {
	said := ""
	for {
		problem := ""
		for _, name := range m.Stored() {
			if err := m.Migrate(ctx, name); err != nil && ctx.Err() == nil {
				problem = err.Error()
			}
		}
		if problem != "" && problem != said {
			log.FromContext(ctx).Error(nil, "objects stored as v1beta1 are not yet stored as v1alpha1, retrying", "problem", problem)
		}
		said = problem
		select {
		case <-m.Clock.After(m.Every):
		case <-ctx.Done():
			return nil
		}
	}
}

// Migrate has every object of a definition stored as v1alpha1, and says so in the
// definition's status. A write that changes nothing is stored only if it was stored
// otherwise.
func (m *Migrator) Migrate(ctx context.Context, name string) error {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := m.Direct.Get(ctx, types.NamespacedName{Name: name}, crd); err != nil {
		return fmt.Errorf("read definition %s: %w", name, err)
	}
	if !definition.StoredAsBeta(crd) {
		m.Done()
		return nil
	}
	if !definition.StoresAlpha(crd) {
		return fmt.Errorf("definition %s stores another version than %s: install the definitions of this release", name, v1alpha1.SchemeGroupVersion)
	}
	kind, rewritten := v1alpha1.SchemeGroupVersion.WithKind(crd.Spec.Names.Kind), 0
	list := &metav1.PartialObjectMetadataList{}
	for more := ""; ; more = list.Continue {
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(crd.Spec.Names.ListKind))
		if err := m.Direct.List(ctx, list, client.Limit(page), client.Continue(more)); err != nil {
			return fmt.Errorf("list %s: %w", kind.Kind, err)
		}
		for i := range list.Items {
			object := &list.Items[i]
			object.SetGroupVersionKind(kind)
			before := object.ResourceVersion
			err := m.Direct.Patch(ctx, object, client.RawPatch(types.MergePatchType, []byte(`{}`)), client.FieldOwner(fieldManager))
			if client.IgnoreNotFound(err) != nil {
				return fmt.Errorf("store %s %s/%s as %s: %w", kind.Kind, object.Namespace, object.Name, kind.GroupVersion(), err)
			}
			if object.ResourceVersion != before {
				rewritten++
			}
		}
		if list.Continue == "" {
			break
		}
	}
	patch := fmt.Appendf(nil, `{"metadata":{"resourceVersion":%q},"status":{"storedVersions":[%q]}}`, crd.ResourceVersion, v1alpha1.SchemeGroupVersion.Version)
	if err := m.Direct.SubResource("status").Patch(ctx, crd, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(fieldManager)); err != nil {
		return fmt.Errorf("write down the stored versions of definition %s: %w", name, err)
	}
	log.FromContext(ctx).Info("stored objects as v1alpha1", "definition", name, "rewritten", rewritten)
	m.Done()
	return nil
}
