package fit

import (
	"os"
	"slices"
	"testing"

	"github.com/dynamo-operator/dynamo-operator/internal/core/perfmodel"
)

// Measurements lie beside the repository; they are no part of it.
const (
	table   = "../../../../shared/data/measured-latency.csv"
	kernels = "../../../../shared/data/h200-kernels.csv"
)

func open(t *testing.T, path string) *os.File {
	t.Helper()
	source, err := os.Open(path)
	if err != nil {
		t.Skipf("the measurements are not here: %v", err)
	}
	t.Cleanup(func() { _ = source.Close() })
	return source
}

// One split of the rows; `make perf-model` leaves out every model in turn.
func TestAFitIsAccurateOnGroupsThatItHasNotSeen(t *testing.T) {
	catalog := perfmodel.Default()
	rows, left, err := Read(open(t, table), catalog)
	if err != nil {
		t.Fatal(err)
	}
	fitted, check := Split(rows)
	judged := Judge(check, Fit(fitted, Prior()), "its group")
	t.Log("\n" + Report("Groups that were left out.", judged) + Details(judged, left))
	for _, c := range []struct {
		group              Group
		token, rate, first float64
	}{
		{Group{Engine: perfmodel.VLLM}, 0.08, 0.1, 0.5},
		{Group{Engine: perfmodel.TRTLLM}, 0.08, 0.1, 0.4},
		// Of these it is not told how requests came, which decides whom prompts delay.
		{Group{Engine: perfmodel.SGLang}, 0.12, 0.1, 0.6},
		{Group{Engine: perfmodel.VLLM, Mixture: true}, 0.22, 0.24, 0.35},
		// MXFP4 on a GPU that does not compute with it, of which no other group of the engine tells.
		{Group{Engine: perfmodel.TRTLLM, Mixture: true}, 0.27, 0.35, 0.35},
		{Group{Engine: perfmodel.SGLang, Mixture: true}, 0.18, 0.18, 0.35},
		{Group{Engine: perfmodel.TRTLLM, Mixture: true, Apart: true}, 0.15, 0.15, 0.4},
		{Group{Engine: perfmodel.SGLang, Mixture: true, Apart: true}, 0.1, 0.1, 0.3},
		{Group{Engine: perfmodel.VLLM, Mixture: true, Apart: true}, 0.15, 0.15, 0.3},
	} {
		own := part(judged, c.group)
		name := string(c.group.Engine) + " " + c.group.Part()
		if len(own) < 10 {
			t.Errorf("%s: only %d rows to check on", name, len(own))
		}
		for _, m := range []struct {
			measure
			most float64
		}{{perToken, c.token}, {perGPU, c.rate}, {toFirst, c.first}} {
			if s := m.summary(own); s.Median > m.most {
				t.Errorf("%s: median error of %s %.1f %% of %d rows, want at most %.0f", name, m.name, 100*s.Median, s.Rows, 100*m.most)
			}
		}
	}
}

func readKernels(t *testing.T) []Kernel {
	t.Helper()
	rows, err := ReadKernels(open(t, kernels))
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// An engine without overhead takes as long as plain PyTorch.
func TestWholeStepsAreThoseOfTheKernelTable(t *testing.T) {
	catalog := perfmodel.Default()
	n := 0
	for _, r := range readKernels(t) {
		step, err := Step(catalog, r)
		if err != nil {
			t.Fatal(err)
		}
		if step == 0 {
			continue
		}
		n++
		if off := step/r.Micros - 1; off < -0.1 || off > 0.1 {
			t.Errorf("%s, %d of %d tokens: estimated %.0f us, measured %.0f: %+.1f %%", r.Kind, r.Batch, r.Context, step, r.Micros, 100*off)
		}
	}
	if n < 10 {
		t.Errorf("only %d whole steps", n)
	}
}

// No engine computes or reads faster than the fastest kernel of the table, and no
// layer of a model takes an engine less time than the layer's kernels took.
func TestNoEstimateBeatsTheKernelTable(t *testing.T) {
	catalog := perfmodel.Default()
	gpu, err := catalog.GPU(catalog.Kernels.GPU)
	if err != nil {
		t.Fatal(err)
	}
	rows := readKernels(t)
	type shape struct {
		format              perfmodel.Precision
		rows, columns, deep float64
	}
	times, speed, bandwidth := map[shape]float64{}, map[perfmodel.Precision]float64{}, 0.0
	for _, r := range ofKind(rows, kernelProduct) {
		times[shape{r.Format, r.Rows, r.Columns, r.Depth}] = r.Micros
		speed[r.Format] = max(speed[r.Format], 2*r.Rows*r.Columns*r.Depth/r.Micros/1e6)
		bandwidth = max(bandwidth, r.Format.Bytes()*(r.Columns+r.Rows)*r.Depth/r.Micros/1e3)
	}
	var looking, reading float64
	for _, r := range ofKind(rows, kernelPrompt) {
		looking = max(looking, 2*float64(r.Heads*r.Width)*float64(r.Context)*float64(r.Context)/r.Micros/1e6)
	}
	for _, r := range ofKind(rows, kernelContext) {
		reading = max(reading, 4*float64(r.Batch*r.KVHeads*r.Width)*float64(r.Context)/r.Micros/1e3)
	}
	layers := 0
	all := slices.Clone(catalog.Constants)
	for _, engine := range []perfmodel.Engine{perfmodel.VLLM, perfmodel.SGLang, perfmodel.TRTLLM} {
		all = append(all, catalog.Kernels.Fastest(engine)) // which bounds what was measured
	}
	for _, k := range all {
		for _, most := range []struct {
			what      string
			got, want float64
		}{
			{"teraflops in bf16", k.Compute[perfmodel.BF16] * catalog.Kernels.Compute[perfmodel.BF16] * gpu.Teraflops[perfmodel.BF16], speed[perfmodel.BF16]},
			{"teraflops in fp8", k.Compute[perfmodel.FP8] * catalog.Kernels.Compute[perfmodel.FP8] * gpu.Teraflops[perfmodel.FP8], speed[perfmodel.FP8]},
			{"teraflops of attention", k.Attention * catalog.Kernels.Prompt * gpu.Teraflops[perfmodel.BF16], looking},
			{"GB/s of weights", k.Weights * catalog.Kernels.Read * gpu.Bandwidth, bandwidth},
			{"GB/s of experts", k.ExpertBandwidth * catalog.Kernels.Read * gpu.Bandwidth, bandwidth},
			{"GB/s of the cache", k.Cache * catalog.Kernels.Context * gpu.Bandwidth, reading},
		} {
			if most.got > most.want {
				t.Errorf("%s, mixture %v: %.0f %s, the best of the table has %.0f", k.Engine, k.Mixture, most.got, most.what, most.want)
			}
		}
		for _, name := range []string{"meta-llama/Llama-3.1-8B", "Qwen/Qwen3-32B", "meta-llama/Llama-3.1-70B"} {
			m, err := catalog.Model(name)
			if err != nil {
				t.Fatal(err)
			}
			for _, format := range []perfmodel.Precision{perfmodel.BF16, perfmodel.FP8} {
				for _, tp := range []int{1, 2, 4, 8} {
					e, err := catalog.Estimator(perfmodel.Setup{Model: m, GPU: gpu, Engine: k.Engine, Quantisation: perfmodel.Quantisation{Weights: format}, Parallel: perfmodel.Parallel{TP: tp}})
					if err != nil {
						t.Fatal(err)
					}
					e = e.With(k)
					h, head := float64(m.Hidden), float64(m.HeadSize)
					heads, kv, ffn := float64(m.Heads/tp), float64(max(1, m.KVHeads/tp)), float64(m.FFN/tp)
					for n := 1; n <= 8192; n *= 2 {
						measured, whole := 0.0, true
						for _, s := range []shape{{format, float64(n), (heads + 2*kv) * head, h}, {format, float64(n), h, heads * head}, {format, float64(n), 2 * ffn, h}, {format, float64(n), h, ffn}} {
							measured, whole = measured+times[s], whole && times[s] > 0
						}
						if !whole {
							continue
						}
						layers++
						if got := 1e6 * e.Layer(float64(n)); got < measured {
							t.Errorf("%s, %s TP %d in %s: a layer of %d tokens takes %.1f us, its products alone took %.1f", k.Engine, m.Name, tp, format, n, got, measured)
						}
					}
				}
			}
		}
	}
	if layers < 200 {
		t.Errorf("only %d layers were compared", layers)
	}
}

// The shipped numbers of kernels are those of the table, if it is here.
func TestTheKernelNumbersAreThoseOfTheTable(t *testing.T) {
	catalog := perfmodel.Default()
	gpu, err := catalog.GPU(catalog.Kernels.GPU)
	if err != nil {
		t.Fatal(err)
	}
	rows := readKernels(t)
	for _, kind := range []struct {
		name                 string
		estimate             func(perfmodel.Kernels, perfmodel.GPU, Kernel) float64
		median, p90, shorter float64
	}{
		{kernelProduct, productMicros, 0.05, 0.1, 0.2},
		{kernelPrompt, promptMicros, 0.05, 0.15, 0.2},
		{kernelContext, contextMicros, 0.05, 0.15, 0.2},
	} {
		var off []float64
		for _, r := range ofKind(rows, kind.name) {
			off = append(off, kind.estimate(catalog.Kernels, gpu, r)/r.Micros-1)
			if off[len(off)-1] < -kind.shorter {
				t.Errorf("%s: %+v is estimated %.0f %% too short", kind.name, r, -100*off[len(off)-1])
			}
		}
		if s := summary(off); s.Median > kind.median || s.P90 > kind.p90 {
			t.Errorf("%s: errors %.3f in the middle and %.3f, want at most %.2f and %.2f", kind.name, s.Median, s.P90, kind.median, kind.p90)
		}
	}
}

// What is said to be ambiguous is what the table contradicts itself in: a dated
// export has the same deployment at the same load much faster than the dump.
func TestTheTableContradictsItselfWhereDraftsAreSuspected(t *testing.T) {
	rows, _, err := Read(open(t, table), perfmodel.Default())
	if err != nil {
		t.Fatal(err)
	}
	plain := map[string]float64{}
	key := func(r Row) string {
		r.Token, r.First = 0, 0
		return r.key()
	}
	for _, r := range rows {
		if !r.Drafted && r.Pools == nil {
			plain[key(r)] = max(plain[key(r)], r.Token)
		}
	}
	contradicted := map[perfmodel.Engine]int{}
	for _, r := range rows {
		if r.Drafted && plain[key(r)] > 1.25*r.Token {
			contradicted[r.Group.Engine]++
		}
	}
	for engine := range drafted {
		if contradicted[engine] < 5 {
			t.Errorf("%s: only %d rows are contradicted", engine, contradicted[engine])
		}
	}
}
