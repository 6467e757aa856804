package prerequisite

import (
	"encoding/json"
	"slices"
)

// engineFiles are the configurations of engines, by ConfigMap and key. A recipe says
// in them what its command lines leave out, and an engine of several nodes that finds
// neither refuses to start: one rank is not to be divided by its nodes.
type engineFiles map[string]map[string]engineFile

// engineFile is what a file must say, in the words of SGLang's flags.
type engineFile struct {
	Mode  string `json:"disaggregation-mode,omitempty"`
	Ranks int64  `json:"tensor-parallel-size,omitempty"`
}

// component notes the files of a component's engines, in either version.
func (n *Needs) component(c map[string]any) {
	needed := engineFile{}
	for _, key := range []string{"type", "componentType", "subComponentType"} {
		if role := first(c, key); role == "prefill" || role == "decode" {
			needed.Mode = role
		}
	}
	if multinode, ok := c["multinode"].(map[string]any); ok {
		needed.Ranks = number(multinode["nodeCount"]) // the least that its nodes divide
	}
	template, _ := c["podTemplate"].(map[string]any)
	for _, value := range []any{template["spec"], c["extraPodSpec"]} {
		if spec, ok := value.(map[string]any); ok {
			n.engines.read(spec, needed)
		}
	}
}

func (f engineFiles) read(spec map[string]any, needed engineFile) {
	containers := list(spec["containers"])
	if main, ok := spec["mainContainer"].(map[string]any); ok {
		containers = append(containers, main)
	}
	for _, container := range containers {
		line, file := words(container), needed
		if !slices.Contains(line, "dynamo.sglang") {
			continue
		}
		if slices.Contains(line, "--disaggregation-mode") {
			file.Mode = ""
		}
		for _, mount := range list(container["volumeMounts"]) {
			for _, volume := range list(spec["volumes"]) {
				source, ok := volume["configMap"].(map[string]any)
				if !ok || first(volume, "name") != first(mount, "name") {
					continue
				}
				for _, key := range filesBelow(first(mount, "mountPath"), container) {
					f.add(first(source, "name"), key, file)
				}
			}
		}
	}
}

// add joins what the components say that read the same file.
func (f engineFiles) add(name, key string, file engineFile) {
	if f[name] == nil {
		f[name] = map[string]engineFile{}
	}
	known := f[name][key]
	f[name][key] = engineFile{Mode: max(known.Mode, file.Mode), Ranks: max(known.Ranks, file.Ranks)}
}

// fill puts files into the data of a ConfigMap.
func (f engineFiles) fill(name string, data map[string]any) {
	for key, file := range f[name] {
		text, _ := json.Marshal(file) // of strings and numbers
		data[key] = string(text)
	}
}

// number is one that was read from JSON or YAML; 0 if it is none.
func number(value any) int64 {
	switch n := value.(type) {
	case int64:
		return n
	case float64:
		return int64(n)
	}
	return 0
}
