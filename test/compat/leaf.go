package compat

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// leaves lists the scalars of a JSON value by their path. Items of a list are
// addressed by a key where all have one, so that an item more does not move the
// others; such a list has one leaf more, its order. An empty map or list is a
// leaf too: emptyDir: {} means something.
func leaves(value any) map[string]string {
	all := map[string]string{}
	collect(all, "", value)
	return all
}

// orderLeaf is the last part of the path under which a list's order stands.
const orderLeaf = "(order)"

func collect(into map[string]string, path string, value any) {
	switch v := value.(type) {
	case map[string]any:
		if len(v) == 0 {
			into[path] = "{}"
		}
		for name, member := range v {
			collect(into, child(path, name), member)
		}
	case []any:
		collectList(into, path, v)
	default:
		into[path] = scalar(v)
	}
}

func collectList(into map[string]string, path string, list []any) {
	if len(list) == 0 {
		into[path] = "[]"
		return
	}
	keys := keysOf(list)
	for i, item := range list {
		address := fmt.Sprint(i)
		if keys != nil {
			address = keys[i]
		}
		collect(into, path+"["+address+"]", item)
	}
	if len(keys) > 1 {
		into[child(path, orderLeaf)] = strings.Join(keys, " ")
	}
}

// listKeys are the members that tell items of Kubernetes' lists apart, the more
// telling first: two mounts of one volume have the same name.
var listKeys = []string{"mountPath", "name", "containerPort", "port", "number", "ip", "uid"}

// keysOf returns the key of each item; nil if there is no member that all items
// have and no two share.
func keysOf(list []any) []string {
	for _, member := range listKeys {
		var keys []string
		for _, item := range list {
			fields, _ := item.(map[string]any)
			key, found := fields[member]
			if !found || slices.Contains(keys, text(key)) {
				break
			}
			keys = append(keys, text(key))
		}
		if len(keys) == len(list) {
			return keys
		}
	}
	return nil
}

// child addresses a member. Names with dots, such as labels, are quoted.
func child(path, name string) string {
	if strings.ContainsAny(name, "./") && name != orderLeaf {
		return path + "[" + name + "]"
	}
	if path == "" {
		return name
	}
	return path + "." + name
}

func scalar(v any) string {
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false) // scripts are read by people
	if err := encoder.Encode(v); err != nil {
		panic(err) // a decoded JSON value can be encoded
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// text is a scalar without quotes.
func text(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	return scalar(v)
}
