package conversion

import (
	"bytes"
	"encoding/json"
	"maps"
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

// writtenEmpty finds what the source of an object says in its spec though it is
// empty, and the typed spec does not say.
func writtenEmpty(source []byte, spec any) []written {
	var found []written
	size := 0
	walkEmpty(source, func(path []string, literal string) {
		if size >= writtenLimit || !omitted(spec, path) {
			return
		}
		found = append(found, written{path, json.RawMessage(literal)})
		for _, step := range path {
			size += len(step) + 4
		}
		size += 32
	})
	return found
}

// keepEmpty adds to the payload of a converted object what the source wrote
// though it is empty.
func keepEmpty(meta metav1.Object, key string, found []written) {
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
	text, err := json.Marshal(payload)
	if err != nil || !fits(annotations, key, string(text)) {
		return
	}
	annotations[key] = string(text)
	meta.SetAnnotations(annotations)
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
