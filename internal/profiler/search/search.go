// Package search finds the configuration of a graph that meets a goal on given
// hardware: it lists the layouts an engine can have, asks the performance model
// about each, sizes replicas, and ranks. It deploys nothing and reads nothing;
// what cannot run is rejected with the reason.
//
//	layouts -> divisible? -> fits memory? -> operating point -> replicas -> rank
package search

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/dynamo-operator/dynamo-operator/internal/core/perfmodel"
	"github.com/dynamo-operator/dynamo-operator/internal/profiler/config"
)

// Problem is a goal and what there is to meet it with.
type Problem struct {
	Catalog perfmodel.Catalog
	Model   perfmodel.Model
	GPU     perfmodel.GPU
	Engine  perfmodel.Engine
	Goal    config.SLA
	// MaxContext caps the model's own context; zero does not.
	MaxContext int
	// MinGPUs and MaxGPUs bound one engine, Budget the graph if it is not zero.
	// Most bounds it, too, and is not used up.
	MinGPUs, MaxGPUs, PerNode, Budget, Most int
	Modes                                   []config.Mode
	// PricePerHour of a GPU; zero means unknown.
	PricePerHour float64

	// plain leaves out pipelines and mixed layouts, and ranks only the best one:
	// enough to show that a change would meet a goal.
	plain bool
}

// most is how many GPUs a graph may take; zero means any number.
func (p *Problem) most() int { return cmp.Or(p.Budget, p.Most) }

// Band is an estimate in milliseconds and where the truth may lie.
type Band struct{ Value, Low, High float64 }

func band(e perfmodel.Estimate) Band {
	ms := func(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
	return Band{ms(e.Value), ms(e.Low), ms(e.High)}
}

func (b Band) plus(o Band) Band { return Band{b.Value + o.Value, b.Low + o.Low, b.High + o.High} }

func (b Band) times(f float64) Band { return Band{b.Value * f, b.Low * f, b.High * f} }

// Worker is one kind of engine of a graph.
type Worker struct {
	Layout   Layout
	Replicas int
	// Concurrency is how many requests one engine has at once; a prefill engine
	// has one for each rank.
	Concurrency int
	// Limit is how many it may have before a target is missed; zero means no
	// limit is known.
	Limit int
	// CacheTokens is what one engine's cache holds.
	CacheTokens int
}

// GPUs of all replicas.
func (w Worker) GPUs() int { return w.Replicas * w.Layout.GPUs() }

// Candidate is a graph that could run, at the load at which it does best.
type Candidate struct {
	Name string
	Mode config.Mode
	// Prefill is nil where the same engines do both.
	Prefill   *Worker
	Decode    Worker
	TTFT, ITL Band
	// Rate is what the whole graph serves, in requests a second.
	Rate         float64
	GPUs         int
	TokensPerGPU float64
	// CostPerMillion output tokens, in dollars; zero if no price is known.
	CostPerMillion float64
	// Misses are the targets that are missed; none means all are met.
	Misses []Miss
	// Measured is true once TTFT and ITL are corrected by a measurement, Trial, by
	// these factors.
	Measured                bool
	Trial                   Measurement
	FirstFactor, StepFactor float64

	excess  float64 // the worst ratio of a missed target
	grade   int     // merit, in steps
	settled bool    // not by formula
}

// Met reports whether every target is.
func (c Candidate) Met() bool { return len(c.Misses) == 0 }

// Miss is a target and what there is instead.
type Miss struct {
	Target, Unit string
	Got, Want    float64
}

func (m Miss) String() string {
	return fmt.Sprintf("%s %.4g%s of %.4g%s, missed by %.3g%%", m.Target, m.Got, m.Unit, m.Want, m.Unit, 100*math.Abs(m.Got-m.Want)/m.Want)
}

// Missed says by how much which targets are missed.
func (c Candidate) Missed() string {
	var all []string
	for _, m := range c.Misses {
		all = append(all, m.String())
	}
	return strings.Join(all, "; ")
}

// String is the candidate in a few words.
func (c Candidate) String() string {
	if c.Prefill == nil {
		return fmt.Sprintf("aggregated %d x %s", c.Decode.Replicas, c.Decode.Layout)
	}
	return fmt.Sprintf("disaggregated %d x %s prefill, %d x %s decode", c.Prefill.Replicas, c.Prefill.Layout, c.Decode.Replicas, c.Decode.Layout)
}

// Rejection is a layout that cannot run, and why.
type Rejection struct {
	Layout Layout
	Role   string
	Reason string
}

// Outcome is everything that was found.
type Outcome struct {
	Problem Problem
	// Candidates are ranked, the best first. The first one is chosen, whether it
	// meets the goal or comes closest.
	Candidates []Candidate
	Rejected   []Rejection
	// Remedies say what would meet the goal, if nothing here does.
	Remedies []string

	able []*engine // those that can run
}

// Best is the chosen candidate.
func (o *Outcome) Best() Candidate { return o.Candidates[0] }

// InfeasibleError says that nothing can run at all.
type InfeasibleError struct {
	Reason   string
	Rejected []Rejection
}

func (e *InfeasibleError) Error() string { return e.Reason }

// Solve searches. It fails only if nothing can run; a goal that is missed is an
// outcome.
func Solve(p Problem) (*Outcome, error) {
	outcome, err := solve(p)
	if err != nil {
		return nil, err
	}
	outcome.Review()
	return outcome, nil
}

// Review says what would meet a goal that nothing meets; again, after what was
// measured has changed the ranking.
func (o *Outcome) Review() {
	o.Remedies = nil
	if !o.Best().Met() {
		o.Remedies = remedies(o)
	}
}

func solve(p Problem) (*Outcome, error) {
	context := p.context()
	if need := p.Goal.ISL + p.Goal.OSL; need > context {
		return nil, &InfeasibleError{Reason: fmt.Sprintf("isl %d and osl %d make %d tokens, but the context of %s holds %d", p.Goal.ISL, p.Goal.OSL, need, p.Model.Name, context)}
	}
	o := &Outcome{Problem: p}
	engines, err := o.engines()
	if err != nil {
		return nil, err
	}
	o.able = engines
	if p.wants(config.Aggregated) {
		o.aggregated(engines)
	}
	if p.wants(config.Disaggregated) {
		o.disaggregated(engines)
	}
	if len(o.Candidates) == 0 {
		return nil, &InfeasibleError{Reason: o.whyNone(), Rejected: o.Rejected}
	}
	if p.plain {
		o.confirm()
	} else {
		o.decide()
	}
	return o, nil
}

func (p *Problem) context() int {
	if p.MaxContext > 0 && (p.Model.Context == 0 || p.MaxContext < p.Model.Context) {
		return p.MaxContext
	}
	return p.Model.Context
}

func (p *Problem) wants(mode config.Mode) bool {
	return len(p.Modes) == 0 || slices.Contains(p.Modes, mode)
}

// engine is a layout that can run.
type engine struct {
	layout               Layout
	name                 string
	*perfmodel.Estimator                      // of one that does all of the work
	pool                 *perfmodel.Estimator // of one in a prefill or decode pool
	memory               perfmodel.Memory
	most                 int // concurrent requests of the goal's size
	// What every pair with this engine asks again.
	prompts float64                        // per second, at most
	idle    perfmodel.Estimate             // first token without a queue
	queued  map[float64]perfmodel.Estimate // first token by rate of arrivals
	sizes   []size                         // more and more replicas for the rate
	// By how it was asked, and requests for each of its ranks.
	known [arriving + 1]map[int]served
}

// engines lists what can run, the simplest first, and rejects the rest.
func (o *Outcome) engines() ([]*engine, error) {
	p := &o.Problem
	var all []Layout
	for _, n := range counts(p.MinGPUs, p.MaxGPUs, p.PerNode) {
		all = append(all, layouts(n, p.Model, p.Engine)...)
	}
	if p.plain {
		all = slices.DeleteFunc(all, func(l Layout) bool { return l.Parallel.PP > 1 || l.Parallel.DP > 1 && l.Parallel.TP > 1 })
	}
	sortLayouts(all)
	var able []*engine
	for _, l := range all {
		e, reason, err := p.engine(l)
		if err != nil {
			return nil, err
		}
		if reason != "" {
			o.Rejected = append(o.Rejected, Rejection{Layout: l, Role: "any", Reason: reason})
			continue
		}
		able = append(able, e)
	}
	if len(able) == 0 {
		return nil, &InfeasibleError{Reason: o.whyNone(), Rejected: o.Rejected}
	}
	return able, nil
}

// engine estimates a layout, or says why it cannot run.
func (p *Problem) engine(l Layout) (*engine, string, error) {
	if reason := l.placeable(p.PerNode); reason != "" {
		return nil, reason, nil
	}
	if most := p.most(); most > 0 && l.GPUs() > most {
		return nil, fmt.Sprintf("one engine takes %d GPUs, the budget is %d", l.GPUs(), most), nil
	}
	setup := perfmodel.Setup{Model: p.Model, GPU: p.GPU, Engine: p.Engine, Parallel: l.Parallel}
	estimator, err := p.Catalog.Estimator(setup)
	if layout, ok := errors.AsType[*perfmodel.LayoutError](err); ok {
		return nil, layout.Reason, nil
	}
	if err != nil {
		return nil, "", err
	}
	e := &engine{layout: l, name: l.name(), Estimator: estimator, memory: estimator.Memory(), most: estimator.MaxConcurrency(p.Goal.ISL, p.Goal.OSL)}
	setup.Pool = true
	if e.pool, err = p.Catalog.Estimator(setup); err != nil {
		return nil, "", err
	}
	e.prompts, e.idle, e.queued = e.pool.PrefillRate(p.load(1)), e.pool.FirstToken(p.Goal.ISL, 0), map[float64]perfmodel.Estimate{}
	for w := range e.known {
		e.known[w] = map[int]served{}
	}
	const gib = 1 << 30
	switch {
	case !e.memory.Fits():
		return nil, fmt.Sprintf("weights of %.1f GiB and %.1f GiB of activations leave no room for a cache in %.1f GiB of a GPU",
			e.memory.Weights/gib, e.memory.Activations/gib, e.memory.Usable/gib), nil
	case e.most < l.Ranks():
		return nil, fmt.Sprintf("the cache holds %d tokens in %d ranks, a request needs %d", e.memory.Tokens, l.Ranks(), p.Goal.ISL+p.Goal.OSL), nil
	}
	return e, "", nil
}

// whyNone sums up the rejections by their nearest miss: the last layout is the
// largest one.
func (o *Outcome) whyNone() string {
	if len(o.Rejected) == 0 {
		return fmt.Sprintf("%s does not divide into any number of GPUs between %d and %d", o.Problem.Model.Name, o.Problem.MinGPUs, o.Problem.MaxGPUs)
	}
	last := o.Rejected[len(o.Rejected)-1]
	return fmt.Sprintf("%s cannot run on %d to %d %s: %d layouts rejected, the largest, %s: %s",
		o.Problem.Model.Name, o.Problem.MinGPUs, o.Problem.MaxGPUs, o.Problem.GPU.Name, len(o.Rejected), last.Layout, last.Reason)
}
