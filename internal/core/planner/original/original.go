// Package original decides as the planner of January 2026 does, mistakes included: it
// is what others are compared with, and what who wants it back gets. It knows what
// that planner knows, averages over an interval, and forgets what it forgets.
package original

import (
	"math"
	"slices"

	"github.com/dynamo-operator/dynamo-operator/internal/core/planner/capacity"
)

// Predictor is how the next interval is foreseen.
type Predictor string

// The predictors that are exact. ARIMA and Prophet are fits of libraries whose outcome
// changes with their version.
const (
	Constant Predictor = "constant"
	Kalman   Predictor = "kalman"
)

// Config are the planner's arguments. Times are milliseconds but for Interval.
type Config struct {
	Interval          float64 // seconds
	FirstToken, Token float64
	// Budget is the most GPUs; below 0 there is none.
	Budget      int
	MinEndpoint int
	PrefillGPUs int
	DecodeGPUs  int
	Predictor   Predictor
	// Log1p predicts the logarithms of values.
	Log1p                    bool
	QLevel, QTrend, RMeasure float64
	NoCorrection             bool
	// WithoutPrefill and WithoutDecode are its modes decode and prefill.
	WithoutPrefill, WithoutDecode bool
}

// Default are the arguments' defaults, but for the predictor.
func Default() Config {
	return Config{
		Interval: 180, FirstToken: 500, Token: 50, Budget: 8, MinEndpoint: 1, PrefillGPUs: 1, DecodeGPUs: 1,
		Predictor: Constant, QLevel: 1, QTrend: 0.1, RMeasure: 10,
	}
}

// Observation is what its queries say about an interval: means of requests that ended,
// and their number. A mean of no request is NaN.
type Observation struct {
	Requests          float64
	Input, Output     float64 // tokens
	FirstToken, Token float64 // ms
	Duration          float64 // s
	// Prefill and Decode are the workers that discovery knows.
	Prefill, Decode int
	// GraphReady says whether the graph is; what is decided about another is dropped.
	GraphReady bool
}

// Memory is what it keeps between intervals.
type Memory struct {
	requests, input, output series
	PrefillCorrection       float64
	DecodeCorrection        float64
}

// Outcome is why there is a decision or none.
type Outcome string

// The outcomes.
const (
	Decided Outcome = "Decided"
	// NoTraffic is what an interval without a request is to it: nothing to look at.
	NoTraffic Outcome = "NoTraffic"
	// NotReady drops a decision.
	NotReady Outcome = "NotReady"
)

// Decision is what it would write.
type Decision struct {
	Prefill, Decode         int
	Outcome                 Outcome
	Requests, Input, Output float64 // that were foreseen
}

// Decide is one interval.
func Decide(c Config, p *Profile, o Observation, m Memory) (Decision, Memory) {
	if slices.ContainsFunc([]float64{o.Requests, o.Input, o.Output, o.FirstToken, o.Token, o.Duration}, math.IsNaN) {
		return Decision{Outcome: NoTraffic}, m
	}
	m.requests, m.input, m.output = m.requests.add(c, o.Requests), m.input.add(c, o.Input), m.output.add(c, o.Output)
	m.PrefillCorrection, m.DecodeCorrection = 1, 1
	if !c.NoCorrection && (o.Prefill > 0 || c.WithoutPrefill) && (o.Decode > 0 || c.WithoutDecode) {
		if o.Prefill > 0 {
			m.PrefillCorrection = o.FirstToken / p.FirstToken(o.Input)
		}
		if o.Decode > 0 {
			concurrency := o.Requests * o.Duration / (c.Interval * float64(o.Decode))
			m.DecodeCorrection = o.Token / p.Token(concurrency, o.Input+o.Output/2)
		}
	}
	d := Decision{Outcome: Decided}
	d.Requests, m.requests = m.requests.predict(c)
	d.Input, m.input = m.input.predict(c)
	d.Output, m.output = m.output.predict(c)
	if !c.WithoutPrefill {
		load := d.Requests * d.Input / c.Interval * min(1, m.PrefillCorrection)
		d.Prefill = up(load/p.PrefillThroughput(d.Input)/float64(c.PrefillGPUs), c.MinEndpoint)
	}
	if !c.WithoutDecode {
		best := p.BestThroughput(c.Token/m.DecodeCorrection, d.Input+d.Output/2)
		d.Decode = up(d.Requests*d.Output/c.Interval/best/float64(c.DecodeGPUs), c.MinEndpoint)
	}
	d.Prefill, d.Decode = c.fit(d.Prefill, d.Decode)
	if !o.GraphReady {
		d.Outcome = NotReady
	}
	return d, m
}

// up rounds to replicas. A divisor that is not positive, which its interpolation can
// make, gives the fewest.
func up(n float64, least int) int {
	if math.IsNaN(n) || math.IsInf(n, 0) {
		return least
	}
	return max(least, int(min(math.Ceil(n), capacity.Most)))
}

// fit is how it divides a budget: prefill in proportion and rounded down, decode what
// is left, and nothing at all of a budget below the fewest replicas.
func (c Config) fit(prefill, decode int) (p, d int) {
	switch sum := prefill*c.PrefillGPUs + decode*c.DecodeGPUs; {
	case c.Budget < 0 || sum <= c.Budget:
		return prefill, decode
	case c.WithoutDecode:
		return alone(c.MinEndpoint, c.Budget, c.PrefillGPUs), 0
	case c.WithoutPrefill:
		return 0, alone(c.MinEndpoint, c.Budget, c.DecodeGPUs)
	case c.MinEndpoint*(c.PrefillGPUs+c.DecodeGPUs) > c.Budget:
		return 0, 0
	default:
		share := float64(c.Budget) / float64(sum) // rounded, and so is its product
		p = min(max(c.MinEndpoint, int(float64(prefill)*share)), (c.Budget-c.MinEndpoint*c.DecodeGPUs)/c.PrefillGPUs)
		return p, max(c.MinEndpoint, (c.Budget-p*c.PrefillGPUs)/c.DecodeGPUs)
	}
}

func alone(least, budget, each int) int {
	if least*each > budget {
		return 0
	}
	return max(least, budget/each)
}

// series is what one value was.
type series struct {
	count int // of values, zeros before the first traffic not counted
	last  float64
	// A level, its trend and their covariance, once begun.
	begun, predicted bool
	level, trend     float64
	p                [2][2]float64
}

// fewPoints is how many values a predictor wants before it speaks.
const fewPoints = 5

func (s series) add(c Config, v float64) series {
	if s.count == 0 && v == 0 {
		return s
	}
	if c.Log1p {
		v = math.Log1p(v)
	}
	s.count, s.last = s.count+1, v
	if c.Predictor != Kalman {
		return s
	}
	if !s.begun {
		s.begun, s.level, s.p = true, v, [2][2]float64{{1000, 0}, {0, 1000}}
		return s
	}
	if !s.predicted {
		s = s.ahead(c)
	}
	s.predicted = false
	total := s.p[0][0] + c.RMeasure
	g0, g1 := s.p[0][0]/total, s.p[1][0]/total
	miss := v - s.level
	s.level += g0 * miss
	s.trend += g1 * miss
	p := s.p
	s.p = [2][2]float64{
		{(1 - g0) * p[0][0], (1 - g0) * p[0][1]},
		{p[1][0] - g1*p[0][0], p[1][1] - g1*p[0][1]},
	}
	return s
}

// ahead moves the filter by an interval.
func (s series) ahead(c Config) series {
	p := s.p
	s.level += s.trend
	s.p = [2][2]float64{
		{p[0][0] + p[1][0] + p[0][1] + p[1][1] + c.QLevel, p[0][1] + p[1][1]},
		{p[1][0] + p[1][1], p[1][1] + c.QTrend},
	}
	return s
}

func (s series) predict(c Config) (float64, series) {
	v := s.last
	if c.Predictor == Kalman && s.count > 0 {
		s = s.ahead(c)
		s.predicted = true
		if s.count >= fewPoints {
			v = s.level
		}
	}
	if c.Log1p {
		v = math.Expm1(v)
	}
	return max(0, v), s
}
