package config

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// reader takes values out of one section and remembers which keys were asked
// for: what is left at the end has no effect, and is said to have none.
type reader struct {
	path   string
	fields map[string]any // by camelCase key
	used   map[string]bool
	*findings
}

type findings struct {
	problems, warnings []string
	sections           []*reader
}

func newReader(path string, raw map[string]any) *reader {
	r := &reader{findings: &findings{}}
	return r.child(path, raw)
}

func (r *reader) child(path string, raw map[string]any) *reader {
	c := &reader{path: path, fields: map[string]any{}, used: map[string]bool{}, findings: r.findings}
	// Sorted, camelCase last: where both spellings are given it wins.
	keys := slices.SortedFunc(maps.Keys(raw), func(a, b string) int {
		if sa, sb := strings.Contains(a, "_"), strings.Contains(b, "_"); sa != sb {
			if sa {
				return -1
			}
			return 1
		}
		return strings.Compare(a, b)
	})
	for _, key := range keys {
		// Python's None reaches YAML as a word.
		if value := raw[key]; value != nil && value != "None" {
			c.fields[camel(key)] = value
		}
	}
	c.sections = append(c.sections, c)
	return c
}

func (r *reader) at(key string) string {
	if r.path == "" {
		return key
	}
	return r.path + "." + key
}

func (r *reader) take(key string) (any, bool) {
	r.used[key] = true
	value, ok := r.fields[key]
	return value, ok
}

func (r *reader) refuse(key, want string, value any) {
	r.problems = append(r.problems, fmt.Sprintf("%s: %v is not %s", r.at(key), value, want))
}

func (r *reader) warn(key, why string) {
	r.warnings = append(r.warnings, r.at(key)+" has no effect: "+why)
}

func (r *reader) section(key string) *reader {
	value, ok := r.take(key)
	fields, isMap := value.(map[string]any)
	if ok && !isMap {
		r.refuse(key, "an object", value)
	}
	return r.child(r.at(key), fields)
}

func (r *reader) text(key, byDefault string) string {
	switch value, ok := r.take(key); v := value.(type) {
	case string:
		return v
	case float64, bool: // a version such as 1.2 is a number in YAML
		return fmt.Sprint(v)
	default:
		if ok {
			r.refuse(key, "text", value)
		}
		return byDefault
	}
}

func (r *reader) number(key string, byDefault float64) float64 {
	value, ok := r.take(key)
	if !ok {
		return byDefault
	}
	switch v := value.(type) {
	case float64:
		return v
	case string:
		if n, err := strconv.ParseFloat(v, 64); err == nil && !math.IsNaN(n) && !math.IsInf(n, 0) {
			return n
		}
	}
	r.refuse(key, "a number", value)
	return byDefault
}

func (r *reader) whole(key string, byDefault int) int {
	n := r.number(key, float64(byDefault))
	if n != math.Trunc(n) || math.Abs(n) > 1e9 {
		r.refuse(key, "a whole number", n)
		return byDefault
	}
	return int(n)
}

func (r *reader) flag(key string, byDefault bool) bool {
	value, ok := r.take(key)
	if !ok {
		return byDefault
	}
	switch v := value.(type) {
	case bool:
		return v
	case string:
		if b, err := strconv.ParseBool(v); err == nil {
			return b
		}
	}
	r.refuse(key, "true or false", value)
	return byDefault
}

func (r *reader) list(key string) []string {
	value, ok := r.take(key)
	if !ok {
		return nil
	}
	if one, isText := value.(string); isText {
		return strings.FieldsFunc(one, func(c rune) bool { return c == ',' || c == ' ' })
	}
	items, isList := value.([]any)
	if !isList {
		r.refuse(key, "a list", value)
	}
	var all []string
	for _, item := range items {
		all = append(all, fmt.Sprint(item))
	}
	return all
}

// finish returns what is wrong, and a warning for each key that nobody asked
// for.
func (r *reader) finish() (problems, warnings []string) {
	for _, s := range r.sections {
		for _, key := range slices.Sorted(maps.Keys(s.fields)) {
			if !s.used[key] {
				s.warn(key, "it is not known")
			}
		}
	}
	return r.problems, r.warnings
}

// plannerFlags turns plannerMinEndpoint, planner_min_endpoint or minEndpoint into
// the planner's own min-endpoint.
func plannerFlags(r *reader) map[string]string {
	flags := map[string]string{}
	for key := range r.fields {
		value, _ := r.take(key)
		name := strings.TrimPrefix(kebab(key), "planner-")
		switch v := value.(type) {
		case string, bool:
			flags[name] = fmt.Sprint(v)
		case float64:
			flags[name] = strconv.FormatFloat(v, 'f', -1, 64)
		default:
			r.refuse(key, "a value of a flag", value)
		}
	}
	return flags
}

func camel(key string) string {
	head, rest, found := strings.Cut(key, "_")
	if !found || head == "" {
		return key
	}
	var b strings.Builder
	b.WriteString(head)
	for word := range strings.SplitSeq(rest, "_") {
		if word != "" {
			b.WriteString(strings.ToUpper(word[:1]) + word[1:])
		}
	}
	return b.String()
}

func kebab(key string) string {
	var b strings.Builder
	for i, c := range key {
		if unicode.IsUpper(c) && i > 0 {
			b.WriteByte('-')
		}
		b.WriteRune(unicode.ToLower(c))
	}
	return b.String()
}
