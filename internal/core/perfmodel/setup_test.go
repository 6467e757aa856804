package perfmodel

import (
	"errors"
	"testing"
)

func TestLayoutsThatNoEngineWouldStart(t *testing.T) {
	c := Default()
	for name, l := range map[string]struct {
		model    string
		parallel Parallel
		ok       bool
	}{
		"heads divide":                      {"Qwen/Qwen3-32B", Parallel{TP: 8}, true},
		"more ranks than key-value heads":   {"Qwen/Qwen3-235B-A22B", Parallel{TP: 8}, true},
		"heads do not divide":               {"Qwen/Qwen3-32B", Parallel{TP: 3}, false},
		"key-value heads do not divide":     {"meta-llama/Llama-3.2-3B-Instruct", Parallel{TP: 12}, false},
		"more stages than layers":           {"Qwen/Qwen3-0.6B", Parallel{PP: 29}, false},
		"experts over all ranks":            {"deepseek-ai/DeepSeek-R1", Parallel{TP: 1, DP: 16, EP: 16}, true},
		"expert parallel without experts":   {"Qwen/Qwen3-32B", Parallel{TP: 2, EP: 2}, false},
		"experts repeated where uneven":     {"deepseek-ai/DeepSeek-R1", Parallel{TP: 1, DP: 24, EP: 24}, true},
		"more ranks than experts":           {"deepseek-ai/DeepSeek-R1", Parallel{TP: 1, DP: 512, EP: 512}, false},
		"expert groups do not divide ranks": {"Qwen/Qwen3-30B-A3B", Parallel{TP: 4, EP: 8}, false},
		"a negative size":                   {"Qwen/Qwen3-32B", Parallel{TP: -1}, false},
	} {
		model, err := c.Model(l.model)
		if err != nil {
			t.Fatal(err)
		}
		err = Setup{Model: model, Parallel: l.parallel}.Validate()
		var layout *LayoutError
		if l.ok && err != nil || !l.ok && !errors.As(err, &layout) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAFileOfTheUserAddsAndReplaces(t *testing.T) {
	c, err := Default().With([]byte(`
version: 1
models:
- {name: acme/Tiny-3B, layers: 28, hidden: 3072, heads: 24, kvHeads: 8, headSize: 128, ffn: 8192, vocab: 128256, context: 131072}
gpus:
- {name: h100_sxm, generation: hopper, teraflops: {bf16: 1}, memoryGiB: 1, bandwidthGBps: 1, linkGBps: 1, fabricGBps: 1, domain: 1}
`))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Model("/models/tiny-3b"); err != nil {
		t.Error(err)
	}
	if gpu, err := c.GPU("H100_SXM"); err != nil || gpu.Memory != 1 {
		t.Errorf("the replaced GPU is %+v, %v", gpu, err)
	}
	if len(c.GPUs) != len(Default().GPUs) || len(c.Models) != len(Default().Models)+1 {
		t.Errorf("%d GPUs and %d models", len(c.GPUs), len(c.Models))
	}
	for name, text := range map[string]string{
		"another version":       "version: 2",
		"a misspelt field":      "version: 1\nmodel: []",
		"a model without sizes": "version: 1\nmodels: [{name: x}]",
		"a GPU without speed":   "version: 1\ngpus: [{name: x}]",
	} {
		if _, err := Default().With([]byte(text)); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
}

func TestCacheOfATokenIsThatOfThePublishedModels(t *testing.T) {
	for name, want := range map[string]float64{ // bytes in bf16
		"Qwen/Qwen3-0.6B": 114688, "meta-llama/Llama-3.1-8B": 131072, "Qwen/Qwen3-32B": 262144, "meta-llama/Llama-3.1-70B": 327680,
		"meta-llama/Llama-3.1-405B": 516096, "mistralai/Mixtral-8x7B-v0.1": 131072, "Qwen/Qwen3-30B-A3B": 98304,
		"Qwen/Qwen3-235B-A22B": 192512, "openai/gpt-oss-120b": 73728, "deepseek-ai/DeepSeek-V3": 70272,
	} {
		model, err := Default().Model(name)
		if err != nil {
			t.Fatal(err)
		}
		if got := 2 * model.cachePerToken(); got != want {
			t.Errorf("%s keeps %.0f bytes a token, want %.0f", name, got, want)
		}
	}
}

// More work never takes less time, and more GPUs never hold fewer tokens.
func TestEstimatesGrowWithTheWork(t *testing.T) {
	for _, engine := range []Engine{VLLM, SGLang, TRTLLM} {
		for _, model := range []string{"Qwen/Qwen3-32B", "deepseek-ai/DeepSeek-R1", "openai/gpt-oss-120b", "Qwen/Qwen3.5-397B-A17B", "zhipuai/GLM-5"} {
			e := estimator(t, model, "b200_sxm", engine, 8)
			if !e.Memory().Fits() {
				continue
			}
			for batch := 1; batch < 256; batch *= 2 {
				if a, b := e.Decode(batch, 1000), e.Decode(2*batch, 1000); b.Value < a.Value {
					t.Errorf("%s %s: a step of %d takes %v, of %d %v", engine, model, batch, a.Value, 2*batch, b.Value)
				}
				if a, b := e.Decode(batch, 1000), e.Decode(batch, 4000); b.Value < a.Value {
					t.Errorf("%s %s: a longer context takes %v instead of %v", engine, model, b.Value, a.Value)
				}
			}
			for tokens := 128; tokens < 65536; tokens *= 2 {
				whole, rest := e.Prefill(2*tokens, 1, 0), e.Prefill(2*tokens, 1, tokens)
				if whole.Value < e.Prefill(tokens, 1, 0).Value || rest.Value > whole.Value {
					t.Errorf("%s %s: %d tokens take %v, half of them cached %v", engine, model, 2*tokens, whole.Value, rest.Value)
				}
				if whole.Low > whole.Value || whole.High < whole.Value || whole.Low <= 0 {
					t.Errorf("%s %s: band %v to %v around %v", engine, model, whole.Low, whole.High, whole.Value)
				}
			}
		}
	}
}

func TestALoadBeyondTheCacheIsRefused(t *testing.T) {
	e := estimator(t, "Qwen/Qwen3-32B", "h100_sxm", VLLM, 2)
	most := e.MaxConcurrency(4000, 1000)
	if _, err := e.Aggregated(Load{Concurrency: most, Input: 4000, Output: 1000}); err != nil {
		t.Error(err)
	}
	var capacity *CapacityError
	if _, err := e.Aggregated(Load{Concurrency: most + 1, Input: 4000, Output: 1000}); !errors.As(err, &capacity) || capacity.Most != most {
		t.Errorf("one more than %d: %v", most, err)
	}
	var overload *OverloadError
	load := Load{Concurrency: 1, Input: 4000, Output: 1000}
	if _, err := e.PrefillOnly(load, 1.01*e.PrefillRate(load)); !errors.As(err, &overload) {
		t.Errorf("more prompts than can be computed: %v", err)
	}
}
