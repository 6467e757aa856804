package perfmodel

import (
	"math"
	"testing"
)

func bound(t *testing.T, model, gpu string, engine Engine, q Quantisation, p Parallel) *cost {
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
	e, err := c.Estimator(Setup{Model: m, GPU: g, Engine: engine, Quantisation: q, Parallel: p})
	if err != nil {
		t.Fatal(err)
	}
	return &e.c
}

// Few bytes go to all GPUs at once, many in two rounds of a part each.
func TestAllReducesTakeTheShorterWay(t *testing.T) {
	c := bound(t, "Qwen/Qwen3-32B", "h200_sxm", VLLM, Quantisation{}, Parallel{TP: 8})
	start := c.start(8)
	each := func(m float64) float64 { return 2 * m * float64(c.Model.Hidden) / (c.GPU.link(8) * c.k.Reduce) }
	if got, want := c.reduce(1), start+7*each(1); math.Abs(got-want) > 1e-12 {
		t.Errorf("one row takes %.2f us, want %.2f: one round", 1e6*got, 1e6*want)
	}
	if got, want := c.reduce(8192), 2*start+2*7./8*each(8192); math.Abs(got-want) > 1e-12 {
		t.Errorf("8192 rows take %.0f us, want %.0f: two rounds", 1e6*got, 1e6*want)
	}
	last := 0.0
	for m := 1.0; m < 1e5; m *= 1.1 {
		if got := c.reduce(m); got < last {
			t.Errorf("%.0f rows take %.2f us, fewer took %.2f", m, 1e6*got, 1e6*last)
		} else {
			last = got
		}
	}
}
