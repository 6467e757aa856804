// Package original decides as the planner of January 2026 does, mistakes included: it
// is what others are compared with, and what who wants it back gets. It knows what
// that planner knows, averages over an interval, and forgets what it forgets.
package original

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/interp"

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
		token := c.Token
		if m.DecodeCorrection > 0 {
			token /= m.DecodeCorrection
		}
		best := p.BestThroughput(token, d.Input+d.Output/2)
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
		p = min(max(c.MinEndpoint, prefill*c.Budget/sum), (c.Budget-c.MinEndpoint*c.DecodeGPUs)/c.PrefillGPUs)
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

// cells is how many places of each axis its decode table has.
const cells = 100

// Profile is a profile as it interpolates it: cubic along prompts, and a table of cache
// usage by context in decode.
type Profile struct {
	first, last  float64 // prompts
	ttft, prompt interp.NotAKnotCubic
	token        [cells][cells]float64 // by usage, then context
	throughput   [cells][cells]float64
	longest      float64
	cache        float64
}

// NewProfile interpolates a profile. Prompts need four lengths for a cubic.
func NewProfile(p capacity.Profile) (*Profile, error) {
	out := &Profile{cache: p.CacheTokens}
	if err := out.fitPrompts(p); err != nil {
		return nil, fmt.Errorf("interpolate prefill data: %w", err)
	}
	token, longest, err := newScatter(p.Usage, p.Context, p.Token)
	if err != nil {
		return nil, fmt.Errorf("interpolate decode data: %w", err)
	}
	throughput, _, err := newScatter(p.Usage, p.Context, p.OutputThroughput)
	if err != nil {
		return nil, fmt.Errorf("interpolate decode data: %w", err)
	}
	out.longest = longest
	for i := range cells {
		usage := float64(i) / (cells - 1)
		for j := range cells {
			context := float64(j) / (cells - 1) * longest
			out.token[i][j], out.throughput[i][j] = token.at(usage, context), throughput.at(usage, context)
		}
	}
	return out, nil
}

// fitPrompts interpolates between lengths of prompts. Nobody says that they are in order and
// that each is there once, which a fit takes for granted.
func (p *Profile) fitPrompts(from capacity.Profile) error {
	type prompt struct{ input, ttft, throughput float64 }
	all := make([]prompt, 0, len(from.Input))
	for i, input := range from.Input {
		one := prompt{input, from.FirstToken[i], from.InputThroughput[i]}
		if sum := one.input + one.ttft + one.throughput; math.IsNaN(sum) || math.IsInf(sum, 0) {
			return fmt.Errorf("length %v: no number", input)
		}
		all = append(all, one)
	}
	slices.SortStableFunc(all, func(a, b prompt) int { return cmp.Compare(a.input, b.input) })
	all = slices.CompactFunc(all, func(a, b prompt) bool { return a.input == b.input })
	if len(all) < 4 {
		return fmt.Errorf("%d lengths, a cubic needs 4", len(all))
	}
	var x, ttft, throughput []float64
	for _, one := range all {
		x, ttft, throughput = append(x, one.input), append(ttft, one.ttft), append(throughput, one.throughput)
	}
	p.first, p.last = x[0], x[len(x)-1]
	return errors.Join(p.ttft.Fit(x, ttft), p.prompt.Fit(x, throughput))
}

func (p *Profile) prompts(input float64) float64 { return min(max(input, p.first), p.last) }

// FirstToken is in milliseconds.
func (p *Profile) FirstToken(input float64) float64 { return p.ttft.Predict(p.prompts(input)) }

// PrefillThroughput is in tokens per second and GPU.
func (p *Profile) PrefillThroughput(input float64) float64 {
	return p.prompt.Predict(p.prompts(input))
}

// Token is in milliseconds, of so many requests of a length.
func (p *Profile) Token(concurrency, context float64) float64 {
	return p.token[cell(concurrency*context/p.cache)][p.column(context)]
}

// BestThroughput is that of the fullest cell of a context whose time is within the
// target, in tokens per second and GPU; of the emptiest where none is.
func (p *Profile) BestThroughput(token, context float64) float64 {
	j := p.column(context)
	for i := cells - 1; i > 0; i-- {
		if p.token[i][j] <= token {
			return p.throughput[i][j]
		}
	}
	return p.throughput[0][j]
}

func (p *Profile) column(context float64) int { return cell(context / p.longest) }

// cell is the nearest place of a share.
func cell(share float64) int {
	if !(share > 0) {
		return 0
	}
	return int(min(math.Round(share*(cells-1)), cells-1))
}
