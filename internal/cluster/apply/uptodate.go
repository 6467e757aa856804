package apply

import (
	"slices"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// upToDate reports whether applying desired would leave live as it is. It needs
// no memory of earlier writes: owned is the set of fields that live's managed
// fields record as ours. Three things call for a write: a desired field that
// we do not own yet, an owned field that is no longer desired, and a value that
// differs. Fields of others, and defaults that the server filled in, do not.
func upToDate(desired, live map[string]any, owned *fieldpath.Set) bool {
	return fieldsUpToDate(withoutIdentity(desired), live, owned)
}

// withoutIdentity drops the fields that name an object: the server never
// records them as owned by anybody.
func withoutIdentity(object map[string]any) map[string]any {
	rest := make(map[string]any, len(object))
	for k, v := range object {
		switch k {
		case "apiVersion", "kind":
		case "metadata":
			metadata, _ := v.(map[string]any)
			kept := make(map[string]any, len(metadata))
			for mk, mv := range metadata {
				if mk != "name" && mk != "namespace" {
					kept[mk] = mv
				}
			}
			if len(kept) > 0 {
				rest[k] = kept
			}
		default:
			rest[k] = v
		}
	}
	return rest
}

func fieldsUpToDate(desired, live map[string]any, owned *fieldpath.Set) bool {
	for name, want := range desired {
		if want == nil {
			continue
		}
		element := fieldpath.PathElement{FieldName: new(name)}
		have, present := live[name]
		if !present || !valueUpToDate(want, have, element, owned) {
			return false
		}
	}
	return everyElement(owned, func(e fieldpath.PathElement) bool {
		return e.FieldName == nil || desired[*e.FieldName] != nil
	})
}

// valueUpToDate follows the ownership record one step down. The record also
// tells how the server merges a list: by key, as a set, or as a whole.
func valueUpToDate(want, have any, element fieldpath.PathElement, owned *fieldpath.Set) bool {
	below, nested := owned.Children.Get(element)
	if !nested {
		return owned.Members.Has(element) && covers(want, have)
	}
	switch want := want.(type) {
	case map[string]any:
		have, ok := have.(map[string]any)
		return ok && fieldsUpToDate(want, have, below)
	case []any:
		have, ok := have.([]any)
		return ok && itemsUpToDate(want, have, below)
	default:
		return false
	}
}

// itemsUpToDate also holds items with a key to their order, around those of others: init
// containers run in it, and variables are expanded in it.
func itemsUpToDate(desired, live []any, owned *fieldpath.Set) bool {
	last := -1
	for _, want := range desired {
		element, found := elementOf(want, owned)
		if !found {
			return false
		}
		at := slices.IndexFunc(live, func(item any) bool { return matches(element, item) })
		if at < 0 || !itemUpToDate(want, live[at], element, owned) {
			return false
		}
		if element.Key != nil && at < last {
			return false
		}
		last = at
	}
	return everyElement(owned, func(e fieldpath.PathElement) bool {
		return slices.ContainsFunc(desired, func(item any) bool { return matches(e, item) })
	})
}

func itemUpToDate(want, have any, element fieldpath.PathElement, owned *fieldpath.Set) bool {
	below, nested := owned.Children.Get(element)
	wantFields, isMap := want.(map[string]any)
	haveFields, _ := have.(map[string]any)
	if nested && isMap {
		return fieldsUpToDate(wantFields, haveFields, below)
	}
	return covers(want, have)
}

// elementOf finds the record entry under which a list item is owned.
func elementOf(item any, owned *fieldpath.Set) (found fieldpath.PathElement, ok bool) {
	everyElement(owned, func(e fieldpath.PathElement) bool {
		if matches(e, item) {
			found, ok = e, true
		}
		return !ok
	})
	return found, ok
}

// matches reports whether a list item is the one that an ownership entry names.
// A key field that the item leaves out is one the server fills with a default.
func matches(element fieldpath.PathElement, item any) bool {
	switch {
	case element.Key != nil:
		fields, ok := item.(map[string]any)
		if !ok {
			return false
		}
		for _, key := range *element.Key {
			if have, present := fields[key.Name]; present && !value.Equals(value.NewValueInterface(have), key.Value) {
				return false
			}
		}
		return true
	case element.Value != nil:
		return value.Equals(value.NewValueInterface(item), *element.Value)
	default:
		return false
	}
}

// covers reports whether have holds everything that want says. Lists must have
// the same length: a list that is owned as a whole has no foreign items.
func covers(want, have any) bool {
	switch want := want.(type) {
	case map[string]any:
		have, ok := have.(map[string]any)
		if !ok {
			return false
		}
		for k, v := range want {
			if v != nil && !covers(v, have[k]) {
				return false
			}
		}
		return true
	case []any:
		have, ok := have.([]any)
		if !ok || len(want) != len(have) {
			return len(want) == 0 && !ok
		}
		for i := range want {
			if !covers(want[i], have[i]) {
				return false
			}
		}
		return true
	default:
		return value.Equals(value.NewValueInterface(want), value.NewValueInterface(have))
	}
}

// everyElement reports whether ok holds for each entry of one level of an
// ownership record. It visits them all: the library's iterators cannot be left
// early.
func everyElement(owned *fieldpath.Set, ok func(fieldpath.PathElement) bool) bool {
	all := true
	visit := func(e fieldpath.PathElement) { all = all && ok(e) }
	owned.Members.Iterate(visit)
	owned.Children.Iterate(visit)
	return all
}
