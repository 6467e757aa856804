package fit

import (
	"encoding/csv"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/dynamo-operator/dynamo-operator/internal/core/perfmodel"
)

// Kernel is one measured kernel, or a whole step of a model without an engine.
type Kernel struct {
	Kind                         string
	Format                       perfmodel.Precision
	Rows, Columns, Depth         float64 // of a product: m, n, k
	Batch, Heads, KVHeads, Width int     // of attention; Width is the size of a head
	Context                      int
	Micros                       float64
}

// The kinds of the table.
const (
	kernelProduct    = "gemm"
	kernelPrompt     = "attention_prefill"
	kernelContext    = "attention_decode"
	kernelNorm       = "rmsnorm"
	kernelActivation = "silu_mul"
)

// steps are the models whose whole steps the table has, by the name of its rows.
var stepModels = map[string]string{"8B": "meta-llama/Llama-3.1-8B", "32B": "Qwen/Qwen3-32B"}

// ReadKernels reads a table of kernels measured on one GPU.
func ReadKernels(table io.Reader) ([]Kernel, error) {
	lines, err := csv.NewReader(table).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("read kernels: %w", err)
	}
	if len(lines) == 0 {
		return nil, fmt.Errorf("read kernels: no header")
	}
	index := map[string]int{}
	for i, name := range lines[0] {
		index[name] = i
	}
	var out []Kernel
	for i, line := range lines[1:] {
		c := columns{index, line}
		k := Kernel{
			Kind: c.text("kind"), Format: perfmodel.Precision(c.text("dtype")),
			Rows: c.number("m"), Columns: c.number("n"), Depth: c.number("k"),
			Batch: c.int("batch"), Heads: c.int("heads"), KVHeads: c.int("kv_heads"), Width: c.int("head_size"),
			Context: c.int("context"), Micros: c.number("us"),
		}
		if k.Micros <= 0 {
			return nil, fmt.Errorf("read kernels: line %d has no time", i+2)
		}
		out = append(out, k)
	}
	return out, nil
}

func ofKind(kernels []Kernel, kind string) []Kernel {
	return slices.DeleteFunc(slices.Clone(kernels), func(k Kernel) bool { return k.Kind != kind })
}

// dial is one number of Kernels and the bounds within which it makes sense.
type dial struct {
	low, high float64
	set       func(*perfmodel.Kernels, float64)
}

// turn finds the dials by which estimates are nearest to the measurements, on a
// logarithmic scale; odd kernels hardly pull.
func turn(from perfmodel.Kernels, rows []Kernel, dials []dial, estimate func(perfmodel.Kernels, Kernel) float64) perfmodel.Kernels {
	with := func(x []float64) perfmodel.Kernels {
		k := from
		k.Compute = maps.Clone(from.Compute)
		for i, d := range dials {
			d.set(&k, d.low*math.Pow(d.high/d.low, x[i]))
		}
		return k
	}
	objective := func(x []float64) float64 {
		k := with(x)
		var sum float64
		for _, r := range rows {
			e := deviation(estimate(k, r), r.Micros) / 0.05
			sum += math.Log1p(e * e)
		}
		return sum
	}
	x := make([]float64, len(dials))
	for i := range x {
		x[i] = 0.5
	}
	for _, spread := range []float64{0.3, 0.15, 0.05, 0.02} {
		x, _ = minimise(objective, x, spread, 400)
	}
	return with(x)
}

// FitKernels puts a table of kernels into a few numbers.
func FitKernels(rows []Kernel, gpu perfmodel.GPU) perfmodel.Kernels {
	products := ofKind(rows, kernelProduct)
	k := perfmodel.Kernels{GPU: gpu.Name, Compute: map[perfmodel.Precision]float64{}}
	k = turn(k, products, []dial{
		{0.5, 10, func(k *perfmodel.Kernels, v float64) { k.Start = v }},
		{0.01, 1, func(k *perfmodel.Kernels, v float64) { k.Depth = v }},
		{500, 20000, func(k *perfmodel.Kernels, v float64) { k.Narrow = v }},
		{0.6, 1, func(k *perfmodel.Kernels, v float64) { k.Read = v }},
		{0.1, 2, func(k *perfmodel.Kernels, v float64) { k.Written = v }},
		{0.4, 1, func(k *perfmodel.Kernels, v float64) { k.Compute[perfmodel.BF16] = v }},
		{0.4, 1, func(k *perfmodel.Kernels, v float64) { k.Compute[perfmodel.FP8] = v }},
	}, func(k perfmodel.Kernels, r Kernel) float64 { return productMicros(k, gpu, r) })
	k = turn(k, ofKind(rows, kernelPrompt), []dial{
		{1, 30, func(k *perfmodel.Kernels, v float64) { k.PromptStart = v }},
		{0.3, 1, func(k *perfmodel.Kernels, v float64) { k.Prompt = v }},
		{10, 500, func(k *perfmodel.Kernels, v float64) { k.PromptFill = v }},
	}, func(k perfmodel.Kernels, r Kernel) float64 { return promptMicros(k, gpu, r) })
	k = turn(k, ofKind(rows, kernelContext), []dial{
		{1, 30, func(k *perfmodel.Kernels, v float64) { k.ContextStart = v }},
		{0.5, 1, func(k *perfmodel.Kernels, v float64) { k.Context = v }},
	}, func(k perfmodel.Kernels, r Kernel) float64 { return contextMicros(k, gpu, r) })
	passes(&k, rows, gpu)
	var off []float64
	for _, r := range products {
		off = append(off, productMicros(k, gpu, r)/r.Micros-1)
	}
	s := summary(off)
	k.Error = perfmodel.KernelError{Median: s.Median, P90: s.P90, Short: -slices.Min(off)}
	return k
}

// passes are read off: what norms and an activation cost where they are short and
// where they are long, and what one head reads of a long context, by the two
// whole steps of one sequence.
func passes(k *perfmodel.Kernels, rows []Kernel, gpu perfmodel.GPU) {
	const bandwidth = 0.8
	bytes := func(kind string) (start, each float64) {
		of := ofKind(rows, kind)
		if len(of) == 0 {
			return 0, 0
		}
		long := slices.MaxFunc(of, func(a, b Kernel) int { return int(a.Rows - b.Rows) })
		short := slices.MinFunc(of, func(a, b Kernel) int { return int(a.Rows - b.Rows) })
		return short.Micros, long.Micros * 1e-6 * bandwidth * gpu.Bandwidth * 1e9 / (long.Rows * long.Columns)
	}
	norm, hidden := bytes(kernelNorm)
	activation, activated := bytes(kernelActivation)
	k.PassStart, k.HiddenBytes, k.ActivatedBytes = 2*norm+activation, 2*hidden, activated
	for name := range stepModels {
		alone := slices.DeleteFunc(ofKind(rows, "step_decode_"+name), func(r Kernel) bool { return r.Batch != 1 })
		if len(alone) < 2 {
			continue
		}
		near := slices.MinFunc(alone, func(a, b Kernel) int { return a.Context - b.Context })
		far := slices.MaxFunc(alone, func(a, b Kernel) int { return a.Context - b.Context })
		m, err := perfmodel.Default().Model(stepModels[name])
		if err != nil || far.Context == near.Context {
			continue
		}
		read := float64(far.Context-near.Context) * 2 * 2 * float64(far.Width) * float64(m.Layers)
		k.Alone = read / ((far.Micros - near.Micros) * 1e3)
	}
}

func productMicros(k perfmodel.Kernels, gpu perfmodel.GPU, r Kernel) float64 {
	return 1e6 * k.Product(gpu, r.Format, r.Rows, r.Columns, r.Depth)
}

func promptMicros(k perfmodel.Kernels, gpu perfmodel.GPU, r Kernel) float64 {
	s, heads := float64(r.Context), float64(r.Heads)
	work := 4 * heads * float64(r.Width) * s * s / 2 * float64(r.Batch)
	return k.PromptStart + 1e6*work*(1+k.PromptFill/(heads*s/128))/(k.Prompt*gpu.Teraflops[perfmodel.BF16]*1e12)
}

func contextMicros(k perfmodel.Kernels, gpu perfmodel.GPU, r Kernel) float64 {
	bytes := 2 * 2 * float64(r.Batch*r.KVHeads*r.Width*r.Context)
	return k.ContextStart + 1e6*bytes/(k.Context*gpu.Bandwidth*1e9)
}

// Step is the time of a whole step of the table by an engine without overhead, in
// microseconds; zero if the row is no whole step.
func Step(catalog perfmodel.Catalog, r Kernel) (float64, error) {
	for name, model := range stepModels {
		if r.Kind != "step_decode_"+name && r.Kind != "step_prefill_"+name {
			continue
		}
		m, err := catalog.Model(model)
		if err != nil {
			return 0, err
		}
		gpu, err := catalog.GPU(catalog.Kernels.GPU)
		if err != nil {
			return 0, err
		}
		e, err := catalog.Estimator(perfmodel.Setup{Model: m, GPU: gpu, Engine: perfmodel.VLLM})
		if err != nil {
			return 0, err
		}
		e = e.With(catalog.Kernels.Bare())
		if r.Kind == "step_prefill_"+name {
			return float64(e.Prefill(r.Context, r.Batch, 0).Value) / 1e3, nil
		}
		return float64(e.Decode(r.Batch, float64(r.Context)).Value) / 1e3, nil
	}
	return 0, nil
}

// KernelReport is what became of a table of kernels: how near the few numbers are
// to the many, kind by kind, and to whole steps.
func KernelReport(catalog perfmodel.Catalog, rows []Kernel) (string, error) {
	gpu, err := catalog.GPU(catalog.Kernels.GPU)
	if err != nil {
		return "", err
	}
	var text strings.Builder
	fmt.Fprintf(&text, "Kernels of %s: error of the estimate, percent.\n%-28s %5s %7s %7s %7s %7s\n", gpu.Name, "", "rows", "median", "p90", "lowest", "highest")
	for _, kind := range []struct {
		name     string
		estimate func(perfmodel.Kernels, perfmodel.GPU, Kernel) float64
	}{{kernelProduct, productMicros}, {kernelPrompt, promptMicros}, {kernelContext, contextMicros}} {
		var off []float64
		for _, r := range ofKind(rows, kind.name) {
			off = append(off, kind.estimate(catalog.Kernels, gpu, r)/r.Micros-1)
		}
		if len(off) == 0 {
			continue
		}
		s := summary(off)
		fmt.Fprintf(&text, "%-28s %5d %7.1f %7.1f %+7.1f %+7.1f\n", kind.name, s.Rows, 100*s.Median, 100*s.P90, 100*slices.Min(off), 100*slices.Max(off))
	}
	for _, r := range rows {
		step, err := Step(catalog, r)
		if err != nil {
			return "", err
		}
		if step > 0 {
			fmt.Fprintf(&text, "%-28s %+5.1f %%\n", fmt.Sprintf("%s %d x %d", r.Kind, r.Batch, r.Context), 100*(step/r.Micros-1))
		}
	}
	return text.String() + "\n", nil
}
