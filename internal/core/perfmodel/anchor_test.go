package perfmodel

import (
	"fmt"
	"math"
	"testing"
	"time"
)

func estimator(t *testing.T, model, gpu string, engine Engine, tp int) *Estimator {
	t.Helper()
	c := Default()
	m, err := c.Model(model)
	if err != nil {
		t.Fatal(err)
	}
	g, err := c.GPU(gpu)
	if err != nil {
		t.Fatal(err)
	}
	e, err := c.Estimator(Setup{Model: m, GPU: g, Engine: engine, Parallel: Parallel{TP: tp}})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// holds compares an estimate with a measurement: the measurement must lie in
// the estimate's band, and the estimate within limit of it.
func holds(t *testing.T, what string, got Estimate, millis, limit float64) {
	t.Helper()
	measured := time.Duration(millis * float64(time.Millisecond))
	off := float64(got.Value)/float64(measured) - 1
	t.Logf("%s: estimated %.2f ms, measured %.2f, %+.1f %%", what, float64(got.Value)/1e6, millis, 100*off)
	if math.Abs(off) > limit {
		t.Errorf("%s: estimated %v, measured %v: off by %+.0f %%, want at most %.0f", what, got.Value, measured, 100*off, 100*limit)
	}
	if measured < got.Low || measured > got.High {
		t.Errorf("%s: measured %v lies outside of the band %v to %v", what, measured, got.Low, got.High)
	}
}

// Measured by the runtime's own profiler, vLLM 0.10.1.
func TestAnchorsOfASmallModel(t *testing.T) {
	e := estimator(t, "nvidia/Llama-3.1-8B-Instruct-FP8", "h200_sxm", VLLM, 1)
	for tokens, millis := range map[int]float64{100: 19.5, 1117: 38.5, 3151: 63.2, 5185: 104.9, 8236: 171.0, 12304: 262.5, 16372: 375.5} {
		holds(t, fmt.Sprintf("first token of %d", tokens), e.FirstToken(tokens, 0), millis, 0.35)
	}
	const capacity, context = 945029, 2997
	for usage, millis := range map[float64]float64{0.003: 4.43, 0.155: 9.94, 0.308: 15.48, 0.460: 22.13, 0.612: 26.76, 0.764: 31.80} {
		batch := int(math.Round(usage * capacity / context))
		holds(t, fmt.Sprintf("token at usage %.3f", usage), e.Decode(batch, context), millis, 0.25)
	}
	if tokens := float64(e.Memory().Tokens); math.Abs(tokens/capacity-1) > 0.06 {
		t.Errorf("the cache holds %.0f tokens, measured %d", tokens, capacity)
	}
}

func TestAnchorsOfALargeModel(t *testing.T) {
	for tp, millis := range map[int][2]float64{8: {321, 9.46}, 4: {499, 12.14}, 2: {832, 17.59}} {
		e := estimator(t, "nvidia/Llama-3.3-70B-Instruct-FP8", "h100_sxm", VLLM, tp)
		name := e.Setup().Parallel.String()
		holds(t, "first token of 8240, "+name, e.FirstToken(8240, 0), millis[0], 0.35)
		holds(t, "token of one request, "+name, e.Decode(1, 350), millis[1], 0.25)
	}
	e := estimator(t, "nvidia/Llama-3.3-70B-Instruct-FP8", "h100_sxm", VLLM, 2)
	const capacity = 224133
	if tokens := float64(e.Memory().Tokens); math.Abs(tokens/capacity-1) > 0.08 {
		t.Errorf("the cache holds %.0f tokens, measured %d", tokens, capacity)
	}
}
