package v1alpha1_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/test/corpus"
)

func TestPublishedManifestsDecodeStrictly(t *testing.T) {
	decoder := strictDecoder(t)
	for _, document := range corpus.OfGroup(t, v1alpha1.GroupName) {
		t.Run(document.Name(), func(t *testing.T) {
			if _, _, err := decoder.Decode(document.JSON, nil, nil); err != nil {
				t.Error(err)
			}
		})
	}
}

// A typed write must send back what was read: a field added on the way would be
// owned by the operator and show as drift to whoever applied the manifest.
func TestTypedRoundTripAddsNothing(t *testing.T) {
	decoder := strictDecoder(t)
	for _, document := range corpus.OfGroup(t, v1alpha1.GroupName) {
		t.Run(document.Name(), func(t *testing.T) {
			object, _, err := decoder.Decode(document.JSON, nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			viaJSON, err := json.Marshal(object)
			if err != nil {
				t.Fatal(err)
			}
			viaConverter, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
			if err != nil {
				t.Fatal(err)
			}
			before := leaves(document.Object.Object)
			if added := missingFrom(before, leaves(decode(t, viaJSON))); len(added) > 0 {
				t.Errorf("added by JSON: %v", added)
			}
			if added := missingFrom(before, leaves(viaConverter)); len(added) > 0 {
				t.Errorf("added by the unstructured converter: %v", added)
			}
		})
	}
}

func TestTypedRoundTripLosesOnlyEmptyValues(t *testing.T) {
	decoder := strictDecoder(t)
	for _, document := range corpus.OfGroup(t, v1alpha1.GroupName) {
		t.Run(document.Name(), func(t *testing.T) {
			object, _, err := decoder.Decode(document.JSON, nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			raw, err := json.Marshal(object)
			if err != nil {
				t.Fatal(err)
			}
			after := leaves(decode(t, raw))
			for path, value := range leaves(document.Object.Object) {
				if got, ok := after[path]; ok {
					if diff := cmp.Diff(value, got); diff != "" {
						t.Errorf("%s changed (-was +is):\n%s", path, diff)
					}
				} else if !empty(value) {
					t.Errorf("%s: %v is lost", path, value)
				}
			}
		})
	}
}

func strictDecoder(t *testing.T) runtime.Decoder {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	return serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
}

func decode(t *testing.T, raw []byte) map[string]any {
	t.Helper()
	var object map[string]any
	if err := json.Unmarshal(raw, &object); err != nil {
		t.Fatal(err)
	}
	return object
}

// leaves maps the path of every scalar and every empty collection to its value.
func leaves(object map[string]any) map[string]any {
	all := map[string]any{}
	var walk func(path string, value any)
	walk = func(path string, value any) {
		switch v := value.(type) {
		case map[string]any:
			for key, child := range v {
				walk(path+"."+key, child)
			}
			if len(v) == 0 {
				all[path] = v
			}
		case []any:
			for i, child := range v {
				walk(fmt.Sprintf("%s[%d]", path, i), child)
			}
			if len(v) == 0 {
				all[path] = v
			}
		case int64:
			// Numbers read as JSON are floats.
			all[path] = float64(v)
		default:
			all[path] = v
		}
	}
	walk("", object)
	return all
}

func missingFrom(have, want map[string]any) []string {
	var missing []string
	for path := range want {
		if _, ok := have[path]; !ok {
			missing = append(missing, path)
		}
	}
	slices.Sort(missing)
	return missing
}

func empty(value any) bool {
	switch v := value.(type) {
	case nil:
		return true
	case bool:
		return !v
	case string:
		return v == ""
	case map[string]any:
		return len(v) == 0
	case []any:
		return len(v) == 0
	}
	return false
}
