// Package policy reads what a graph's annotations say about its rollouts, and tells
// at which of its steps one is. It is pure, and knows no replica but by number.
package policy

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
)

// Policy is how the workers of a graph are to be rolled out. The zero value of each
// field but the three words, which have their default, is to do nothing about it.
type Policy struct {
	// Steps at which a rollout stops; none is straight through.
	Steps []Step
	// SLO is what a candidate has to meet.
	SLO       SLO
	Analysis  Analysis
	OnFailure OnFailure
	Isolation Isolation
	// Paused stops growing and draining; healing and scaling go on.
	Paused bool
	// DisruptionBudgets has evictions leave the floor too; nil if the graph does not say.
	DisruptionBudgets *bool
	// Promote is a step that a user let pass; nil for none.
	Promote *Promotion
	// Abort and Retry are the generations that a user asked it for; empty for none.
	Abort, Retry string
}

// Analysis is how much the comparison with the stable generation counts.
type Analysis string

const (
	// AnalysisGuard stops a candidate that is seen to be worse.
	AnalysisGuard Analysis = "guard"
	// AnalysisRequired also has a step wait until enough was seen.
	AnalysisRequired Analysis = "required"
	// AnalysisOff compares nothing.
	AnalysisOff Analysis = "off"
)

// OnFailure is what becomes of a candidate that fails.
type OnFailure string

const (
	OnFailureAbort OnFailure = "abort"
	OnFailureHold  OnFailure = "hold"
)

// Isolation is how generations are kept apart.
type Isolation string

const (
	// IsolationAuto goes by the runtime of the graph's images.
	IsolationAuto Isolation = "auto"
	// IsolationShared has frontends that see every generation.
	IsolationShared Isolation = "shared"
	// IsolationPaired has frontends of each generation's own.
	IsolationPaired Isolation = v1alpha1.IsolationPaired
	// IsolationNone replaces workers in place.
	IsolationNone Isolation = "none"
)

// SLO bounds what a candidate's requests may come to. Zero is no bound.
type SLO struct {
	// Errors is the share of requests that may fail, 0.01 for 1 %.
	Errors float64
	// TTFT and ITL are 95th percentiles.
	TTFT, ITL time.Duration
}

// Promotion lets a generation pass a step, and all before it.
type Promotion struct {
	Generation string
	// Step counts from 1.
	Step int
	// All lets it pass every step.
	All bool
}

// Unjudged reports whether a user let a generation pass every step, whatever becomes of it.
func (p Policy) Unjudged(generation string) bool {
	return p.Promote != nil && p.Promote.All && p.Promote.Generation == generation
}

// Without is the policy without the orders about a generation to pass and to abort.
func (p Policy) Without(generation string) Policy {
	if p.Promote != nil && p.Promote.Generation == generation {
		p.Promote = nil
	}
	if p.Abort == generation {
		p.Abort = ""
	}
	return p
}

func (p Promotion) String() string {
	if p.All {
		return p.Generation + "/" + everyStep
	}
	return p.Generation + "/" + strconv.Itoa(p.Step)
}

const everyStep = "all"

// Problem is an annotation that cannot be read.
type Problem struct {
	Annotation, Value, Message string
}

func (p Problem) Error() string {
	return fmt.Sprintf("%s: %q %s", p.Annotation, p.Value, p.Message)
}

// Parse reads the annotations of a graph. What cannot be read keeps its default, and
// is a problem; problems are in the order of their annotations' names.
func Parse(annotations map[string]string) (Policy, []Problem) {
	p := Policy{Analysis: AnalysisGuard, OnFailure: OnFailureAbort, Isolation: IsolationAuto}
	var problems []Problem
	for _, read := range []struct {
		annotation string
		into       func(value string) error
	}{
		{v1alpha1.AnnotationDisruptionBudget, p.budgets},
		{v1alpha1.AnnotationRolloutAbort, id(&p.Abort)},
		{v1alpha1.AnnotationRolloutAnalysis, word(&p.Analysis, AnalysisGuard, AnalysisRequired, AnalysisOff)},
		{v1alpha1.AnnotationRolloutIsolation, word(&p.Isolation, IsolationAuto, IsolationShared, IsolationPaired, IsolationNone)},
		{v1alpha1.AnnotationRolloutOnFailure, word(&p.OnFailure, OnFailureAbort, OnFailureHold)},
		{v1alpha1.AnnotationRolloutPaused, p.paused},
		{v1alpha1.AnnotationRolloutPromote, p.promote},
		{v1alpha1.AnnotationRolloutRetry, id(&p.Retry)},
		{v1alpha1.AnnotationRolloutSLO, p.slo},
		{v1alpha1.AnnotationRolloutSteps, p.steps},
	} {
		value := strings.TrimSpace(annotations[read.annotation])
		if value == "" {
			continue
		}
		if err := read.into(value); err != nil {
			problems = append(problems, Problem{read.annotation, annotations[read.annotation], err.Error()})
		}
	}
	return p, problems
}

// word reads one of some words.
func word[W ~string](into *W, words ...W) func(string) error {
	return func(value string) error {
		if !slices.Contains(words, W(value)) {
			return fmt.Errorf("is none of %s", join(words))
		}
		*into = W(value)
		return nil
	}
}

func join[W ~string](words []W) string {
	all := make([]string, len(words))
	for i, w := range words {
		all[i] = string(w)
	}
	return strings.Join(all, ", ")
}

// maxID is the length of a label's value: a generation is one.
const maxID = 63

// id reads a generation.
func id(into *string) func(string) error {
	return func(value string) error {
		if strings.ContainsAny(value, "/, \t\n") || len(value) > maxID {
			return fmt.Errorf("is no generation such as 3fa91c02")
		}
		*into = value
		return nil
	}
}

func (p *Policy) paused(value string) (err error) {
	p.Paused, err = truth(value)
	return err
}

func (p *Policy) budgets(value string) error {
	on, err := truth(value)
	if err == nil {
		p.DisruptionBudgets = &on
	}
	return err
}

func truth(value string) (bool, error) {
	on, err := strconv.ParseBool(value)
	if err != nil {
		return false, fmt.Errorf("is neither true nor false")
	}
	return on, nil
}

func (p *Policy) promote(value string) error {
	form := errors.New("is not <generation>/<step> or <generation>/all, such as 3fa91c02/2")
	generation, step, found := strings.Cut(value, "/")
	if !found || generation == "" || id(new(string))(generation) != nil {
		return form
	}
	if step == everyStep {
		p.Promote = &Promotion{Generation: generation, All: true}
		return nil
	}
	n, err := strconv.Atoi(step)
	if err != nil || n < 1 {
		return form
	}
	p.Promote = &Promotion{Generation: generation, Step: n}
	return nil
}

// The names of what an SLO bounds.
const (
	sloErrors = "errors"
	sloTTFT   = "ttft-p95"
	sloITL    = "itl-p95"
)

func (p *Policy) slo(value string) error {
	var slo SLO
	seen := map[string]bool{}
	for part := range strings.SplitSeq(value, ",") {
		name, bound, found := strings.Cut(strings.TrimSpace(part), "<")
		name, bound = strings.TrimSpace(name), strings.TrimSpace(bound)
		if !found {
			return fmt.Errorf("has %q, which is no bound such as ttft-p95<2s", strings.TrimSpace(part))
		}
		if seen[name] {
			return fmt.Errorf("bounds %s twice", name)
		}
		seen[name] = true
		var err error
		switch name {
		case sloErrors:
			slo.Errors, err = percent(bound)
		case sloTTFT:
			slo.TTFT, err = duration(bound)
		case sloITL:
			slo.ITL, err = duration(bound)
		default:
			err = fmt.Errorf("is none of %s, %s, %s", sloErrors, sloTTFT, sloITL)
		}
		if err != nil {
			return fmt.Errorf("bounds %s: %w", name, err)
		}
	}
	p.SLO = slo
	return nil
}

// percent reads a share of requests.
func percent(value string) (float64, error) {
	digits, found := strings.CutSuffix(value, "%")
	n, err := strconv.ParseFloat(digits, 64)
	if !found || err != nil || !(n > 0 && n <= 100) {
		return 0, fmt.Errorf("%q is no share such as 1%%", value)
	}
	return n / 100, nil
}

func duration(value string) (time.Duration, error) {
	d, err := time.ParseDuration(value)
	if err != nil || d <= 0 {
		return 0, fmt.Errorf("%q is no time such as 60ms or 2s", value)
	}
	return d, nil
}
