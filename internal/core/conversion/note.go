package conversion

import (
	"encoding/json"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
)

// Kept names the fields of the other version that an object carries in its
// payload because its own cannot say them. Services and components are named by
// the field and, in brackets, their name.
func Kept(object metav1.Object) []string {
	var fields []string
	for _, key := range []string{v1alpha1.AnnotationGraphPayload, v1alpha1.AnnotationComponentPayload, v1alpha1.AnnotationRequestPayload} {
		var payload envelope[map[string]json.RawMessage]
		if json.Unmarshal([]byte(object.GetAnnotations()[key]), &payload) != nil {
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(payload.Spec)) {
			fields = append(fields, keptBelow(name, payload.Spec[name])...)
		}
	}
	return fields
}

func keptBelow(field string, raw json.RawMessage) []string {
	var items map[string]map[string]json.RawMessage
	switch field {
	case "services":
		if json.Unmarshal(raw, &items) != nil {
			return nil
		}
	case "components":
		var list []map[string]json.RawMessage
		if json.Unmarshal(raw, &list) != nil {
			return nil
		}
		items = map[string]map[string]json.RawMessage{}
		for _, item := range list {
			var name string
			if json.Unmarshal(item["name"], &name) == nil {
				delete(item, "name")
				items[name] = item
			}
		}
		if !slices.ContainsFunc(list, func(item map[string]json.RawMessage) bool { return len(item) > 0 }) {
			return []string{"spec.components: their order"}
		}
	default:
		return []string{"spec." + field}
	}
	var fields []string
	for _, name := range slices.Sorted(maps.Keys(items)) {
		if items[name] == nil {
			fields = append(fields, "spec."+field+"["+name+"]: null")
		}
		for _, below := range slices.Sorted(maps.Keys(items[name])) {
			fields = append(fields, "spec."+field+"["+name+"]."+below)
		}
	}
	return fields
}
