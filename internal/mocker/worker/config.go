package worker

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/dynamo-operator/dynamo-operator/internal/core/commandline"
	"github.com/dynamo-operator/dynamo-operator/internal/core/perfmodel"
	"github.com/dynamo-operator/dynamo-operator/internal/mocker/discovery"
	"github.com/dynamo-operator/dynamo-operator/internal/mocker/engine"
	"github.com/dynamo-operator/dynamo-operator/internal/mocker/launch"
	"github.com/dynamo-operator/dynamo-operator/internal/mocker/rendezvous"
	"github.com/dynamo-operator/dynamo-operator/internal/mocker/timing"
)

// Role is a worker's share of the work.
type Role string

// The roles.
const (
	Aggregated Role = "aggregated"
	Prefill    Role = "prefill"
	Decode     Role = "decode"
	Encode     Role = "encode"
)

// Config is what a worker is, read from its command line and environment.
type Config struct {
	// Backend is vllm, sglang, trtllm, mocker or script.
	Backend string
	Role    Role
	// Model is the served name; empty means the worker registers no model.
	Model string
	// SourcePath is where the weights come from: an id, or a path of the container.
	SourcePath string
	Address    discovery.Address
	Engine     engine.Config
	Context    int // longest sequence, in tokens
	Migration  int // migration limit of the card
	Embedding  bool
	Adapters   bool // LoRA adapters can be loaded
	Bootstrap  int  // port where decode workers meet prefill workers
	// Follower is a member of a multinode group that lends its GPUs to the
	// leader and takes no requests itself.
	Follower bool
	// Place is the worker's place in a group of nodes; nil if it is alone.
	Place *rendezvous.Place
	// RayGPUs is how many GPUs the engine claims from a Ray cluster; 0 without Ray.
	RayGPUs int
	// Partial is a worker of whose flags some are not known here.
	Partial bool
	// Generational is a worker of 1.x, whose card says what it is and needs.
	Generational bool
	// SideChannel is the port by which engines find each other's KV caches; 0 without.
	SideChannel int
	Startup     time.Duration
	// Timing says where the engine's step times come from.
	Timing string
	// Warnings are oddities of the command line that do not matter enough to fail.
	Warnings []string
}

// NewConfig reads a worker's or script's command line.
func NewConfig(p launch.Program, knobs Knobs) (Config, error) {
	r := p.Settings()
	gpus, err := p.Env.GPUs()
	r.Fail(err)
	c := Config{
		Address: discovery.Address{Namespace: p.Env.InGeneration(p.Env.String("dynamo", "DYN_NAMESPACE")), Component: "backend", Endpoint: "generate"},
		Role:    Aggregated, Generational: p.Env.Generational(),
		Startup: knobs.StartupDelay,
	}
	if p.Kind == launch.Script {
		c.script(r, p)
	} else {
		c.Backend = p.Backend()
		switch c.Backend {
		case "vllm":
			c.vllm(r)
			c.vllmGroup(r, gpus)
			c.sideChannel(r)
		case "sglang":
			c.sglang(r)
			c.sglangGroup(r, gpus)
		case "trtllm":
			c.trtllm(r)
			c.trtllmGroup(r)
		case "mocker":
			c.mocker(r)
		}
	}
	c.sized(r, knobs)
	if text, ok := r.Value("--endpoint"); ok && c.Backend != "vllm" {
		address, err := discovery.ParseAddress(text)
		r.Fail(err)
		if address.Namespace == p.Env["DYN_NAMESPACE"] {
			address.Namespace = c.Address.Namespace
		}
		c.Address = address
	}
	c.Migration = r.Int(0, "--migration-limit")
	if c.Follower {
		c.Model = ""
	}
	c.Warnings = append(c.Warnings, unknownFlags(c.Backend, r.Args)...)
	return c, r.Err
}

func (c *Config) vllm(r *launch.Settings) {
	c.SourcePath = r.Path("Qwen/Qwen3-0.6B", "--model")
	c.Model = r.Path(c.SourcePath, "--served-model-name")
	c.mode(r.Text("", "--disaggregation-mode"), "backend")
	switch {
	case r.Switch("--is-prefill-worker", false):
		c.Role, c.Address.Component = Prefill, "prefill"
	case r.Switch("--is-decode-worker", false):
		c.Role = Decode
	}
	c.Context = r.Int(defaultContext, "--max-model-len")
	c.Adapters = r.Switch("--enable-lora", false)
	c.Embedding = r.Text("", "--task") == "embed" || r.Text("", "--runner") == "pooling"
	c.Engine.BlockSize = r.Int(16, "--block-size")
	c.Engine.MaxSequences = r.Int(256, "--max-num-seqs")
	c.Engine.MaxBatchedTokens = r.Int(8192, "--max-num-batched-tokens")
	c.Engine.Sharing = r.Switch("--enable-prefix-caching", true)
	c.Engine.Ranks = r.Int(1, "--data-parallel-size", "-dp")
}

func (c *Config) sglang(r *launch.Settings) {
	c.configFile(r)
	c.SourcePath = r.Path("Qwen/Qwen3-0.6B", "--model-path", "--model")
	c.Model = r.Path(c.SourcePath, "--served-model-name")
	c.mode(r.Text("", "--disaggregation-mode"), "backend")
	c.Context = r.Int(defaultContext, "--context-length")
	c.Embedding = r.Switch("--embedding-worker", false) || r.Switch("--is-embedding", false)
	c.Bootstrap = r.Int(0, "--disaggregation-bootstrap-port")
	// An engine that caches single tokens would have as many blocks; the mock
	// keeps books in blocks of at least two.
	c.Engine.BlockSize = max(2, r.Int(16, "--page-size"))
	c.Engine.MaxSequences = r.Int(256, "--max-running-requests")
	c.Engine.MaxBatchedTokens = r.Int(8192, "--chunked-prefill-size")
	c.Engine.Sharing = !r.Switch("--disable-radix-cache", false)
	c.Engine.Ranks = r.Int(1, "--dp-size", "--dp", "--data-parallel-size")
}

// configFile puts the flags of --config, a YAML file, before those of the command
// line, which go first. A file that is in an image alone is not known here.
func (c *Config) configFile(r *launch.Settings) {
	file, ok := r.Value("--config")
	if !ok {
		return
	}
	body, err := os.ReadFile(file)
	if err != nil {
		c.Warnings = append(c.Warnings, "argument --config: "+err.Error())
		c.Partial = true
		return
	}
	var fields map[string]any
	if err := yaml.Unmarshal(body, &fields); err != nil {
		r.Fail(fmt.Errorf("argument --config: %s: %w", file, err))
		return
	}
	var words []string
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		words = append(words, fmt.Sprintf("--%s=%v", strings.ReplaceAll(key, "_", "-"), fields[key]))
	}
	r.Args = commandline.NewLooseArgs(slices.Concat(words, r.Words()))
}

func (c *Config) trtllm(r *launch.Settings) {
	c.SourcePath = r.Path("TinyLlama/TinyLlama-1.1B-Chat-v1.0", "--model-path", "--model")
	c.Model = r.Path(c.SourcePath, "--served-model-name")
	c.mode(r.Text("", "--disaggregation-mode"), "tensorrt_llm")
	c.Context = r.Int(defaultContext, "--max-seq-len")
	c.Engine.BlockSize = r.Int(32, "--kv-block-size")
	c.Engine.MaxSequences = r.Int(256, "--max-batch-size")
	c.Engine.MaxBatchedTokens = r.Int(8192, "--max-num-tokens")
	c.Engine.Sharing = true
	c.Engine.Ranks = 1
}

func (c *Config) mocker(r *launch.Settings) {
	if file, ok := r.Value("--extra-engine-args"); ok {
		words, err := engineFile(file)
		if err != nil {
			r.Fail(fmt.Errorf("argument --extra-engine-args: %w", err))
		}
		r.Args = commandline.NewLooseArgs(append(slices.Clone(r.Words()), words...))
	}
	c.SourcePath = r.Path("", "--model-path")
	if c.SourcePath == "" {
		r.Fail(fmt.Errorf("the following arguments are required: --model-path"))
	}
	c.Model = r.Path(c.SourcePath, "--model-name")
	c.mode(r.Text("", "--disaggregation-mode"), "backend")
	prefill, decode := r.Switch("--is-prefill-worker", false), r.Switch("--is-decode-worker", false)
	switch {
	case prefill && decode:
		r.Fail(fmt.Errorf("argument --is-decode-worker: not allowed with argument --is-prefill-worker"))
	case prefill:
		c.Role, c.Address.Component = Prefill, "prefill"
	case decode:
		c.Role = Decode
	}
	c.Context = defaultContext
	c.Engine.BlockSize = r.Int(64, "--block-size")
	c.Engine.MaxSequences = r.Int(256, "--max-num-seqs")
	c.Engine.MaxBatchedTokens = r.Int(8192, "--max-num-batched-tokens")
	c.Engine.Sharing = r.Switch("--enable-prefix-caching", true)
	c.Engine.Ranks = r.Int(1, "--data-parallel-size")
	c.Startup = max(c.Startup, time.Duration(r.Float(0, "--startup-time")*float64(time.Second)))
	if r.Int(1, "--num-workers") > 1 {
		c.Warnings = append(c.Warnings, "--num-workers: one process is one worker here; use replicas")
	}
}

// engineKeys are the keys of the mocker's engine file and the flags they stand for.
var engineKeys = map[string]string{
	"num_gpu_blocks": "--num-gpu-blocks-override", "block_size": "--block-size", "max_num_seqs": "--max-num-seqs",
	"max_num_batched_tokens": "--max-num-batched-tokens", "enable_prefix_caching": "--enable-prefix-caching",
	"enable_chunked_prefill": "--enable-chunked-prefill", "watermark": "--watermark", "speedup_ratio": "--speedup-ratio",
	"dp_size": "--data-parallel-size", "startup_time": "--startup-time", "is_prefill": "--is-prefill-worker",
	"is_decode": "--is-decode-worker", "bootstrap_port": "--bootstrap-ports", "planner_profile_data": "--planner-profile-data",
	"enable_local_indexer": "--enable-local-indexer",
}

// engineFile turns the mocker's JSON file into flags; keys it does not know are
// an error, as a misspelt one would silently size the engine wrong.
func engineFile(file string) ([]string, error) {
	body, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var fields map[string]any
	if err := json.Unmarshal(body, &fields); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	var words []string
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		flag, ok := engineKeys[key]
		if !ok {
			return nil, fmt.Errorf("%s: unknown key %q", file, key)
		}
		words = append(words, fmt.Sprintf("%s=%v", flag, fields[key]))
	}
	return words, nil
}

// script is a Python program of the user's own: a component that answers
// requests. Only a processor is known to put a model before the public.
func (c *Config) script(r *launch.Settings, p launch.Program) {
	c.Backend = "script"
	c.Address.Component = discovery.Slug(strings.TrimPrefix(strings.TrimSuffix(path.Base(p.Name), ".py"), "dynamo."))
	c.SourcePath = r.Path("", "--model", "--model-path")
	if p.Name == "processor.py" {
		c.Model = c.SourcePath
	}
	c.Context = defaultContext
	c.Engine = engine.Config{BlockSize: 16, MaxSequences: 256, MaxBatchedTokens: 8192, Sharing: true, Ranks: 1}
}

// mode applies --disaggregation-mode.
func (c *Config) mode(mode, component string) {
	c.Address.Component = component
	switch mode {
	case "prefill":
		c.Role, c.Address.Component = Prefill, "prefill"
	case "decode":
		c.Role = Decode
	case "encode":
		c.Role, c.Address.Component = Encode, component+"_encode"
	}
}

// defaultContext is the context length of the example model, Qwen3-0.6B.
const defaultContext = 40960

// defaultBlocks is the size of the cache where nothing says more.
const defaultBlocks = 16384

// sized fills in what all engines share.
func (c *Config) sized(r *launch.Settings, knobs Knobs) {
	e := &c.Engine
	e.Blocks = defaultBlocks
	c.estimate(r, knobs)
	e.BesideDecode = perfmodel.Engine(c.Backend).BesideDecode(e.MaxBatchedTokens)
	e.Blocks = r.Int(e.Blocks, "--num-gpu-blocks-override")
	if knobs.Blocks > 0 {
		e.Blocks = knobs.Blocks
	}
	e.Watermark = r.Float(0.01, "--watermark")
	e.Chunked = r.Switch("--enable-chunked-prefill", true)
	e.Speed = r.Float(1, "--speedup-ratio") * knobs.Speedup / knobs.Slowdown
	if path, ok := r.Value("--planner-profile-data"); ok {
		measured, err := timing.Load(path)
		if err != nil {
			c.Warnings = append(c.Warnings, "other timing instead of profile data: "+err.Error())
		} else {
			e.Model, c.Timing = measured, "profile data of "+path
		}
	}
	if e.BlockSize < 2 {
		r.Fail(fmt.Errorf("argument --block-size: must be greater than 1, is %d", e.BlockSize))
	}
	if e.Speed <= 0 {
		r.Fail(fmt.Errorf("argument --speedup-ratio: must be greater than 0"))
	}
}

// Card is the model card to publish.
func (c Config) Card() discovery.Card {
	kind := discovery.Generative
	switch {
	case c.Role == Prefill:
		kind = discovery.Prefill
	case c.Embedding:
		kind = discovery.Embedding
	}
	card := discovery.Card{
		DisplayName: c.Model, Slug: discovery.Slug(c.Model), SourcePath: c.SourcePath,
		ContextLength: c.Context, BlockSize: c.Engine.BlockSize, MigrationLimit: c.Migration,
		ModelType: kind, ModelInput: "Tokens",
		Runtime: discovery.RuntimeConfig{
			TotalBlocks: c.Engine.Blocks, MaxSequences: c.Engine.MaxSequences,
			MaxBatchedTokens: c.Engine.MaxBatchedTokens, DataParallelSize: c.Engine.Ranks,
		},
	}
	if c.Generational {
		card.Worker, card.Needs = c.Role.workerType()
	}
	return card
}

// workerType is what a role is called in a card, and whom it needs beside it.
func (r Role) workerType() (discovery.WorkerType, []discovery.WorkerType) {
	switch r {
	case Prefill:
		return discovery.PrefillWorker, []discovery.WorkerType{discovery.DecodeWorker}
	case Decode:
		return discovery.DecodeWorker, []discovery.WorkerType{discovery.PrefillWorker}
	}
	return discovery.AggregatedWorker, nil
}
