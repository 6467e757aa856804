package pod

import (
	"reflect"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Overlay lays a user's part of a pod over ours and returns the result; neither
// input is changed. Its rules are those that kubectl's strategic merge knows
// for the same types, read from the same struct tags:
//
//   - a scalar that is set wins; a pointer to a zero value counts as set
//   - maps are joined, the user's keys win
//   - structs are overlaid field by field
//   - lists with a merge key (env by name, ports by containerPort, volumes and
//     containers by name, mounts by mountPath) are joined by it: ours first, in
//     our order, then what the user adds
//   - an item that can be only one thing of many, such as a volume, is replaced
//   - other lists (command, args, tolerations) are replaced when given
func Overlay[T any](ours, users T) T {
	merged := reflect.New(reflect.TypeFor[T]()).Elem()
	merged.Set(overlay(reflect.ValueOf(ours), reflect.ValueOf(users), list{}))
	return merged.Interface().(T)
}

// list says how the items of a list field are joined.
type list struct {
	key     string // JSON name of the merge key; empty: the list is replaced
	replace bool   // an item with a known key is replaced, not overlaid
}

// lists remembers how the fields of a struct are joined: tags are slow to read.
var lists sync.Map // reflect.Type to []list

func listsOf(t reflect.Type) []list {
	if known, ok := lists.Load(t); ok {
		return known.([]list)
	}
	fields := make([]list, t.NumField())
	for i := range fields {
		fields[i] = listOf(t.Field(i))
	}
	lists.Store(t, fields)
	return fields
}

func listOf(field reflect.StructField) list {
	strategy := field.Tag.Get("patchStrategy")
	if !strings.Contains(strategy, "merge") {
		return list{}
	}
	return list{key: field.Tag.Get("patchMergeKey"), replace: strings.Contains(strategy, "retainKeys")}
}

// whole are structs that mean one value and are never overlaid by parts.
var whole = map[reflect.Type]bool{
	reflect.TypeFor[resource.Quantity]():  true,
	reflect.TypeFor[intstr.IntOrString](): true,
}

func overlay(ours, users reflect.Value, how list) reflect.Value {
	switch ours.Kind() {
	case reflect.Pointer:
		return overlayPointer(ours, users)
	case reflect.Map:
		return overlayMap(ours, users)
	case reflect.Slice:
		return overlaySlice(ours, users, how)
	case reflect.Struct:
		if !whole[ours.Type()] {
			return overlayStruct(ours, users)
		}
	}
	if users.IsZero() {
		return ours
	}
	return users
}

func overlayPointer(ours, users reflect.Value) reflect.Value {
	switch {
	case users.IsNil():
		return ours
	case ours.IsNil() || users.Elem().Kind() != reflect.Struct:
		return users
	}
	merged := reflect.New(ours.Type().Elem())
	merged.Elem().Set(overlay(ours.Elem(), users.Elem(), list{}))
	return merged
}

func overlayStruct(ours, users reflect.Value) reflect.Value {
	switch {
	case users.IsZero():
		return ours
	case ours.IsZero():
		return users
	}
	merged := reflect.New(ours.Type()).Elem()
	merged.Set(ours)
	for i, how := range listsOf(ours.Type()) {
		if theirs := users.Field(i); !theirs.IsZero() {
			merged.Field(i).Set(overlay(ours.Field(i), theirs, how))
		}
	}
	return merged
}

func overlayMap(ours, users reflect.Value) reflect.Value {
	switch {
	case users.Len() == 0:
		return ours
	case ours.Len() == 0:
		return users
	}
	merged := reflect.MakeMapWithSize(ours.Type(), ours.Len()+users.Len())
	for _, from := range []reflect.Value{ours, users} {
		for it := from.MapRange(); it.Next(); {
			merged.SetMapIndex(it.Key(), it.Value())
		}
	}
	return merged
}

func overlaySlice(ours, users reflect.Value, how list) reflect.Value {
	switch {
	case users.Len() == 0:
		return ours
	case how.key == "" || ours.Len() == 0:
		return users
	}
	merged := reflect.MakeSlice(ours.Type(), 0, ours.Len()+users.Len())
	merged = reflect.AppendSlice(merged, ours)
	for i := range users.Len() {
		item := users.Index(i)
		at := indexByKey(merged, how.key, keyOf(item, how.key))
		switch {
		case at < 0:
			merged = reflect.Append(merged, item)
		case how.replace:
			merged.Index(at).Set(item)
		default:
			merged.Index(at).Set(overlay(merged.Index(at), item, list{}))
		}
	}
	return merged
}

func indexByKey(list reflect.Value, mergeKey string, key any) int {
	for i := range list.Len() {
		if keyOf(list.Index(i), mergeKey) == key {
			return i
		}
	}
	return -1
}

// keyOf reads the field of a list item whose JSON name is the merge key.
func keyOf(item reflect.Value, mergeKey string) any {
	for i := range item.NumField() {
		name, _, _ := strings.Cut(item.Type().Field(i).Tag.Get("json"), ",")
		if name == mergeKey {
			return item.Field(i).Interface()
		}
	}
	return nil
}
