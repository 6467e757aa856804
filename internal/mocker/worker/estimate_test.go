package worker

import (
	"strings"
	"testing"

	"github.com/dynamo-operator/dynamo-operator/internal/core/perfmodel"
	"github.com/dynamo-operator/dynamo-operator/internal/mocker/launch"
	"github.com/dynamo-operator/dynamo-operator/internal/mocker/podenv"
	"github.com/dynamo-operator/dynamo-operator/internal/mocker/timing"
)

func TestTheCommandLineSelectsTheEstimate(t *testing.T) {
	for name, c := range map[string]struct {
		program, args, gpu string
		want               perfmodel.Parallel
		model, on          string
	}{
		"tensor parallel":             {"dynamo.vllm", "--model Qwen/Qwen3-32B -tp 4", "", perfmodel.Parallel{TP: 4, PP: 1, DP: 1, EP: 1}, "Qwen/Qwen3-32B", "h200_sxm"},
		"another GPU, by its label":   {"dynamo.vllm", "--model Qwen/Qwen3-32B", "NVIDIA-H100-80GB-HBM3", perfmodel.Parallel{TP: 1, PP: 1, DP: 1, EP: 1}, "Qwen/Qwen3-32B", "h100_sxm"},
		"a folder, known by its name": {"dynamo.sglang", "--model-path /models/x --served-model-name Qwen/Qwen3-0.6B --tp 2", "", perfmodel.Parallel{TP: 2, PP: 1, DP: 1, EP: 1}, "Qwen/Qwen3-0.6B", "h200_sxm"},
		"experts over all ranks":      {"dynamo.vllm", "--model Qwen/Qwen3-30B-A3B --data-parallel-size 4 --enable-expert-parallel", "", perfmodel.Parallel{TP: 1, PP: 1, DP: 4, EP: 4}, "Qwen/Qwen3-30B-A3B", "h200_sxm"},
		"attention data parallel":     {"dynamo.sglang", "--model-path deepseek-ai/DeepSeek-R1 --tp 8 --dp 8 --ep-size 8 --enable-dp-attention", "", perfmodel.Parallel{TP: 1, PP: 1, DP: 8, EP: 8}, "deepseek-ai/DeepSeek-V3", "h200_sxm"},
		"overridden in JSON":          {"dynamo.trtllm", `--model-path Qwen/Qwen3-32B --override-engine-args {"tensor_parallel_size":2}`, "", perfmodel.Parallel{TP: 2, PP: 1, DP: 1, EP: 1}, "Qwen/Qwen3-32B", "h200_sxm"},
	} {
		config := configured(t, c.program, c.args, c.gpu)
		model, ok := config.Engine.Model.(timing.Estimate)
		if !ok {
			t.Errorf("%s: timing is %T (%s)", name, config.Engine.Model, config.Timing)
			continue
		}
		setup := model.Estimator.Setup()
		if setup.Parallel != c.want || setup.Model.Name != c.model || setup.GPU.Name != c.on {
			t.Errorf("%s: %s on %s, %s; want %s on %s, %s", name, setup.Model.Name, setup.GPU.Name, setup.Parallel, c.model, c.on, c.want)
		}
		if tokens := config.Engine.Blocks * config.Engine.BlockSize * setup.Parallel.DP; tokens > model.Estimator.Memory().Tokens || tokens < model.Estimator.Memory().Tokens*9/10 {
			t.Errorf("%s: the cache has %d tokens, the model says %d", name, tokens, model.Estimator.Memory().Tokens)
		}
	}
}

func configured(t *testing.T, program, args, gpu string) Config {
	t.Helper()
	env := podenv.Env{"MOCKER_GPU": gpu}
	knobs, err := NewKnobs(env)
	if err != nil {
		t.Fatal(err)
	}
	config, err := NewConfig(launch.Program{Kind: launch.Worker, Name: program, Args: strings.Fields(args), Env: env}, knobs)
	if err != nil {
		t.Fatal(err)
	}
	return config
}

func TestWhatHasNoEstimateSaysSo(t *testing.T) {
	for name, c := range map[string]struct{ program, args, gpu, want string }{
		"an unknown model":         {"dynamo.vllm", "--model acme/unheard", "", `simple: no performance data for model "acme/unheard"`},
		"an unknown GPU":           {"dynamo.vllm", "--model Qwen/Qwen3-0.6B", "abacus", `simple: no performance data for gpu "abacus"`},
		"a layout it cannot have":  {"dynamo.vllm", "--model Qwen/Qwen3-0.6B -tp 7", "", "simple: layout TP7"},
		"the runtime's own mocker": {"dynamo.mocker", "--model-path Qwen/Qwen3-0.6B", "", "simple"},
	} {
		config := configured(t, c.program, c.args, c.gpu)
		if _, ok := config.Engine.Model.(timing.Polynomial); !ok || !strings.HasPrefix(config.Timing, c.want) {
			t.Errorf("%s: timing %T, %q; want %q", name, config.Engine.Model, config.Timing, c.want)
		}
		if config.Engine.Blocks != 16384 {
			t.Errorf("%s: %d blocks, want the default", name, config.Engine.Blocks)
		}
	}
	if config := configured(t, "dynamo.vllm", "--model meta-llama/Llama-3.1-405B", ""); !strings.Contains(config.Timing, "would not fit") || config.Engine.Blocks != 16384 {
		t.Errorf("a model that is too large: %q, %d blocks", config.Timing, config.Engine.Blocks)
	}
}
