package conversion

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// written is a value that says nothing but was written, such as resources: {}.
// The types do not tell it from one that was not, and an apply that finds it gone
// writes it again.
type written struct {
	// Path from the spec, with the index of list items.
	Path []string        `json:"path"`
	Raw  json.RawMessage `json:"raw"`
}

// writtenLimit bounds what is kept of them, because a path is longer than what
// it leads to.
const writtenLimit = 16 << 10

// envelopeEmpty is the key of an envelope that keeps them.
const envelopeEmpty = "rawJSON"

// emptyLiterals are how fields that say nothing look in JSON, as API servers
// write it and with a space. A time of day is none.
var emptyLiterals = [][]byte{
	[]byte(`":{}`), []byte(`": {}`), []byte(`":[]`), []byte(`": []`), []byte(`":""`), []byte(`": ""`),
	[]byte(`":false`), []byte(`": false`), []byte(`":0`), []byte(`": 0`),
}

// afterMetadata is a document from its spec on, as API servers order it: managed
// fields are full of what is empty. Where that is not to be seen it is all of it.
func afterMetadata(source []byte) []byte {
	return source[max(0, bytes.Index(source, []byte(`"spec":`))):]
}

// keepEmpty adds to the payload of a converted object what the source wrote
// though it is empty.
func keepEmpty(meta metav1.Object, key string, source []byte, spec any) {
	seen := afterMetadata(source)
	if !slices.ContainsFunc(emptyLiterals, func(literal []byte) bool { return bytes.Contains(seen, literal) }) {
		return // most objects; a look at the bytes is all it takes
	}
	var raw, typed struct{ Spec any }
	if json.Unmarshal(source, &raw) != nil {
		return
	}
	text, err := json.Marshal(spec)
	if err != nil || json.Unmarshal(text, &typed.Spec) != nil {
		return
	}
	var found []written
	size := 0
	collect(raw.Spec, typed.Spec, nil, func(path []string, value any) {
		if literal, err := json.Marshal(value); err == nil && size < writtenLimit {
			found = append(found, written{slices.Clone(path), literal})
			for _, step := range path {
				size += len(step) + 4
			}
			size += 32
		}
	})
	if len(found) == 0 {
		return
	}
	annotations := maps.Clone(meta.GetAnnotations())
	if annotations == nil {
		annotations = map[string]string{}
	}
	payload := map[string]json.RawMessage{"version": json.RawMessage(strconv.Itoa(payloadVersion)), "spec": json.RawMessage("{}")}
	if text, ok := annotations[key]; ok && json.Unmarshal([]byte(text), &payload) != nil {
		return
	}
	list, err := json.Marshal(found)
	if err != nil {
		return
	}
	payload[envelopeEmpty] = list
	if text, err = json.Marshal(payload); err != nil {
		return
	}
	if !fits(annotations, key, string(text)) {
		return
	}
	annotations[key] = string(text)
	meta.SetAnnotations(annotations)
}

// collect finds what is empty in a document and gone from its typed form.
func collect(raw, typed any, path []string, found func([]string, any)) {
	switch r := raw.(type) {
	case map[string]any:
		t, ok := typed.(map[string]any)
		if !ok {
			return
		}
		for _, key := range slices.Sorted(maps.Keys(r)) {
			below, there := t[key]
			switch {
			case there:
				collect(r[key], below, append(path, key), found)
			case isEmpty(r[key]):
				found(append(path, key), r[key])
			}
		}
	case []any:
		t, ok := typed.([]any)
		if !ok || len(t) != len(r) {
			return
		}
		for i := range r {
			collect(r[i], t[i], append(path, strconv.Itoa(i)), found)
		}
	}
}

func isEmpty(value any) bool {
	switch v := value.(type) {
	case map[string]any:
		return len(v) == 0
	case []any:
		return len(v) == 0
	case string:
		return v == ""
	case bool:
		return !v
	case float64:
		return v == 0
	default:
		return false // null is never stored
	}
}

// restoreEmpty writes into a converted object what the payload of the source says
// was written though it is empty. It counts only if the object means the same with
// it: a pointer to zero would not.
func restoreEmpty[Out any](converted []byte, payload string) []byte {
	if !bytes.Contains([]byte(payload), []byte(`"`+envelopeEmpty+`"`)) {
		return converted
	}
	var kept struct {
		RawJSON []written `json:"rawJSON"`
	}
	var object map[string]any
	if json.Unmarshal([]byte(payload), &kept) != nil || json.Unmarshal(converted, &object) != nil {
		return converted
	}
	for _, w := range kept.RawJSON {
		var value any
		if json.Unmarshal(w.Raw, &value) == nil && isEmpty(value) {
			insert(object["spec"], w.Path, value)
		}
	}
	text, err := json.Marshal(object)
	if err != nil {
		return converted
	}
	before, after := new(Out), new(Out)
	if json.Unmarshal(converted, before) != nil || json.Unmarshal(text, after) != nil || !same(*before, *after) {
		return converted
	}
	return text
}

// insert writes a value where none is.
func insert(below any, path []string, value any) {
	for ; len(path) > 1; path = path[1:] {
		switch b := below.(type) {
		case map[string]any:
			below = b[path[0]]
		case []any:
			i, err := strconv.Atoi(path[0])
			if err != nil || i < 0 || i >= len(b) {
				return
			}
			below = b[i]
		default:
			return
		}
	}
	if fields, ok := below.(map[string]any); ok && len(path) == 1 {
		if _, there := fields[path[0]]; !there {
			fields[path[0]] = value
		}
	}
}
