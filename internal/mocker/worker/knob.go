package worker

import (
	"fmt"
	"time"

	"github.com/dynamo-operator/dynamo-operator/internal/mocker/launch"
	"github.com/dynamo-operator/dynamo-operator/internal/mocker/podenv"
)

// Knobs make a worker misbehave, or behave faster, on request. They are
// environment variables, so that a manifest can set them per service:
//
//	MOCKER_STARTUP_DELAY     loading time before the worker serves (30s)
//	MOCKER_CRASH_AFTER       die with exit status 1 that long after the start
//	MOCKER_CRASH_AFTER_REQUESTS
//	                         the same once it has been sent so many requests
//	MOCKER_ERROR_RATE        share of requests that fail, from 0 to 1 (0)
//	MOCKER_TTFT_FACTOR       multiply the time to the first token alone (default 1)
//	MOCKER_REGISTRATION_DELAY
//	                         how long the worker is healthy before it registers, as
//	                         one whose card routers refuse: that has no end
//	MOCKER_READINESS_FLAP    /health changes between ready and not every so often;
//	                         /live stays truthful, or the pod would be restarted
//	MOCKER_SPEEDUP           divide all engine times (default 1)
//	MOCKER_SLOWDOWN          multiply all engine times (default 1)
//	MOCKER_KV_BLOCKS         size of the key-value cache, per rank
//	MOCKER_GPU               what GPUs the engine pretends to have (h200_sxm); a
//	                         name of the performance model or a product label
//	MOCKER_DRAIN_LINGER      how long a leaving worker still takes requests that
//	                         were sent before its leaving was known (1.5s, or
//	                         DYN_GRACEFUL_SHUTDOWN_GRACE_PERIOD_SECS)
//	MOCKER_DRAIN_HANG        true: told to end, it does not, and has to be killed
//	MOCKER_LORA_FAILURE      refuse: HTTP 500; hang: no answer; error: HTTP 200
//	                         with status "error"; forget: success is answered but
//	                         the adapter is not kept
//
// How long the nodes of a group wait for each other is rendezvous' to say.
//
// Loaded adapters live in memory: a restarted worker has lost them, as a real
// one has.
type Knobs struct {
	StartupDelay   time.Duration
	CrashAfter     time.Duration
	CrashRequests  int
	ErrorRate      float64
	TTFTFactor     float64
	Registration   time.Duration
	DrainHang      bool
	ReadinessFlap  time.Duration
	Speedup        float64
	Slowdown       float64
	Blocks         int
	GPU            string
	DrainLinger    time.Duration
	AdapterFailure AdapterFailure
}

// AdapterFailure is a way for the LoRA API to fail.
type AdapterFailure string

// The ways to fail.
const (
	AdapterWorks   AdapterFailure = ""
	AdapterRefused AdapterFailure = "refuse"
	AdapterHangs   AdapterFailure = "hang"
	AdapterError   AdapterFailure = "error"
	AdapterForgets AdapterFailure = "forget"
)

// defaultGPU is what the local cluster's nodes claim to have.
const defaultGPU = "h200_sxm"

// NewKnobs reads the MOCKER_ variables.
func NewKnobs(env podenv.Env) (Knobs, error) {
	r := launch.Settings{Env: env}
	k := Knobs{
		StartupDelay: r.Duration(0, "MOCKER_STARTUP_DELAY"), CrashAfter: r.Duration(0, "MOCKER_CRASH_AFTER"), ReadinessFlap: r.Duration(0, "MOCKER_READINESS_FLAP"),
		Speedup: r.Float(1, "MOCKER_SPEEDUP"), Slowdown: r.Float(1, "MOCKER_SLOWDOWN"), Blocks: r.Int(0, "MOCKER_KV_BLOCKS"),
		CrashRequests: r.Int(0, "MOCKER_CRASH_AFTER_REQUESTS"), ErrorRate: r.Float(0, "MOCKER_ERROR_RATE"), TTFTFactor: r.Float(1, "MOCKER_TTFT_FACTOR"),
		Registration: r.Duration(0, "MOCKER_REGISTRATION_DELAY"), DrainHang: env.Bool("MOCKER_DRAIN_HANG", false),
		GPU: env.String(defaultGPU, "MOCKER_GPU"),
		// Runtimes of 1.x have a variable of their own for it.
		DrainLinger: r.Duration(r.Duration(1500*time.Millisecond, "DYN_GRACEFUL_SHUTDOWN_GRACE_PERIOD_SECS"), "MOCKER_DRAIN_LINGER"),
	}
	if r.Err != nil {
		return k, r.Err
	}
	if k.Speedup <= 0 || k.Slowdown <= 0 {
		return k, fmt.Errorf("MOCKER_SPEEDUP and MOCKER_SLOWDOWN must be greater than 0")
	}
	if k.ErrorRate < 0 || k.ErrorRate > 1 || k.TTFTFactor < 1 {
		return k, fmt.Errorf("MOCKER_ERROR_RATE must be from 0 to 1, and MOCKER_TTFT_FACTOR no less than 1")
	}
	switch k.AdapterFailure = AdapterFailure(env["MOCKER_LORA_FAILURE"]); k.AdapterFailure {
	case AdapterWorks, AdapterRefused, AdapterHangs, AdapterError, AdapterForgets:
	default:
		return k, fmt.Errorf("MOCKER_LORA_FAILURE=%q: want refuse, hang, error or forget", k.AdapterFailure)
	}
	return k, nil
}
