package compat

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// identity names an object within its manifest.
type identity struct{ kind, name string }

func (id identity) String() string { return id.kind + " " + id.name }

func index(objects []*unstructured.Unstructured) map[identity]*unstructured.Unstructured {
	all := map[identity]*unstructured.Unstructured{}
	for _, o := range objects {
		all[identity{o.GetKind(), o.GetName()}] = o
	}
	return all
}

// meaningful are the leaves of an object that somebody decided on: no status,
// nothing that a server assigns or that an operator notes for itself.
func meaningful(o *unstructured.Unstructured) map[string]string {
	content := maps.Clone(o.DeepCopy().Object)
	metadata := map[string]any{}
	for _, part := range []string{"labels", "annotations"} {
		if values, found, _ := unstructured.NestedMap(content, "metadata", part); found && len(values) > 0 {
			metadata[part] = values
		}
	}
	if owners := owners(o); owners != nil {
		metadata["ownerReferences"] = owners
	}
	for _, member := range []string{"apiVersion", "kind", "status"} {
		delete(content, member)
	}
	content["metadata"] = metadata
	if o.GetKind() == "Service" {
		assigned(content)
	}
	all := leaves(content)
	maps.DeleteFunc(all, func(path, _ string) bool {
		return path == "metadata" || strings.HasPrefix(path, "metadata.annotations[nvidia.com/last-applied-")
	})
	return all
}

func owners(o *unstructured.Unstructured) []any {
	list, _, _ := unstructured.NestedSlice(o.Object, "metadata", "ownerReferences")
	for _, owner := range list {
		delete(owner.(map[string]any), "uid")
	}
	return list
}

// assigned drops what the API server allots to a Service.
func assigned(content map[string]any) {
	spec, _ := content["spec"].(map[string]any)
	for _, member := range []string{"clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"} {
		delete(spec, member)
	}
}

// sortedIdentities gives reports a stable order.
func sortedIdentities[V any](m map[identity]V) []identity {
	return slices.SortedFunc(maps.Keys(m), func(a, b identity) int { return strings.Compare(a.String(), b.String()) })
}
