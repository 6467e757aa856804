package conversion

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"

	"github.com/dynamo-operator/dynamo-operator/api/v1beta1"
)

// walkEmpty visits the fields below spec of a document whose value says nothing,
// in the order of the document. The document must be valid JSON: it has been
// decoded. This is what encoding/json takes ten times as long for, and nearly all
// documents have none.
func walkEmpty(document []byte, visit func(path []string, literal string)) {
	w := walker{text: document, visit: visit}
	w.object(func(key []byte) bool { return string(key) == "spec" })
}

type walker struct {
	text []byte
	at   int
	path []step
	// visit is nil while nothing is looked for.
	visit func([]string, string)
}

// step is a key as the document has it, or an index.
type step struct {
	key   []byte
	index int
}

// next skips white space and returns the byte there; zero at the end.
func (w *walker) next() byte {
	for ; w.at < len(w.text); w.at++ {
		switch c := w.text[w.at]; c {
		case ' ', '\t', '\n', '\r':
		default:
			return c
		}
	}
	return 0
}

// quoted skips a string and returns what is between its quotes.
func (w *walker) quoted() []byte {
	w.at++
	start := w.at
	for ; w.at < len(w.text); w.at++ {
		switch w.text[w.at] {
		case '\\':
			w.at++
		case '"':
			w.at++
			return w.text[start : w.at-1]
		}
	}
	return nil
}

// scalar skips a number or a word.
func (w *walker) scalar() []byte {
	start := w.at
	for ; w.at < len(w.text); w.at++ {
		switch w.text[w.at] {
		case ',', '}', ']', ' ', '\t', '\n', '\r':
			return w.text[start:w.at]
		}
	}
	return w.text[start:]
}

// object walks an object. With a filter, only the fields that it takes are looked
// into, and are no part of the path. It returns the number of fields.
func (w *walker) object(only func([]byte) bool) (fields int) {
	if w.next() != '{' {
		return 0
	}
	w.at++
	for w.next() == '"' {
		fields++
		key := w.quoted()
		if w.next() == ':' {
			w.at++
		}
		switch {
		case only == nil:
			w.path = append(w.path, step{key: key})
			if literal := w.value(); literal != "" && w.visit != nil {
				w.visit(w.names(), literal)
			}
			w.path = w.path[:len(w.path)-1]
		case only(key):
			w.value()
		default:
			visit := w.visit
			w.visit = nil
			w.value()
			w.visit = visit
		}
		if w.next() == ',' {
			w.at++
		}
	}
	w.at++
	return fields
}

// value walks a value and returns how it is written if it says nothing.
func (w *walker) value() string {
	switch w.next() {
	case '{':
		if w.object(nil) == 0 {
			return "{}"
		}
	case '[':
		if w.list() == 0 {
			return "[]"
		}
	case '"':
		if len(w.quoted()) == 0 {
			return `""`
		}
	default:
		switch word := w.scalar(); {
		case string(word) == "false":
			return "false"
		case len(word) > 0 && (word[0] == '0' || word[0] == '-'):
			if n, err := strconv.ParseFloat(string(word), 64); err == nil && n == 0 {
				return "0"
			}
		}
	}
	return ""
}

func (w *walker) list() (items int) {
	w.at++
	for c := w.next(); c != ']' && c != 0; c = w.next() {
		w.path = append(w.path, step{index: items})
		before := w.at
		w.value()
		w.path = w.path[:len(w.path)-1]
		items++
		if w.next() == ',' {
			w.at++
		}
		if w.at == before {
			return items // is no JSON
		}
	}
	w.at++
	return items
}

// names is the path to where the walker is.
func (w *walker) names() []string {
	path := make([]string, len(w.path))
	for i, s := range w.path {
		switch {
		case s.key == nil:
			path[i] = strconv.Itoa(s.index)
		case slices.Contains(s.key, '\\') && json.Unmarshal(fmt.Appendf(nil, `"%s"`, s.key), &path[i]) == nil:
		default:
			path[i] = string(s.key)
		}
	}
	return path
}

// shape is how a struct is encoded.
type shape struct {
	// raw types have their own form in JSON, which is kept as it is.
	raw    bool
	fields map[string]shapeField
}

type shapeField struct {
	index []int
	// omits tells that the field is left out where it is empty; a struct is only by
	// zeroes.
	omits, zeroes bool
}

var (
	shapes    sync.Map // by reflect.Type
	marshaler = reflect.TypeFor[json.Marshaler]()

	podTemplate = reflect.TypeFor[v1beta1.PodTemplate]()
	container   = reflect.TypeFor[corev1.Container]()
)

// shapeOf is the shape of a struct. That of a pod template has a marshaler that only
// leaves out what is empty.
func shapeOf(t reflect.Type) shape {
	if known, ok := shapes.Load(t); ok {
		return known.(shape)
	}
	s := shape{fields: map[string]shapeField{}}
	if s.raw = reflect.PointerTo(t).Implements(marshaler) && t != podTemplate; !s.raw {
		s.add(t, nil)
	}
	shapes.Store(t, s)
	return s
}

func (s shape) add(t reflect.Type, above []int) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		index := append(slices.Clone(above), i)
		inner := f.Type
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		switch {
		case name == "-" || !f.IsExported():
		case name == "" && f.Anonymous && inner.Kind() == reflect.Struct:
			s.add(inner, index)
		default:
			if name == "" {
				name = f.Name
			}
			if _, hidden := s.fields[name]; !hidden || len(above) == 0 {
				zeroes := strings.Contains(options, "omitzero")
				s.fields[name] = shapeField{index, zeroes || strings.Contains(options, "omitempty"), zeroes}
			}
		}
	}
}

// omitted reports whether a field that is empty is left out when an object is
// encoded. Where that cannot be seen it is not.
func omitted(object any, path []string) bool {
	v, inPod := reflect.ValueOf(object), false
	for ; len(path) > 0; path = path[1:] {
		for v.Kind() == reflect.Pointer {
			v = v.Elem() // of nil is none
		}
		switch v.Kind() {
		case reflect.Slice:
			i, err := strconv.Atoi(path[0])
			if err != nil || i >= v.Len() {
				return false
			}
			v = v.Index(i)
		case reflect.Map:
			if v.Type().Key().Kind() != reflect.String || len(path) == 1 {
				return false // a key that is there stays
			}
			v = v.MapIndex(reflect.ValueOf(path[0]).Convert(v.Type().Key()))
		case reflect.Struct:
			parent := v.Type()
			inPod = inPod || parent == podTemplate
			s := shapeOf(parent)
			field, known := s.fields[path[0]]
			if s.raw || !known {
				return false
			}
			var err error
			if v, err = v.FieldByIndexErr(field.index); err != nil {
				return false
			}
			if len(path) == 1 {
				switch v.Kind() {
				case reflect.Pointer, reflect.Interface:
					return false
				case reflect.Struct:
					// A pod template says no metadata and, of containers, no resources.
					spared := inPod && (parent == podTemplate || parent == container)
					return v.IsZero() && !shapeOf(v.Type()).raw && (field.zeroes || spared)
				default:
					return field.omits
				}
			}
		default:
			return false
		}
	}
	return false
}
