package apply

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/csaupgrade"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/api/v1beta1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/adoption"
	"github.com/dynamo-operator/dynamo-operator/internal/core/fault"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
)

// predecessor is the name under which an earlier operator wrote whole objects:
// that of its binary, which other controllers share. What it wrote carries its
// hash as well, or names its owner as v1beta1, which we never do, or has an owner of ours
// and nothing that we wrote. The first write of ours takes all of these away.
const predecessor = "manager"

// hasLegacyFields reports whether fields of an object are recorded as the earlier
// operator's. As long as they are, a field that we do not want stays.
func hasLegacyFields(object metav1.Object) bool {
	if !slices.ContainsFunc(object.GetManagedFields(), predecessors) {
		return false
	}
	if object.GetAnnotations()[v1alpha1.AnnotationLastAppliedHash] != "" || ownedAsBeta(object) {
		return true
	}
	owner := metav1.GetControllerOf(object)
	return owner != nil && strings.HasPrefix(owner.APIVersion, v1alpha1.GroupName+"/") && !slices.ContainsFunc(object.GetManagedFields(), ours)
}

// ownedAsBeta reports whether an object names its owner as the original's 1.x does.
func ownedAsBeta(object metav1.Object) bool {
	owner := metav1.GetControllerOf(object)
	return owner != nil && owner.APIVersion == v1beta1.SchemeGroupVersion.String()
}

// Unadopted reports whether an earlier operator made an object and its owner here
// has not written it yet. What it says may not be all that there is to know of it.
func Unadopted(object metav1.Object) bool {
	return ownedAsBeta(object) || hasLegacyFields(object) && !slices.ContainsFunc(object.GetManagedFields(), ours)
}

func predecessors(e metav1.ManagedFieldsEntry) bool {
	return e.Manager == predecessor && e.Operation == metav1.ManagedFieldsOperationUpdate && e.Subresource == ""
}

// adopt records the earlier operator's fields as a manager of ours. It changes
// no field, so nothing restarts; the apply that follows then removes what is no
// longer wanted.
func (a *Applier) adopt(ctx context.Context, id identity, as string) (graph.Object, error) {
	// The cache holds only a part of the record, and the record is replaced as a
	// whole.
	live, err := a.live(ctx, a.direct, id)
	if err != nil || live == nil {
		return nil, err
	}
	entries, err := inherited(live.GetManagedFields())
	if err != nil {
		return nil, fmt.Errorf("read the fields of manager %s: %w", predecessor, err)
	}
	live.SetManagedFields(entries)
	if err := csaupgrade.UpgradeManagedFields(live, sets.New(predecessor), as); err != nil {
		return nil, fmt.Errorf("adopt the fields of manager %s: %w", predecessor, err)
	}
	patch, err := json.Marshal([]map[string]any{
		{"op": "replace", "path": "/metadata/managedFields", "value": live.GetManagedFields()},
		{"op": "replace", "path": "/metadata/resourceVersion", "value": live.GetResourceVersion()},
	})
	if err != nil {
		return nil, err
	}
	adopted := live.(client.Object)
	if id.kind.Group == v1alpha1.GroupName {
		// An API server that cannot convert an object to the versions that its record names
		// drops the record, or keeps it as it was, and says that all went well.
		tried := adopted.DeepCopyObject().(client.Object)
		if err := a.client.Patch(ctx, tried, client.RawPatch(types.JSONPatchType, patch), client.FieldOwner(FieldManager), client.DryRunAll); err != nil {
			return nil, fmt.Errorf("rehearse to adopt the fields of manager %s: %w", predecessor, err)
		}
		if !slices.ContainsFunc(tried.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool { return ours(e) && e.Manager == as }) {
			return nil, fault.New(fault.Waiting, v1alpha1.ReasonConversionUnavailable,
				"another operator wrote %s as another version, and it cannot be adopted until a converter answers", id).Again(conversionRetry)
		}
	}
	if err := a.client.Patch(ctx, adopted, client.RawPatch(types.JSONPatchType, patch), client.FieldOwner(FieldManager)); err != nil {
		return nil, fmt.Errorf("adopt the fields of manager %s: %w", predecessor, err)
	}
	return adopted, nil
}

// inherited is the record with the earlier operator's part in it reduced to
// what may be inherited: a finalizer is a promise of whoever set it.
func inherited(entries []metav1.ManagedFieldsEntry) ([]metav1.ManagedFieldsEntry, error) {
	kept := slices.Clone(entries)
	for i, e := range kept {
		if !predecessors(e) || e.FieldsV1 == nil {
			continue
		}
		set := &fieldpath.Set{}
		if err := set.FromJSON(e.FieldsV1.GetRawReader()); err != nil {
			return nil, err
		}
		raw, err := set.RecursiveDifference(fieldpath.NewSet(fieldpath.MakePathOrDie("metadata", "finalizers"))).ToJSON()
		if err != nil {
			return nil, err
		}
		kept[i].FieldsV1 = metav1.NewFieldsV1(string(raw))
	}
	return kept, nil
}

// note writes on an object that is about to be adopted what is wanted of its pod
// templates and what they are, among the earlier operator's fields, so that it is adopted
// with those. Who is stopped in between knows by it whose templates they are.
func (p *run) note(ctx context.Context, payload *unstructured.Unstructured, live graph.Object) error {
	fields, err := fieldsOf(live, payload)
	if err != nil {
		return err
	}
	record, err := adoption.RecordOf(payload.Object, fields)
	if err != nil || len(record) == 0 || maps.Equal(record, adoption.ReadRecord(live.GetAnnotations())) {
		return err
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": live.GetUID(), "annotations": map[string]string{v1alpha1.AnnotationAdoptedTemplates: record.String()},
	}})
	if err != nil {
		return err
	}
	noted := live.DeepCopyObject().(client.Object)
	if err := p.client.Patch(ctx, noted, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(predecessor)); err != nil {
		return fmt.Errorf("note the pod templates of manager %s: %w", predecessor, err)
	}
	return nil
}

// retained is a payload with the pod templates that the object was adopted with, while
// nothing else is wanted of them.
func retained(payload *unstructured.Unstructured, live graph.Object) (*unstructured.Unstructured, error) {
	record := adoption.ReadRecord(live.GetAnnotations())
	if record == nil || hasLegacyFields(live) {
		return payload, nil
	}
	fields, err := fieldsOf(live, payload)
	if err != nil {
		return nil, err
	}
	if traits[payload.GroupVersionKind().GroupKind()].immutableDiff(payload, fields) != "" {
		return payload, nil // it is made again, and its pods with it
	}
	kept, err := adoption.Retain(payload.Object, fields, record)
	return &unstructured.Unstructured{Object: kept}, err
}

// undisturbed is a payload that replaces no pods of an object that was adopted just now.
// Where the server says that the payload itself would not, it is that, so that nothing is
// retained without need; also where it would never take another, such as one that names a
// variable twice. A server that cannot say now is asked again: what is retained is on record.
func (p *run) undisturbed(ctx context.Context, as string, payload *unstructured.Unstructured, live graph.Object) (*unstructured.Unstructured, error) {
	kept, err := retained(payload, live)
	if err != nil || kept == payload {
		return payload, err
	}
	before, err := fieldsOf(live, payload)
	if err != nil {
		return nil, err
	}
	if after, err := p.rehearse(ctx, as, payload, live); err == nil {
		if same, err := adoption.Same(before, after); err != nil || same {
			return payload, err
		}
	}
	switch _, err := p.rehearse(ctx, as, kept, live); {
	case apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsForbidden(err):
		return payload, nil //nolint:nilerr // the write that follows says what is wrong
	case err != nil:
		return nil, fmt.Errorf("rehearse an apply that keeps the pod templates: %w", err)
	}
	return kept, nil
}

// rehearse is what an object would be after an apply.
func (p *run) rehearse(ctx context.Context, as string, payload *unstructured.Unstructured, live graph.Object) (map[string]any, error) {
	sent := payload.DeepCopy()
	sent.SetUID(live.GetUID())
	if err := p.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(sent), client.FieldOwner(as), client.ForceOwnership, client.DryRunAll); err != nil {
		return nil, err
	}
	after, err := p.client.Scheme().New(payload.GroupVersionKind())
	if err != nil {
		return nil, err
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(sent.Object, after); err != nil {
		return nil, err
	}
	return fieldsOf(after, payload)
}

// fieldsOf are those of an object, with the kind that a payload says.
func fieldsOf(object any, payload *unstructured.Unstructured) (map[string]any, error) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, err
	}
	fields["kind"] = payload.GetKind()
	return fields, nil
}
