// Package profileoutput is the contract between the profiler and the controller of
// requests: the keys of one ConfigMap and the types of their values.
//
//	profiler --progress.json--> ConfigMap ---> status of the request
//	         --result.json---->                  ^
//	         --Receipt-------> termination log --+ proves what stands in the ConfigMap
package profileoutput

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Keys of the ConfigMap that a request's profiler writes.
const (
	KeyProgress   = "progress.json"
	KeyResult     = "result.json"
	KeyReportHTML = "report.html"
	KeyReportText = "report.txt"
)

// Keys of the profile data ConfigMap, which planner and mock engine mount.
const (
	KeyPrefillData = "prefill_raw_data.json"
	KeyDecodeData  = "decode_raw_data.json"
)

// Keys under which other profilers leave their graphs: those of the seed the real
// one and that of mock engines, those of 1.x the one that was asked for.
const (
	KeyGraph       = "config_with_planner.yaml"
	KeyMockerGraph = "mocker_config_with_planner.yaml"
	KeyFinalGraph  = "final_config.yaml"
)

// KeyPhase holds the phase that a profiler of 1.x is in.
const KeyPhase = "phase"

// FileStatus is where a profiler of 1.x says how far it is, beside its results.
const FileStatus = "profiler_status.yaml"

// Phases of a profiler of 1.x that others are named after.
const (
	PhaseInitializing    = "Initializing"
	PhaseSweepingPrefill = "SweepingPrefill"
	PhaseSweepingDecode  = "SweepingDecode"
	PhaseSelectingConfig = "SelectingConfig"
	PhaseBuildingCurves  = "BuildingCurves"
	PhaseGeneratingDGD   = "GeneratingDGD"
	PhaseDone            = "Done"
)

// IsPhase reports whether a word is one of the phases. Nobody else's is shown.
func IsPhase(word string) bool {
	switch word {
	case PhaseInitializing, PhaseSweepingPrefill, PhaseSweepingDecode, PhaseSelectingConfig, PhaseBuildingCurves, PhaseGeneratingDGD, PhaseDone:
		return true
	default:
		return false
	}
}

// Stage is what our profiler does.
type Stage string

// The stages of a run.
const (
	StageRanking   Stage = "Ranking"
	StageMeasuring Stage = "Measuring"
	StageWriting   Stage = "Writing"
)

// State is how a run ended.
type State string

// A run either found a graph or did not. One that found a graph which misses a
// target has succeeded: SLAMet and Targets tell.
const (
	Succeeded State = "Succeeded"
	Failed    State = "Failed"
)

// Reason says in one word why a run ended as it did.
type Reason string

// Reasons of a run that succeeded, then of one that failed.
const (
	ReasonTargetsMet    Reason = "TargetsMet"
	ReasonTargetsMissed Reason = "TargetsMissed"

	ReasonInvalidConfig   Reason = "InvalidConfig"
	ReasonUnknownModel    Reason = "UnknownModel"
	ReasonUnknownGPU      Reason = "UnknownGPU"
	ReasonNoConfiguration Reason = "NoFeasibleConfiguration"
	ReasonMeasurement     Reason = "MeasurementFailed"
	ReasonInterrupted     Reason = "Interrupted"
	ReasonInternal        Reason = "ProfilerError"
)

// Known reports whether a reason is one of those above: one that somebody made
// up need not fit into a condition.
func (r Reason) Known() bool {
	switch r {
	case ReasonMeasurement, ReasonInterrupted, ReasonInternal, ReasonTargetsMet:
		return true
	default:
		return r.Permanent()
	}
}

// Permanent says whether the same request would fail the same way again.
func (r Reason) Permanent() bool {
	switch r {
	case ReasonInvalidConfig, ReasonUnknownModel, ReasonUnknownGPU, ReasonNoConfiguration, ReasonTargetsMissed:
		return true
	default:
		return false
	}
}

// Progress is how far a run has come.
type Progress struct {
	// Done and Total count candidates: first those the model judges, then, online,
	// those that are deployed.
	Done  int `json:"done"`
	Total int `json:"total"`
	// Stage is what is being done: Ranking, Measuring or Writing.
	Stage Stage `json:"stage,omitempty"`
	// Best describes the best candidate so far; empty while there is none.
	Best string `json:"best,omitempty"`
}

// String is one line for a person.
func (p Progress) String() string {
	text := fmt.Sprintf("%d/%d candidates", p.Done, p.Total)
	if p.Stage != "" {
		text = strings.ToLower(string(p.Stage)) + ": " + text
	}
	if p.Best != "" {
		text += ", best so far " + p.Best
	}
	return text
}

// Result is how a run ended and what it found.
type Result struct {
	State   State  `json:"state"`
	Reason  Reason `json:"reason"`
	Message string `json:"message"`

	// GeneratedDeployment and MockerDeployment are DynamoGraphDeployments in
	// YAML, one document each.
	GeneratedDeployment string `json:"generatedDeployment,omitempty"`
	MockerDeployment    string `json:"mockerDeployment,omitempty"`
	// ProfileData names the ConfigMap that both graphs mount, in the request's
	// namespace; empty if they mount none.
	ProfileData string `json:"profileData,omitempty"`

	SLAMet  bool     `json:"slaMet"`
	TTFTMs  float64  `json:"ttftMs,omitempty"`
	ITLMs   float64  `json:"itlMs,omitempty"`
	Targets []Target `json:"targets,omitempty"`
	// Remedy says what would meet the targets, if this does not.
	Remedy string `json:"remedy,omitempty"`

	// Chosen describes the configuration in a line.
	Chosen           string  `json:"chosen,omitempty"`
	GPUs             int     `json:"gpus,omitempty"`
	TokensPerGPU     float64 `json:"tokensPerSecondPerGpu,omitempty"`
	CostPerMillion   float64 `json:"costPerMillionTokens,omitempty"`
	RequestRate      float64 `json:"requestRate,omitempty"`
	Measured         bool    `json:"measured"`
	ModelFingerprint string  `json:"modelFingerprint,omitempty"`
}

// Target is one promise and how it is kept.
type Target struct {
	// Name is ttft, itl, requestRate or maxGpus.
	Name string  `json:"name"`
	Unit string  `json:"unit,omitempty"`
	Want float64 `json:"want"`
	Got  float64 `json:"got"`
	// Low and High are the band around Got; equal where it is exact.
	Low  float64 `json:"low"`
	High float64 `json:"high"`
	Met  bool    `json:"met"`
}

// String is the target in a sentence for a condition.
func (t Target) String() string {
	text := fmt.Sprintf("%s %.4g%s of %.4g%s", t.Name, t.Got, t.Unit, t.Want, t.Unit)
	switch {
	case t.Met && t.High > t.Want && t.Low < t.Got:
		return text + ", met by the estimate but not by its whole band"
	case t.Met:
		return text + ", met"
	case t.Want == 0:
		return text + ", missed"
	default:
		return text + fmt.Sprintf(", missed by %.3g%%", 100*max(t.Got-t.Want, t.Want-t.Got)/t.Want)
	}
}

// ParseResult reads what stands under KeyResult. A state that is neither of the
// two is an error, not a success.
func ParseResult(text string) (Result, error) {
	var r Result
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		return Result{}, fmt.Errorf("parse %s: %w", KeyResult, err)
	}
	if r.State != Succeeded && r.State != Failed {
		return Result{}, fmt.Errorf("parse %s: unknown state %q", KeyResult, r.State)
	}
	return r, nil
}

// ParseProgress reads what stands under KeyProgress.
func ParseProgress(text string) (Progress, error) {
	var p Progress
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		return Progress{}, fmt.Errorf("parse %s: %w", KeyProgress, err)
	}
	return p, nil
}

// Text is the result as it stands under KeyResult.
func (r Result) Text() string { return text(r) }

// Text is the progress as it stands under KeyProgress.
func (p Progress) Text() string { return text(p) }

func text(v any) string {
	body, err := json.Marshal(v)
	if err != nil {
		panic(err) // plain fields; numbers are finite
	}
	return string(body)
}
