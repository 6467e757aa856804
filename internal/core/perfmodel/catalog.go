// Package perfmodel estimates how long an inference engine takes and what fits
// into its GPUs: prefill, decode, memory and service under load, for a model, a
// GPU, an engine and a parallel layout. It knows arithmetic and tables; it
// measures nothing, reads no file and never guesses a model or GPU it has no
// table for.
//
// The same estimates time the mock engine, drive the offline profiler and size
// replicas.
package perfmodel

import (
	"cmp"
	_ "embed"
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

//go:embed data/models.yaml
var modelData []byte

//go:embed data/gpus.yaml
var gpuData []byte

//go:embed data/constants.yaml
var constantData []byte

//go:embed data/kernels.yaml
var kernelData []byte

//go:embed data/measured.yaml
var measuredData []byte

// FormatVersion is the version of the tables this package reads.
const FormatVersion = 1

// Catalog is what is known: models, GPUs, what kernels reach, the constants of
// engines, and how far off these are of what was measured. Its lists are sorted by
// name.
type Catalog struct {
	Models    []Model
	GPUs      []GPU
	Constants []Constants
	Kernels   Kernels
	Measured  []Measured
}

// file is the form of a table, built in or given by a user. Any part may be
// missing.
type file struct {
	Version   int         `json:"version"`
	Models    []Model     `json:"models,omitempty"`
	GPUs      []GPU       `json:"gpus,omitempty"`
	Constants []Constants `json:"constants,omitempty"`
	Kernels   *Kernels    `json:"kernels,omitempty"`
	Measured  []Measured  `json:"measured,omitempty"`
}

// MarshalKernels writes what kernels reach in the form of a table.
func MarshalKernels(kernels Kernels) ([]byte, error) {
	return yaml.Marshal(file{Version: FormatVersion, Kernels: &kernels})
}

// MarshalConstants writes constants in the form of a table.
func MarshalConstants(constants []Constants) ([]byte, error) {
	return yaml.Marshal(file{Version: FormatVersion, Constants: constants})
}

// Default returns the built-in tables.
func Default() Catalog {
	var c Catalog
	for _, data := range [][]byte{modelData, gpuData, kernelData, constantData, measuredData} {
		next, err := c.With(data)
		if err != nil {
			panic("built-in tables: " + err.Error()) // a test reads them
		}
		c = next
	}
	return c
}

// With adds a user's tables (YAML or JSON) to the catalog. An entry replaces
// the one of the same name.
func (c Catalog) With(data []byte) (Catalog, error) {
	var f file
	if err := yaml.UnmarshalStrict(data, &f); err != nil {
		return Catalog{}, fmt.Errorf("read performance tables: %w", err)
	}
	if f.Version != FormatVersion {
		return Catalog{}, fmt.Errorf("read performance tables: version is %d, want %d", f.Version, FormatVersion)
	}
	for _, m := range f.Models {
		if err := m.validate(); err != nil {
			return Catalog{}, err
		}
	}
	for _, g := range f.GPUs {
		if err := g.validate(); err != nil {
			return Catalog{}, err
		}
	}
	kernels := c.Kernels
	if f.Kernels != nil {
		if err := f.Kernels.validate(); err != nil {
			return Catalog{}, err
		}
		kernels = *f.Kernels
	}
	out := Catalog{
		Kernels:   kernels,
		Models:    merge(c.Models, f.Models, func(m Model) string { return key(m.Name) }),
		GPUs:      merge(c.GPUs, f.GPUs, func(g GPU) string { return key(g.Name) }),
		Constants: merge(c.Constants, f.Constants, func(k Constants) string { return fmt.Sprint(k.Engine, k.Mixture) }),
	}
	for i := range f.Measured {
		if err := f.Measured[i].resolve(out); err != nil {
			return Catalog{}, err
		}
	}
	out.Measured = merge(c.Measured, f.Measured, Measured.name)
	return out, nil
}

func merge[T any](old, added []T, name func(T) string) []T {
	out := slices.Clone(old)
	for _, a := range added {
		out = slices.DeleteFunc(out, func(o T) bool { return name(o) == name(a) })
		out = append(out, a)
	}
	slices.SortFunc(out, func(a, b T) int { return cmp.Compare(name(a), name(b)) })
	return out
}

func (m Model) validate() error {
	switch {
	case m.Name == "":
		return fmt.Errorf("read performance tables: a model has no name")
	case m.Layers < 1 || m.Hidden < 1 || m.Heads < 1 || m.Vocab < 1:
		return fmt.Errorf("model %s: layers, hidden, heads and vocab must be positive", m.Name)
	case m.Latent == nil && (m.KVHeads < 1 || m.HeadSize < 1):
		return fmt.Errorf("model %s: kvHeads and headSize must be positive", m.Name)
	case m.Experts == nil && m.FFN < 1:
		return fmt.Errorf("model %s: neither ffn nor experts", m.Name)
	case m.Experts != nil && (m.Experts.Count < 1 || m.Experts.Active < 1 || m.Experts.Active > m.Experts.Count || m.Experts.FFN < 1):
		return fmt.Errorf("model %s: experts need count, active (at most count) and ffn", m.Name)
	}
	return nil
}

func (g GPU) validate() error {
	if g.Name == "" || g.Teraflops[BF16] <= 0 || g.Memory <= 0 || g.Bandwidth <= 0 || g.Link <= 0 || g.Fabric <= 0 || g.Domain < 1 {
		return fmt.Errorf("gpu %q: name, teraflops.bf16, memoryGiB, bandwidthGBps, linkGBps, fabricGBps and domain are needed", g.Name)
	}
	return nil
}

// UnknownError refuses to guess: a name has no table. Known lists those that
// have, sorted.
type UnknownError struct {
	Kind  string // "model", "gpu" or "engine"
	Name  string
	Known []string
}

func (e *UnknownError) Error() string {
	return fmt.Sprintf("no performance data for %s %q; known: %s", e.Kind, e.Name, strings.Join(e.Known, ", "))
}

// key makes names comparable: case, separators and the publisher do not matter.
func key(name string) string {
	return strings.NewReplacer("_", "-", " ", "-", ".", "-").Replace(strings.ToLower(strings.Trim(name, "/")))
}

// base is the last part of a path-like name.
func base(name string) string {
	name = strings.TrimRight(name, "/")
	return name[strings.LastIndexByte(name, '/')+1:]
}

// Model finds an architecture by name or alias, first as a whole, then by its
// last part, so that a folder or another publisher's copy is recognised.
func (c Catalog) Model(name string) (Model, error) {
	for _, form := range []func(string) string{key, func(s string) string { return key(base(s)) }} {
		for _, m := range c.Models {
			for _, n := range append([]string{m.Name}, m.Aliases...) {
				if form(n) == form(name) {
					return m, nil
				}
			}
		}
	}
	e := &UnknownError{Kind: "model", Name: name}
	for _, m := range c.Models {
		e.Known = append(e.Known, m.Name)
	}
	return Model{}, e
}

// GPU finds a GPU by name, system name or product label.
func (c Catalog) GPU(name string) (GPU, error) {
	for _, g := range c.GPUs {
		for _, n := range append([]string{g.Name}, g.Aliases...) {
			if key(n) == key(name) {
				return g, nil
			}
		}
	}
	e := &UnknownError{Kind: "gpu", Name: name}
	for _, g := range c.GPUs {
		e.Known = append(e.Known, g.Name)
	}
	return GPU{}, e
}

func (c Catalog) constants(engine Engine, mixture bool) (Constants, error) {
	e := &UnknownError{Kind: "engine", Name: string(engine)}
	for _, k := range c.Constants {
		if k.Engine == engine && k.Mixture == mixture {
			return k, nil
		}
		e.Known = append(e.Known, string(k.Engine))
	}
	e.Known = slices.Compact(e.Known)
	return Constants{}, e
}
