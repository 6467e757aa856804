package plan

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// place is where a field stands: keys of maps, and names of elements in lists of
// named ones.
type place []string

// String is the place as a person writes it.
func (p place) String() string {
	var text strings.Builder
	for i, part := range p {
		switch {
		case strings.ContainsAny(part, "./") || i > 0 && p[i-1] == "services" && i == 2 || strings.HasPrefix(part, element):
			fmt.Fprintf(&text, "[%s]", strings.TrimPrefix(part, element))
		case i == 0:
			text.WriteString(part)
		default:
			text.WriteString("." + part)
		}
	}
	return text.String()
}

// element marks the name of an element of a list among the parts of a place.
const element = "\x00"

// change is a field that differs; nil is one that is not there.
type change struct {
	at       place
	old, new any
}

// changes lists the fields that differ, sorted by place. Lists whose elements all
// have a name are compared by it, other lists as a whole.
func changes(at place, old, desired any) []change {
	if reflect.DeepEqual(old, desired) {
		return nil
	}
	before, after, prefix, ok := pairs(old, desired)
	if !ok {
		return []change{{slices.Clone(at), old, desired}}
	}
	var all []change
	keys := map[string]bool{}
	for _, m := range []map[string]any{before, after} {
		for key := range m {
			keys[key] = true
		}
	}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		all = append(all, changes(append(slices.Clip(at), prefix+key), before[key], after[key])...)
	}
	if len(all) == 0 { // the same elements in another order
		return []change{{slices.Clone(at), old, desired}}
	}
	return all
}

// pairs are the parts of two values that can be compared one by one.
func pairs(old, desired any) (before, after map[string]any, prefix string, ok bool) {
	before, isMap := old.(map[string]any)
	after, alsoMap := desired.(map[string]any)
	if isMap && alsoMap {
		return before, after, "", true
	}
	before, isList := named(old)
	after, alsoList := named(desired)
	return before, after, element, isList && alsoList
}

// named are the elements of a list by their names, if each has one of its own.
func named(value any) (map[string]any, bool) {
	list, ok := value.([]any)
	if !ok || len(list) == 0 {
		return nil, false
	}
	by := map[string]any{}
	for _, item := range list {
		fields, _ := item.(map[string]any)
		name, ok := fields["name"].(string)
		if _, twice := by[name]; !ok || twice {
			return nil, false
		}
		by[name] = fields
	}
	return by, true
}

// with is a value with one field as a change has it. The value stays as it is.
func with(value any, at place, to any) any {
	if len(at) == 0 {
		return to
	}
	key, isElement := strings.CutPrefix(at[0], element)
	if !isElement {
		fields, _ := value.(map[string]any)
		fields = maps.Clone(fields)
		if fields == nil {
			fields = map[string]any{}
		}
		if inner := with(fields[key], at[1:], to); inner != nil {
			fields[key] = inner
		} else {
			delete(fields, key)
		}
		return fields
	}
	list, _ := value.([]any)
	var changed []any
	found := false
	for _, item := range list {
		if fields, _ := item.(map[string]any); fields["name"] == key {
			found = true
			item = with(item, at[1:], to)
		}
		if item != nil {
			changed = append(changed, item)
		}
	}
	if inner := with(nil, at[1:], to); !found && inner != nil {
		changed = append(changed, inner)
	}
	return changed
}

// describe is what a field was and is, in a line each. Of lists that differ in a few
// elements, such as arguments, those are shown.
func (c change) describe() (was, is string) {
	old, wasList := c.old.([]any)
	desired, isList := c.new.([]any)
	if !wasList || !isList {
		return describe(c.old), describe(c.new)
	}
	for len(old) > 0 && len(desired) > 0 && reflect.DeepEqual(old[0], desired[0]) {
		old, desired = old[1:], desired[1:]
	}
	for len(old) > 0 && len(desired) > 0 && reflect.DeepEqual(old[len(old)-1], desired[len(desired)-1]) {
		old, desired = old[:len(old)-1], desired[:len(desired)-1]
	}
	elements := func(list []any) string {
		if len(list) == 0 {
			return "(none)"
		}
		return describe(list)
	}
	return elements(old), elements(desired)
}

// describe is a value in a line.
func describe(value any) string {
	switch v := value.(type) {
	case nil:
		return "(none)"
	case string:
		return shorten(v)
	default:
		text, err := json.Marshal(v)
		if err != nil {
			return "?"
		}
		return shorten(string(text))
	}
}

// shorten keeps a line readable; the whole is in the manifests.
func shorten(text string) string {
	const most = 60
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most-3]) + "..."
	}
	return text
}
