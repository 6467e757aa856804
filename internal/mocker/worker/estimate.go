package worker

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/dynamo-operator/dynamo-operator/internal/core/perfmodel"
	"github.com/dynamo-operator/dynamo-operator/internal/mocker/launch"
	"github.com/dynamo-operator/dynamo-operator/internal/mocker/timing"
)

// estimate times the engine, and sizes its cache, by the performance model of
// what its command line asks for. The runtime's own mock engine names neither
// GPUs nor layout and keeps its own timing.
func (c *Config) estimate(r *launch.Settings, knobs Knobs) {
	e := &c.Engine
	e.Model, c.Timing = timing.Polynomial{}, "simple"
	if c.Backend != "vllm" && c.Backend != "sglang" && c.Backend != "trtllm" {
		return
	}
	estimator, err := c.estimator(r, knobs.GPU)
	if err != nil {
		if unknown, ok := errors.AsType[*perfmodel.UnknownError](err); ok {
			err = fmt.Errorf("no performance data for %s %q", unknown.Kind, unknown.Name)
		}
		c.Timing = "simple: " + err.Error()
		return
	}
	setup := estimator.Setup()
	e.Model = timing.Estimate{Estimator: estimator}
	c.Timing = fmt.Sprintf("estimated for %s on %s, %s", setup.Model.Name, setup.GPU.Name, setup.Parallel)
	if blocks := estimator.Memory().Tokens / setup.Parallel.DP / max(1, e.BlockSize); blocks > 0 {
		e.Blocks = blocks
	} else {
		c.Timing += "; its weights would not fit, so the size of the cache is made up"
	}
}

func (c *Config) estimator(r *launch.Settings, gpuName string) (*perfmodel.Estimator, error) {
	catalog := perfmodel.Default()
	model, err := catalog.Model(c.SourcePath)
	if err != nil {
		// A folder with weights may bear any name; the one users call it by counts too.
		if model, err = catalog.Model(c.Model); err != nil {
			return nil, err
		}
	}
	gpu, err := catalog.GPU(gpuName)
	if err != nil {
		return nil, err
	}
	setup := perfmodel.Setup{
		Model: model, GPU: gpu, Engine: perfmodel.Engine(c.Backend),
		Quantisation:     quantisation(r, model),
		Parallel:         c.parallel(r, model),
		MemoryFraction:   r.Float(0, "--gpu-memory-utilization", "--mem-fraction-static", "--free-gpu-memory-fraction"),
		MaxBatchedTokens: c.Engine.MaxBatchedTokens,
		MaxSequences:     c.Engine.MaxSequences,
		Pool:             c.Role == Prefill || c.Role == Decode,
	}
	return catalog.Estimator(setup)
}

// quantisation reads what differs from the checkpoint.
func quantisation(r *launch.Settings, model perfmodel.Model) perfmodel.Quantisation {
	var q perfmodel.Quantisation
	switch text := strings.ToLower(r.Text("", "--quantization")); {
	case strings.Contains(text, "fp8"):
		q.Weights = perfmodel.FP8
	case strings.Contains(text, "fp4"):
		q.Weights = perfmodel.FP4
	}
	if strings.HasPrefix(r.Text("", "--kv-cache-dtype"), "fp8") {
		q.Cache = perfmodel.FP8
	}
	if model.Published.Experts == perfmodel.MXFP4 {
		q.Weights = ""
	}
	return q
}

// parallel reads the layout of a whole engine as each engine spells it.
func (c *Config) parallel(r *launch.Settings, model perfmodel.Model) perfmodel.Parallel {
	p := perfmodel.Parallel{
		TP: r.Int(1, "--tensor-parallel-size", "-tp", "--tp-size", "--tp"),
		PP: r.Int(1, "--pipeline-parallel-size", "-pp", "--pp-size", "--pp"),
		EP: r.Int(1, "--expert-parallel-size", "--ep-size", "--ep"),
	}
	switch c.Backend {
	case "vllm":
		p.DP = r.Int(1, "--data-parallel-size", "-dp")
		if r.Switch("--enable-expert-parallel", false) {
			p.EP = p.TP * p.DP
		}
	case "sglang":
		p.DP = r.Int(1, "--dp-size", "--dp", "--data-parallel-size")
		if r.Switch("--enable-dp-attention", false) && p.DP > 0 && p.TP%p.DP == 0 {
			p.TP /= p.DP // the tensor-parallel size counts all GPUs
		}
	case "trtllm":
		c.override(r, &p)
	}
	if !model.Mixture() {
		p.EP = 1
	}
	return p
}

// override applies TensorRT-LLM's --override-engine-args, a JSON object.
func (c *Config) override(r *launch.Settings, p *perfmodel.Parallel) {
	text, ok := r.Value("--override-engine-args")
	if !ok {
		return
	}
	var fields struct {
		TP          *int `json:"tensor_parallel_size"`
		PP          *int `json:"pipeline_parallel_size"`
		EP          *int `json:"moe_expert_parallel_size"`
		AttentionDP bool `json:"enable_attention_dp"`
		Batch       *int `json:"max_batch_size"`
		Tokens      *int `json:"max_num_tokens"`
	}
	if err := json.Unmarshal([]byte(text), &fields); err != nil {
		c.Warnings = append(c.Warnings, "--override-engine-args is not a JSON object: "+err.Error())
		return
	}
	set := func(to *int, from *int) {
		if from != nil && *from > 0 {
			*to = *from
		}
	}
	set(&p.TP, fields.TP)
	set(&p.PP, fields.PP)
	set(&p.EP, fields.EP)
	set(&c.Engine.MaxSequences, fields.Batch)
	set(&c.Engine.MaxBatchedTokens, fields.Tokens)
	if fields.AttentionDP {
		p.TP, p.DP = 1, p.TP
		c.Engine.Ranks = p.DP
	}
}
