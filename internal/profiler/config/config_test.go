package config

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// defaults is what a request gets that names its model alone.
func defaults(change func(*Config)) *Config {
	c := &Config{
		OutputDir: "profiling_results",
		Deployment: Deployment{
			Namespace: "dynamo-sla-profiler", Model: "m", Timeout: 30 * time.Minute, Cache: ModelCache{MountPath: "/opt/model-cache"},
		},
		Engine:  Engine{Backend: VLLM},
		Sweep:   Sweep{PrefillPoints: 16, DecodePoints: 6, Measured: 6, Requests: 50, Concurrency: 32},
		SLA:     SLA{ISL: 3000, OSL: 500, TTFT: 50, ITL: 10},
		Planner: map[string]string{},
	}
	change(c)
	return c
}

func TestParse(t *testing.T) {
	for name, test := range map[string]struct {
		text string
		want *Config
	}{
		"a model alone gets the defaults": {`deployment: {model: m}`, defaults(func(*Config) {})},
		"snake_case means the same": {
			"output_dir: /data\ndeployment: {model: m, dgd_image: i, deployment_timeout: 60}\nsweep: {use_ai_configurator: true, aic_system: h200_sxm, decode_interpolation_granularity: 4}",
			defaults(func(c *Config) {
				c.OutputDir, c.Deployment.Image, c.Deployment.Timeout = "/data", "i", time.Minute
				c.Sweep.Offline, c.Hardware.GPU, c.Sweep.DecodePoints = true, "h200_sxm", 4
			}),
		},
		"camelCase wins over snake_case": {
			`deployment: {model: m, dgd_image: old, dgdImage: new}`,
			defaults(func(c *Config) { c.Deployment.Image = "new" }),
		},
		"what Python prints is read": {
			`{'deployment': {'model': 'm', 'dgd_image': None}, 'sweep': {'use_ai_configurator': True}, 'sla': {'ttft': 200.5}}`,
			defaults(func(c *Config) { c.Sweep.Offline, c.SLA.TTFT = true, 200.5 }),
		},
		"planner flags lose their prefix": {
			`{"deployment": {"model": "m"}, "planner": {"plannerMinEndpoint": 2, "planner_max_gpu_budget": -1, "loadPredictor": "constant"}}`,
			defaults(func(c *Config) {
				c.Planner = map[string]string{"min-endpoint": "2", "max-gpu-budget": "-1", "load-predictor": "constant"}
			}),
		},
		"a key without effect is told": {
			"deployment: {model: m}\naic: {system: x}\nsweep: {pickWithWebui: true}",
			defaults(func(c *Config) {
				c.Warnings = []string{"sweep.pickWithWebui has no effect: the report shows every point; nobody is asked", "aic has no effect: it is not known"}
			}),
		},
		"a goal of ours": {
			"deployment: {model: m}\nsla: {requestRate: 12.5, strict: true}\nhardware: {gpuBudget: 16, gpuType: H200}\nsweep: {modes: [aggregated]}",
			defaults(func(c *Config) {
				c.SLA.RequestRate, c.SLA.Strict, c.Hardware.Budget, c.Hardware.GPU = 12.5, true, 16, "H200"
				c.Sweep.Modes = []Mode{Aggregated}
			}),
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Parse(test.text)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestParseRefuses(t *testing.T) {
	for name, test := range map[string]struct {
		text  string
		count int
	}{
		"a request without a model":             {`{}`, 1},
		"a target that nothing can be below":    {"deployment: {model: m}\nsla: {ttft: 0, itl: -1}", 1},
		"an engine nobody knows":                {"deployment: {model: m}\nengine: {backend: tgi}", 1},
		"text in place of a section":            {"deployment: {model: m}\nsla: fast", 1},
		"a fraction of a GPU":                   {"deployment: {model: m}\nhardware: {numGpusPerNode: 1.5}", 1},
		"a lower bound above the upper one":     {"deployment: {model: m}\nhardware: {minNumGpusPerEngine: 8, maxNumGpusPerEngine: 4}", 1},
		"a grid of one point":                   {"deployment: {model: m}\nsweep: {decodeInterpolationGranularity: 1}", 1},
		"every problem at once":                 {"sla: {isl: x, ttft: -1}\nengine: {backend: tgi}", 4},
		"text that is no object":                {`[1, 2]`, 1},
		"a list of flags in place of their map": {"deployment: {model: m}\nplanner: {x: [1]}", 1},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse(test.text)
			problems, ok := errors.AsType[Invalid](err)
			if !ok || !IsInvalid(err) {
				t.Fatalf("got %v", err)
			}
			if got := len(problems); got != test.count {
				t.Errorf("%d problems, want %d: %v", got, test.count, err)
			}
		})
	}
}

func TestDefaultedHardware(t *testing.T) {
	for name, test := range map[string]struct{ given, want Hardware }{
		"nothing known":                    {Hardware{}, Hardware{MinGPUsPerEngine: 1, MaxGPUsPerEngine: 4, GPUsPerNode: 8}},
		"a lower bound lifts the upper":    {Hardware{MinGPUsPerEngine: 16}, Hardware{MinGPUsPerEngine: 16, MaxGPUsPerEngine: 16, GPUsPerNode: 8}},
		"looked up: as many as a node has": {Hardware{Discover: true, GPUsPerNode: 8}, Hardware{Discover: true, MinGPUsPerEngine: 1, MaxGPUsPerEngine: 8, GPUsPerNode: 8}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, test.given.Defaulted()); diff != "" {
				t.Error(diff)
			}
		})
	}
}
