package conversion

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/dynamo-operator/dynamo-operator/api/v1beta1"
)

// targets are what v1beta1 has fields for in the profiler's configuration of
// v1alpha1.
type targets struct {
	SLA        *v1beta1.SLA
	Workload   *v1beta1.Workload
	ModelCache *v1beta1.ModelCache
	Planner    *runtime.RawExtension
}

// document is a JSON object whose numbers keep their text.
type document = map[string]any

func readDocument(raw *runtime.RawExtension) document {
	if raw == nil {
		return nil
	}
	decoder := json.NewDecoder(bytes.NewReader(raw.Raw))
	decoder.UseNumber()
	var d document
	if decoder.Decode(&d) != nil {
		return nil
	}
	return d
}

// readConfig finds the targets in a configuration. A value of another type than
// v1beta1's is none.
func readConfig(raw *runtime.RawExtension) targets {
	config := readDocument(raw)
	sla, _ := config["sla"].(document)
	deployment, _ := config["deployment"].(document)
	cache, _ := deployment["modelCache"].(document)
	var t targets
	s := v1beta1.SLA{TTFT: number(sla["ttft"]), ITL: number(sla["itl"])}
	if kind := text(sla["optimizationType"]); kind == "latency" || kind == "throughput" {
		s.OptimizationType = kind
	}
	if s != (v1beta1.SLA{}) {
		t.SLA = &s
	}
	if w := (v1beta1.Workload{ISL: whole(sla["isl"]), OSL: whole(sla["osl"])}); w != (v1beta1.Workload{}) {
		t.Workload = &w
	}
	c := v1beta1.ModelCache{PVCName: text(cache["pvcName"]), PVCModelPath: text(cache["modelPathInPvc"]), PVCMountPath: text(cache["pvcMountPath"])}
	if c != (v1beta1.ModelCache{}) {
		t.ModelCache = &c
	}
	if planner, ok := config["planner"].(document); ok {
		t.Planner = encode(planner)
	}
	return t
}

// write puts the targets into a configuration, over what it says of them.
func (t targets) write(over *runtime.RawExtension) *runtime.RawExtension {
	config := readDocument(over)
	if config == nil {
		config = document{}
	}
	was := readConfig(over)
	s, old := orZero(t.SLA), orZero(was.SLA)
	w, oldW := orZero(t.Workload), orZero(was.Workload)
	c, oldC := orZero(t.ModelCache), orZero(was.ModelCache)
	set(config, old.TTFT != nil, orNil(s.TTFT), "sla", "ttft")
	set(config, old.ITL != nil, orNil(s.ITL), "sla", "itl")
	set(config, old.OptimizationType != "", orAbsent(s.OptimizationType), "sla", "optimizationType")
	set(config, oldW.ISL != nil, orNil(w.ISL), "sla", "isl")
	set(config, oldW.OSL != nil, orNil(w.OSL), "sla", "osl")
	set(config, oldC.PVCName != "", orAbsent(c.PVCName), "deployment", "modelCache", "pvcName")
	set(config, oldC.PVCModelPath != "", orAbsent(c.PVCModelPath), "deployment", "modelCache", "modelPathInPvc")
	set(config, oldC.PVCMountPath != "", orAbsent(c.PVCMountPath), "deployment", "modelCache", "pvcMountPath")
	var planner any
	if t.Planner != nil {
		planner = json.RawMessage(t.Planner.Raw)
		if !json.Valid(t.Planner.Raw) {
			planner = nil
		}
	}
	set(config, was.Planner != nil, planner, "planner")
	return encode(config)
}

// set writes a value at a path, or removes the one that was there.
func set(config document, was bool, value any, path ...string) {
	for _, step := range path[:len(path)-1] {
		next, ok := config[step].(document)
		if !ok {
			if value == nil {
				return
			}
			next = document{}
			config[step] = next
		}
		config = next
	}
	last := path[len(path)-1]
	switch {
	case value != nil:
		config[last] = value
	case was:
		delete(config, last)
	}
}

func orZero[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}

func number(v any) *float64 {
	n, ok := v.(json.Number)
	if !ok {
		return nil
	}
	f, err := n.Float64()
	if err != nil || math.IsInf(f, 0) {
		return nil
	}
	return &f
}

func whole(v any) *int32 {
	n, ok := v.(json.Number)
	if !ok {
		return nil
	}
	i, err := strconv.ParseInt(n.String(), 10, 32)
	if err != nil {
		return nil
	}
	small := int32(i)
	return &small
}

func text(v any) string {
	s, _ := v.(string)
	return s
}

// orNil is what a pointer points to, or nil.
func orNil[T any](p *T) any {
	if p == nil {
		return nil
	}
	return *p
}

// orAbsent is a text, or nil if it is empty.
func orAbsent(s string) any {
	if s == "" {
		return nil
	}
	return s
}

func encode(d document) *runtime.RawExtension {
	raw, err := json.Marshal(d)
	if err != nil {
		return &runtime.RawExtension{Raw: []byte("{}")}
	}
	return &runtime.RawExtension{Raw: raw}
}

// sameJSON compares values, not texts.
func sameJSON(a, b *runtime.RawExtension) bool {
	if a == nil || b == nil {
		return a == b
	}
	if bytes.Equal(a.Raw, b.Raw) {
		return true
	}
	var x, y any
	return decodeNumbers(a.Raw, &x) == nil && decodeNumbers(b.Raw, &y) == nil && same(x, y)
}

func decodeNumbers(raw []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	return decoder.Decode(into)
}
