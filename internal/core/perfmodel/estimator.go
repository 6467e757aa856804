package perfmodel

import (
	"math"
	"slices"
	"time"
)

// Estimate is a time and the band in which nine of ten measurements of the kind
// were found when the constants were fitted.
type Estimate struct {
	Value, Low, High time.Duration
}

func estimate(seconds, spread float64) Estimate {
	d := func(s float64) time.Duration { return time.Duration(math.Round(s * float64(time.Second))) }
	return Estimate{Value: d(seconds), Low: d(seconds / (1 + spread)), High: d(seconds * (1 + spread))}
}

func (e Estimate) plus(o Estimate) Estimate {
	return Estimate{Value: e.Value + o.Value, Low: e.Low + o.Low, High: e.High + o.High}
}

// Estimator answers questions about one setup.
type Estimator struct {
	c      cost
	memory Memory
}

// Estimator checks a setup and binds the constants of its engine.
func (c Catalog) Estimator(s Setup) (*Estimator, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	k, err := c.constants(s.Engine, s.Model.Mixture())
	if err != nil {
		return nil, err
	}
	s = s.filled()
	e := &Estimator{c: bind(s, c.measured(s, s.Pool).Apply(k), c.Kernels)}
	e.memory = e.c.memory()
	return e, nil
}

// With replaces the constants; for fitting them.
func (e *Estimator) With(k Constants) *Estimator {
	return &Estimator{c: bind(e.c.Setup, k, e.c.kernels), memory: e.memory}
}

// Setup is the setup with its defaults filled in.
func (e *Estimator) Setup() Setup { return e.c.Setup }

// Constants are those of the setup's engine.
func (e *Estimator) Constants() Constants { return e.c.k }

func (e *Estimator) spread() ErrorSpread {
	if known := e.c.k.GPUs; len(known) > 0 && !slices.Contains(known, e.c.GPU.Name) {
		return e.c.k.Error.widened()
	}
	return e.c.k.Error
}

// firstSpread is the band of first tokens: how a load comes decides more of it
// than the engine does, and closed loops that are spread are what was measured.
func (e *Estimator) firstSpread(a Arrival) float64 {
	s := e.spread()
	if a == Staggered || a == "" {
		return s.FirstP90
	}
	return max(s.FirstP90, s.UnknownP90)
}

// Prefill is the time to compute batch prompts of tokens tokens together, of
// each of which the first cached are in the cache already. It contains no
// queueing and not the request's own overhead; see FirstToken.
func (e *Estimator) Prefill(tokens, batch, cached int) Estimate {
	fresh := max(0, tokens-cached)
	return estimate(e.c.prefill(float64(max(1, batch)), float64(fresh), float64(tokens-fresh)), e.spread().IdleP90)
}

// FirstToken is the time to the first token of a request that finds the engine
// idle.
func (e *Estimator) FirstToken(tokens, cached int) Estimate {
	fresh := max(1, tokens-cached)
	return estimate(e.c.k.first()+e.c.among(1).prefill(1, float64(fresh), float64(tokens-fresh)), e.spread().IdleP90)
}

// Overhead is the part of FirstToken that no GPU is busy with: receiving a
// request, making tokens of it, sending the first one.
func (e *Estimator) Overhead() time.Duration {
	return time.Duration(math.Round(e.c.k.first() * float64(time.Second)))
}

// Decode is the time of one step that gives each of batch sequences of an
// attention rank a token, at a mean length of context tokens.
func (e *Estimator) Decode(batch int, context float64) Estimate {
	return estimate(e.c.decode(float64(max(1, batch)), context), e.spread().TokenP90)
}

// Layer is the time of one layer for so many tokens without attention to others,
// in seconds: what can be held against kernels.
func (e *Estimator) Layer(tokens float64) float64 {
	return e.c.layers(tokens, tokens) / float64(e.c.Model.Layers)
}

// Transfer is the time until a prompt that a prefill engine has computed is this
// decode engine's: moving its cache over the link between their nodes, and all that
// changing engines takes beside.
func (e *Estimator) Transfer(tokens int) Estimate {
	return estimate(e.c.k.handover()+e.transfer(tokens), 0.5)
}

func (e *Estimator) transfer(tokens int) float64 {
	const share = 0.7 // of the fabric's bandwidth, with many small blocks
	return float64(tokens)*e.memory.CachePerToken/(e.c.GPU.Fabric*1e9*share) + 1e-3
}
