package conversion

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
)

// Misfit is what does not count of the payload that a v1alpha1 object carries.
type Misfit struct {
	// Annotation is the payload's key.
	Annotation string
	// Unreadable payloads are no payloads; no part of them counts.
	Unreadable bool
	// Fields are those of v1beta1 of which the payload says something else than the
	// object shows.
	Fields []string
}

// Unfit reports what of a v1alpha1 object's payload does not count; false if all of it
// does, or if there is none. What is said of components that are gone does no harm.
func Unfit(alpha metav1.Object) (Misfit, bool) {
	m := Misfit{}
	switch o := alpha.(type) {
	case *v1alpha1.DynamoGraphDeployment:
		if m.Annotation = v1alpha1.AnnotationGraphPayload; carries(o, m.Annotation) {
			beta, _ := GraphToBeta(o)
			m.compare(o, beta.Spec)
		}
	case *v1alpha1.DynamoComponentDeployment:
		if m.Annotation = v1alpha1.AnnotationComponentPayload; carries(o, m.Annotation) {
			beta, _ := ComponentToBeta(o)
			m.compare(o, beta.Spec)
		}
	case *v1alpha1.DynamoGraphDeploymentRequest:
		if m.Annotation = v1alpha1.AnnotationRequestPayload; carries(o, m.Annotation) {
			beta, _ := RequestToBeta(o)
			m.compare(o, beta.Spec)
		}
	}
	return m, m.Unreadable || len(m.Fields) > 0
}

func carries(object metav1.Object, key string) bool {
	_, there := object.GetAnnotations()[key]
	return there
}

// compare holds a payload against the spec that the object shows with it. Both go
// through the same types, so that equal values have equal texts.
func (m *Misfit) compare(object metav1.Object, shown any) {
	payload := struct {
		Version int `json:"version"`
		Spec    any `json:"spec"`
	}{Spec: reflect.New(reflect.TypeOf(shown)).Interface()}
	if json.Unmarshal([]byte(object.GetAnnotations()[m.Annotation]), &payload) != nil || payload.Version != payloadVersion {
		m.Unreadable = true
		return
	}
	m.Fields = unshown(generic(payload.Spec), generic(shown), "spec")
}

func generic(value any) (decoded any) {
	text, err := json.Marshal(value)
	if err != nil || json.Unmarshal(text, &decoded) != nil {
		return nil
	}
	return decoded
}

// unshown are the paths of what is said and not shown.
func unshown(said, shown any, at string) (paths []string) {
	if said == nil || isEmpty(said) {
		return nil
	}
	switch s := said.(type) {
	case map[string]any:
		fields, _ := shown.(map[string]any)
		for _, key := range slices.Sorted(maps.Keys(s)) {
			paths = append(paths, unshown(s[key], fields[key], at+"."+key)...)
		}
	case []any:
		items, _ := shown.([]any)
		known := make(map[itemKey]any, len(items))
		for i, item := range items {
			known[keyOf(item, i)] = item
		}
		for i, item := range s {
			key := keyOf(item, i)
			twin, there := known[key]
			switch {
			case there:
				paths = append(paths, unshown(item, twin, at+key.String())...)
			case at != atComponents: // one of those is gone
				paths = append(paths, at+key.String())
			}
		}
	default:
		if !reflect.DeepEqual(said, shown) {
			return []string{at}
		}
	}
	return paths
}

// atComponents is where the components of a graph are.
const atComponents = "spec.components"

// itemKey tells the items of a list apart: by name, mounts also by where they lead, and
// what has no name by its place.
type itemKey struct {
	name, path string
	index      int
}

func (k itemKey) String() string {
	if k.name == "" {
		return "[" + strconv.Itoa(k.index) + "]"
	}
	return "[" + k.name + "]"
}

func keyOf(item any, index int) itemKey {
	fields, _ := item.(map[string]any)
	name, _ := fields["name"].(string)
	if name == "" {
		return itemKey{index: index}
	}
	path, _ := fields["mountPath"].(string)
	return itemKey{name: name, path: path}
}
