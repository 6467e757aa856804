package apply

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// ownedFields is what the API server has recorded as applied by a manager; nil
// when it has never applied the object.
func ownedFields(entries []metav1.ManagedFieldsEntry, manager string) *fieldpath.Set {
	at := slices.IndexFunc(entries, func(e metav1.ManagedFieldsEntry) bool {
		return ours(e) && e.Manager == manager
	})
	if at < 0 || entries[at].FieldsV1 == nil {
		return nil
	}
	set := &fieldpath.Set{}
	if err := set.FromJSON(entries[at].FieldsV1.GetRawReader()); err != nil {
		return nil
	}
	return set
}

func ours(e metav1.ManagedFieldsEntry) bool {
	return strings.HasPrefix(e.Manager, FieldManager) && e.Operation == metav1.ManagedFieldsOperationApply && e.Subresource == ""
}

// Trim drops what nobody here reads from an object on its way into the cache:
// the ownership records of others, which can be larger than the object. That of
// an earlier operator stays until its fields are ours.
func Trim(object any) (any, error) {
	if o, ok := object.(metav1.Object); ok {
		heir := hasLegacyFields(o)
		o.SetManagedFields(slices.DeleteFunc(slices.Clone(o.GetManagedFields()), func(e metav1.ManagedFieldsEntry) bool {
			return !ours(e) && (!heir || !predecessors(e))
		}))
	}
	return object, nil
}
