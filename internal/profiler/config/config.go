// Package config reads what a request wants of its profiler. The schema is the
// one that requests are written in: camelCase, snake_case accepted, everything
// optional but the model. Reading fills in the defaults and collects every
// problem; it opens no file and asks no cluster.
package config

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dynamo-operator/dynamo-operator/internal/core/perfmodel"
)

// Backend is the engine to profile.
type Backend string

// The engines.
const (
	VLLM   Backend = "vllm"
	SGLang Backend = "sglang"
	TRTLLM Backend = "trtllm"
	// Auto leaves the choice to the profiler.
	Auto Backend = "auto"
)

// Mode is how prompt and answer are served.
type Mode string

// The modes: by the same workers, or by workers of their own.
const (
	Aggregated    Mode = "aggregated"
	Disaggregated Mode = "disaggregated"
)

// Config is a profiler's configuration, complete.
type Config struct {
	OutputDir  string
	Deployment Deployment
	Engine     Engine
	Hardware   Hardware
	Sweep      Sweep
	SLA        SLA
	// Planner holds flags of the planner without dashes, by name.
	Planner map[string]string
	// Request is set if the configuration is a request of v1beta1; then graphs are
	// written as v1beta1, too.
	Request *Request
	// Warnings name what was given and has no effect.
	Warnings []string
}

// Deployment is where candidates run and what they are made of.
type Deployment struct {
	Namespace, ServiceName, Model, Image string
	Timeout                              time.Duration
	Cache                                ModelCache
}

// ModelCache is a claim that holds the model's files.
type ModelCache struct{ PVCName, PVCPath, MountPath string }

// Engine is what to launch.
type Engine struct {
	Backend Backend
	// Config is the path of a graph to start from; empty means a template.
	Config string
	// MaxContextLength caps the sweep; zero means the model's own.
	MaxContextLength int
}

// Request is what only requests of v1beta1 say.
type Request struct {
	// Image is the profiler's, from which those of engines follow.
	Image string
	// Mocker asks for mock engines.
	Mocker bool
	// Planner is the configuration of a planner; nil means none.
	Planner map[string]any
}

// Hardware is what there is to run on. Zero means unknown, until Defaulted.
type Hardware struct {
	MinGPUsPerEngine, MaxGPUsPerEngine, GPUsPerNode int
	Discover                                        bool
	// GPU is a system's name, such as h200_sxm, or a node's product label.
	GPU string
	// Budget bounds the GPUs of the whole graph; zero means no bound. Without a
	// rate it is used up, unlike Most, which bounds alone.
	Budget, Most int
	// PricePerGPUHour replaces the price table; zero means the table's.
	PricePerGPUHour float64
}

// Sweep is how to search.
type Sweep struct {
	PrefillPoints, DecodePoints int
	// Offline asks the performance model alone and deploys nothing.
	Offline bool
	// ModelID names the architecture if the served name does not; Version is the
	// engine's.
	ModelID, Version string
	DryRun           bool
	Modes            []Mode
	// Measured bounds how many candidates are deployed.
	Measured int
	// Requests is the number of requests that each measurement is made of, and
	// Concurrency how many at once it has at most.
	Requests, Concurrency int
}

// SLA is the goal. Times are in milliseconds.
type SLA struct {
	ISL, OSL  int
	TTFT, ITL float64
	// RequestRate, in requests a second, sizes the replicas; zero means one
	// engine of each kind.
	RequestRate float64
	// Strict makes a missed target a failure.
	Strict bool
	// Confidence is the chance with which targets are to be kept and rates reached,
	// as far as the model's bands tell; zero means by its middle.
	Confidence float64
	// Arrival is how requests come; empty means as the load generator sends them:
	// in step.
	Arrival perfmodel.Arrival
}

// Invalid lists everything that is wrong with a configuration.
type Invalid []string

func (i Invalid) Error() string { return "profiler config: " + strings.Join(i, "; ") }

// Parse reads YAML, JSON or the flow form that Python prints.
func Parse(text string) (*Config, error) {
	fields, request, err := Fields(text)
	if err != nil {
		return nil, err
	}
	return Of(fields, request)
}

// Of reads a configuration by its keys, and what a request of v1beta1 says
// besides.
func Of(fields map[string]any, request *Request) (*Config, error) {
	root := newReader("", fields)
	c := &Config{OutputDir: root.text("outputDir", "profiling_results"), Request: request}
	c.deployment(root.section("deployment"))
	c.engine(root.section("engine"))
	c.hardware(root.section("hardware"))
	c.sweep(root.section("sweep"))
	c.sla(root.section("sla"))
	c.Planner = plannerFlags(root.section("planner"))
	problems, warnings := root.finish()
	c.Warnings = warnings
	problems = append(problems, c.check()...)
	if len(problems) > 0 {
		return nil, Invalid(problems)
	}
	return c, nil
}

func (c *Config) deployment(r *reader) {
	c.Deployment = Deployment{
		Namespace:   r.text("namespace", "dynamo-sla-profiler"),
		ServiceName: r.text("serviceName", ""),
		Model:       r.text("model", ""),
		Image:       r.text("dgdImage", ""),
		Timeout:     time.Duration(r.whole("deploymentTimeout", 1800)) * time.Second,
	}
	cache := r.section("modelCache")
	c.Deployment.Cache = ModelCache{
		PVCName: cache.text("pvcName", ""), PVCPath: cache.text("pvcPath", ""), MountPath: cache.text("mountPath", "/opt/model-cache"),
	}
}

func (c *Config) engine(r *reader) {
	c.Engine = Engine{Backend: Backend(r.text("backend", string(VLLM))), Config: r.text("config", ""), MaxContextLength: r.whole("maxContextLength", 0)}
	// Documented, never decisive: the architecture says whether there are experts.
	r.flag("isMoeModel", false)
}

func (c *Config) hardware(r *reader) {
	c.Hardware = Hardware{
		MinGPUsPerEngine: r.whole("minNumGpusPerEngine", 0),
		MaxGPUsPerEngine: r.whole("maxNumGpusPerEngine", 0),
		GPUsPerNode:      r.whole("numGpusPerNode", 0),
		Discover:         r.flag("enableGpuDiscovery", false),
		GPU:              r.text("gpuType", ""),
		Budget:           r.whole("gpuBudget", 0),
		Most:             r.whole("totalGpus", 0),
		PricePerGPUHour:  r.number("pricePerGpuHour", 0),
	}
}

func (c *Config) sweep(r *reader) {
	c.Sweep = Sweep{
		PrefillPoints: r.whole("prefillInterpolationGranularity", 16),
		DecodePoints:  r.whole("decodeInterpolationGranularity", 6),
		Offline:       r.flag("useAiConfigurator", false),
		ModelID:       r.text("aicHfId", ""),
		Version:       r.text("aicBackendVersion", ""),
		DryRun:        r.flag("dryRun", false),
		Measured:      r.whole("maxMeasured", 6),
		Requests:      r.whole("requests", 50),
		Concurrency:   r.whole("maxConcurrency", 32),
	}
	if system := r.text("aicSystem", ""); system != "" {
		c.Hardware.GPU = system
	}
	if name := r.text("aicBackend", ""); name != "" && name != string(c.Engine.Backend) {
		r.warn("aicBackend", "engine.backend decides")
	}
	if r.flag("pickWithWebui", false) {
		r.warn("pickWithWebui", "the report shows every point; nobody is asked")
	}
	r.whole("webuiPort", 8000)
	for _, mode := range r.list("modes") {
		c.Sweep.Modes = append(c.Sweep.Modes, Mode(mode))
	}
}

func (c *Config) sla(r *reader) {
	c.SLA = SLA{
		ISL: r.whole("isl", 3000), OSL: r.whole("osl", 500),
		TTFT: r.number("ttft", 50), ITL: r.number("itl", 10),
		RequestRate: r.number("requestRate", 0), Strict: r.flag("strict", false),
		Confidence: r.number("confidence", 0), Arrival: perfmodel.Arrival(r.text("arrival", "")),
	}
}

// check holds the values against each other.
func (c *Config) check() []string {
	var problems []string
	refuse := func(wrong bool, format string, args ...any) {
		if wrong {
			problems = append(problems, fmt.Sprintf(format, args...))
		}
	}
	h, s := c.Hardware, c.SLA
	switch c.Engine.Backend {
	case VLLM, SGLang, TRTLLM, Auto:
	default:
		refuse(true, "engine.backend: %q is none of auto, vllm, sglang, trtllm", c.Engine.Backend)
	}
	refuse(c.Deployment.Model == "" && c.Engine.Config == "", "deployment.model: needed, unless engine.config names a graph")
	refuse(c.Deployment.Timeout <= 0, "deployment.deploymentTimeout: must be more than 0")
	refuse(c.Engine.MaxContextLength < 0, "engine.maxContextLength: must not be negative")
	refuse(h.MinGPUsPerEngine < 0 || h.MaxGPUsPerEngine < 0 || h.GPUsPerNode < 0, "hardware: numbers of GPUs must not be negative")
	refuse(h.MaxGPUsPerEngine > 0 && h.MinGPUsPerEngine > h.MaxGPUsPerEngine,
		"hardware.minNumGpusPerEngine: %d is more than maxNumGpusPerEngine %d", h.MinGPUsPerEngine, h.MaxGPUsPerEngine)
	refuse(h.Most < 0, "hardware.totalGpus: must not be negative")
	refuse(h.Budget < 0, "hardware.gpuBudget: must not be negative")
	refuse(h.PricePerGPUHour < 0, "hardware.pricePerGpuHour: must not be negative")
	refuse(c.Sweep.PrefillPoints < 3, "sweep.prefillInterpolationGranularity: the planner needs 3 points or more")
	refuse(c.Sweep.DecodePoints < 2, "sweep.decodeInterpolationGranularity: must be 2 or more")
	refuse(c.Sweep.Measured < 1, "sweep.maxMeasured: must be 1 or more")
	refuse(c.Sweep.Requests < 1 || c.Sweep.Concurrency < 1, "sweep: requests and maxConcurrency must be 1 or more")
	for _, mode := range c.Sweep.Modes {
		refuse(mode != Aggregated && mode != Disaggregated, "sweep.modes: %q is neither aggregated nor disaggregated", mode)
	}
	refuse(s.ISL < 1 || s.OSL < 1, "sla: isl and osl must be 1 or more")
	refuse(s.TTFT <= 0 || s.ITL <= 0, "sla: ttft and itl must be more than 0 ms")
	refuse(s.RequestRate < 0, "sla.requestRate: must not be negative")
	refuse(s.Confidence != 0 && (s.Confidence < 0.5 || s.Confidence > 0.99), "sla.confidence: %g is not between 0.5 and 0.99", s.Confidence)
	refuse(s.Arrival != "" && !slices.Contains(perfmodel.Arrivals, s.Arrival), "sla.arrival: %q is none of in-step, spread, poisson", s.Arrival)
	return problems
}

// Defaulted fills in the numbers of GPUs that are still unknown. When the
// hardware was looked up, the search starts from one GPU and memory decides.
func (h Hardware) Defaulted() Hardware {
	h.MinGPUsPerEngine, h.GPUsPerNode = cmp.Or(h.MinGPUsPerEngine, 1), cmp.Or(h.GPUsPerNode, 8)
	if h.MaxGPUsPerEngine == 0 {
		h.MaxGPUsPerEngine = max(4, h.MinGPUsPerEngine)
		if h.Discover {
			h.MaxGPUsPerEngine = max(h.GPUsPerNode, h.MinGPUsPerEngine)
		}
	}
	return h
}

// IsInvalid tells a configuration that cannot be read from one that cannot be
// met.
func IsInvalid(err error) bool {
	_, ok := errors.AsType[Invalid](err)
	return ok
}
