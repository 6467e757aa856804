package perfmodel

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"
)

// unmeasured is a catalog in which nothing was measured.
func unmeasured() Catalog {
	c := Default()
	c.Measured = nil
	return c
}

// with is a catalog in which one model was.
func with(t *testing.T, text string) Catalog {
	t.Helper()
	c, err := unmeasured().With([]byte("version: 1\nmeasured:\n" + text))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// in is the estimator of a setup by names.
func in(t *testing.T, c Catalog, model, gpu string, s Setup) *Estimator {
	t.Helper()
	var err error
	if s.Model, err = c.Model(model); err != nil {
		t.Fatal(err)
	}
	if s.GPU, err = c.GPU(gpu); err != nil {
		t.Fatal(err)
	}
	e, err := c.Estimator(s)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestWhatWasMeasuredOfAModelCountsForItAlone(t *testing.T) {
	const measured = "- {engine: vllm, model: Qwen/Qwen3-8B, gpu: a100_sxm, weights: bf16, step: 1.5, prompt: 2, request: 3}\n"
	for name, c := range map[string]struct {
		model, gpu string
		setup      Setup
		step       float64
	}{
		"the model":                  {"Qwen/Qwen3-8B", "a100_sxm", Setup{Engine: VLLM}, 1.5},
		"on more GPUs":               {"Qwen/Qwen3-8B", "a100_sxm", Setup{Engine: VLLM, Parallel: Parallel{TP: 4}}, 1.5},
		"by another name of the GPU": {"Qwen/Qwen3-8B", "NVIDIA-A100-SXM4-80GB", Setup{Engine: VLLM}, 1.5},
		"in another format":          {"Qwen/Qwen3-8B", "a100_sxm", Setup{Engine: VLLM, Quantisation: Quantisation{Weights: INT4}}, 1},
		"on another GPU":             {"Qwen/Qwen3-8B", "l40s", Setup{Engine: VLLM}, 1},
		"by another engine":          {"Qwen/Qwen3-8B", "a100_sxm", Setup{Engine: SGLang}, 1},
		"another model":              {"Qwen/Qwen3-4B", "a100_sxm", Setup{Engine: VLLM}, 1},
	} {
		plain, moved := in(t, unmeasured(), c.model, c.gpu, c.setup), in(t, with(t, measured), c.model, c.gpu, c.setup)
		for what, of := range map[string]func(*Estimator) time.Duration{
			"a step":            func(e *Estimator) time.Duration { return e.Decode(8, 1000).Value },
			"a prompt":          func(e *Estimator) time.Duration { return e.Prefill(1000, 1, 0).Value },
			"the host":          func(e *Estimator) time.Duration { return e.Overhead() },
			"a pass of prompts": func(e *Estimator) time.Duration { return e.Pass([]Part{{1000, 0}}, 0) },
		} {
			want := 1.0
			if c.step != 1 {
				want = map[string]float64{"a step": 1.5, "a prompt": 2, "the host": 3, "a pass of prompts": 2}[what]
			}
			if got := float64(of(moved)) / float64(of(plain)); math.Abs(got/want-1) > 1e-3 {
				t.Errorf("%s: %s takes %.3f times as long, want %.3f", name, what, got, want)
			}
		}
	}
}

// However fast a model was measured to be, nothing is estimated to take less time than
// kernels do.
func TestNothingMeasuredGetsBelowKernels(t *testing.T) {
	for _, engine := range []Engine{VLLM, SGLang, TRTLLM} {
		c := with(t, fmt.Sprintf("- {engine: %s, model: meta-llama/Llama-3.1-70B, gpu: h200_sxm, weights: fp8, step: 0.5, prompt: 0.125}\n", engine))
		setup := Setup{Engine: engine, Quantisation: Quantisation{Weights: FP8}, Parallel: Parallel{TP: 4}}
		moved := in(t, c, "meta-llama/Llama-3.1-70B", "h200_sxm", setup)
		plain := in(t, unmeasured(), "meta-llama/Llama-3.1-70B", "h200_sxm", setup)
		alone := moved.With(c.Kernels.Fastest(engine))
		for _, n := range []int{1, 8, 64} {
			for what, of := range map[string]func(*Estimator) time.Duration{
				"a step":            func(e *Estimator) time.Duration { return e.Decode(n, 2000).Value },
				"a prompt":          func(e *Estimator) time.Duration { return e.Prefill(100*n, 1, 0).Value },
				"a pass of prompts": func(e *Estimator) time.Duration { return e.Pass([]Part{{100 * n, 0}}, 0) },
			} {
				if got, least, was := of(moved), of(alone), of(plain); got < least || got >= was {
					t.Errorf("%s: %s of %d takes %v; kernels alone take %v, and it was %v", engine, what, n, got, least, was)
				}
			}
		}
	}
}

func TestMeasurementsThatNobodyBelievesAreRefused(t *testing.T) {
	for text, want := range map[string]string{
		"{engine: vllm, model: acme/Unheard-7B, gpu: h200_sxm, weights: bf16, step: 1}":             "no performance data for model",
		"{engine: vllm, model: Qwen/Qwen3-8B, gpu: abacus, weights: bf16, step: 1}":                 "no performance data for gpu",
		"{engine: vllm, model: Qwen/Qwen3-8B, gpu: h200_sxm, step: 1}":                              "engine and weights are needed",
		"{engine: vllm, model: Qwen/Qwen3-8B, gpu: h200_sxm, weights: bf16}":                        "step is 0, want 0.5 to 2",
		"{engine: vllm, model: Qwen/Qwen3-8B, gpu: h200_sxm, weights: bf16, step: 3}":               "step is 3, want 0.5 to 2",
		"{engine: vllm, model: Qwen/Qwen3-8B, gpu: h200_sxm, weights: bf16, step: 1, prompt: 0.1}":  "prompt is 0.1, want 0.125 to 8",
		"{engine: vllm, model: Qwen/Qwen3-8B, gpu: h200_sxm, weights: bf16, step: 1, request: -.1}": "request is -0.1, want 0.25 to 4",
	} {
		if _, err := Default().With([]byte("version: 1\nmeasured:\n- " + text + "\n")); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
