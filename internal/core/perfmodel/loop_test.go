package perfmodel

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// loads are random setups with loads that fit.
func loads(t *testing.T, n int) (all []struct {
	*Estimator
	Load
}) {
	t.Helper()
	catalog := Default()
	chance := rand.New(rand.NewPCG(1, 2))
	for len(all) < n {
		e, err := catalog.Estimator(Setup{
			Model: catalog.Models[chance.IntN(len(catalog.Models))], GPU: catalog.GPUs[chance.IntN(len(catalog.GPUs))],
			Engine: []Engine{VLLM, SGLang, TRTLLM}[chance.IntN(3)], Parallel: Parallel{TP: 1 << chance.IntN(4)},
		})
		if err != nil {
			continue
		}
		l := Load{Concurrency: 1 << chance.IntN(8), Input: 1 + chance.IntN(8000), Output: 2 + chance.IntN(1000)}
		if l.Concurrency <= e.MaxConcurrency(l.Input, l.Output) {
			all = append(all, struct {
				*Estimator
				Load
			}{e, l})
		}
	}
	return all
}

func TestALoopOfOneUserIsAnIdleEngine(t *testing.T) {
	for _, c := range loads(t, 200) {
		c.Concurrency = 1
		got, err := c.ClosedLoop(c.Load)
		if err != nil {
			t.Fatal(err)
		}
		if c.Input > c.Setup().MaxBatchedTokens {
			continue // takes several steps
		}
		if want := c.FirstToken(c.Input, 0); got.FirstToken.Value != want.Value {
			t.Errorf("%+v: first token after %v, idle %v", c.Load, got.FirstToken.Value, want.Value)
		}
		if want := c.PerToken(c.Load); math.Abs(float64(got.PerToken.Value)/float64(want.Value)-1) > 0.02 {
			t.Errorf("%+v: %v per token, idle %v", c.Load, got.PerToken.Value, want.Value)
		}
	}
}

// A search ranks by the formula and looks closely at few, so the formula must
// not be far off, nor off to one side.
func TestTheFormulaIsNearTheLoop(t *testing.T) {
	var first, token, rate []float64
	for _, c := range loads(t, 2000) {
		played, err := c.ClosedLoop(c.Load)
		if err != nil {
			t.Fatal(err)
		}
		guess, err := c.Aggregated(c.Load)
		if err != nil {
			t.Fatal(err)
		}
		first = append(first, float64(guess.FirstToken.Value)/float64(played.FirstToken.Value))
		token = append(token, float64(guess.PerToken.Value)/float64(played.PerToken.Value))
		rate = append(rate, guess.Requests/played.Requests)
	}
	for _, c := range []struct {
		what   string
		ratios []float64
		spread float64 // of nine in ten
	}{{"first token", first, 0.6}, {"time per token", token, 0.25}, {"rate", rate, 0.25}} {
		slices.Sort(c.ratios)
		n := len(c.ratios)
		low, middle, high := c.ratios[n/20], c.ratios[n/2], c.ratios[n-n/20]
		t.Logf("%s: half of the guesses are below %.2f of what is found, nine of ten from %.2f to %.2f", c.what, middle, low, high)
		if math.Abs(middle-1) > 0.05 || low < 1-c.spread || high > 1+c.spread {
			t.Errorf("%s: guesses are from %.2f to %.2f of what is found, half below %.2f", c.what, low, high, middle)
		}
	}
}

// A prompt that is computed in a step costs less than alone: weights are read once
// for both.
func TestAPromptBesideAStepCostsLess(t *testing.T) {
	for _, c := range loads(t, 300) {
		fresh, cached := c.fresh()
		alone := c.c.prefill(1, fresh, cached)
		if joined := c.c.joined(8, fresh, cached); joined <= 0 || joined > alone {
			t.Errorf("%s %s, %+v: %.2f ms beside a step, %.2f ms alone", c.Setup().Engine, c.Setup().Model.Name, c.Load, 1e3*joined, 1e3*alone)
		}
	}
}

func TestPromptsOfOnePass(t *testing.T) {
	for name, test := range map[string]struct {
		engine  Engine
		arrival Arrival
		input   int
		want    float64
	}{
		"equal requests that come back together":      {SGLang, InStep, 1024, 8},
		"no more than there are":                      {SGLang, InStep, 128, 32},
		"a long prompt has a pass of its own":         {SGLang, InStep, 20000, 1},
		"requests that come one by one":               {SGLang, Staggered, 1024, 1},
		"an engine that takes prompts into its steps": {VLLM, InStep, 1024, 1},
	} {
		t.Run(name, func(t *testing.T) {
			e := estimator(t, "Qwen/Qwen3-32B", "h200_sxm", test.engine, 2)
			if got := e.c.company(32, Load{Input: test.input, Arrival: test.arrival}); got != test.want {
				t.Errorf("%.0f prompts, want %.0f", got, test.want)
			}
		})
	}
}

// Short prompts that wait in line share passes, which read weights once; a prompt that fills
// a pass has it alone. An engine that takes prompts into steps reads the weights anyway.
func TestPromptsInLineShareAPass(t *testing.T) {
	line := func(engine Engine, input, users int) (line, alone float64) {
		e := estimator(t, "deepseek-ai/DeepSeek-R1", "h200_sxm", engine, 8)
		terms := e.Terms(Load{Concurrency: users, Input: input, Output: 512})
		return terms.Line, terms.Added
	}
	if got, alone := line(SGLang, 512, 64); got > 0.7*alone {
		t.Errorf("a short prompt in line takes %.1f ms, alone %.1f", 1e3*got, 1e3*alone)
	}
	few, _ := line(SGLang, 512, 2)
	if many, _ := line(SGLang, 512, 64); many >= few {
		t.Errorf("with two in line one takes %.1f ms, with 64 %.1f", 1e3*few, 1e3*many)
	}
	for _, engine := range []Engine{SGLang, VLLM, TRTLLM} {
		if got, alone := line(engine, 8192, 16); math.Abs(got-alone) > 1e-9 {
			t.Errorf("%s: a prompt that fills a pass takes %.1f ms, alone %.1f", engine, 1e3*got, 1e3*alone)
		}
	}
}
