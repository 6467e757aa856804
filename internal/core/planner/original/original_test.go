package original

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dynamo-operator/dynamo-operator/internal/core/planner/capacity"
)

// profile is one whose every value can be told by hand: a prompt's token takes 0.02 ms, a step
// 4 ms and 10 more for a full cache, and throughput grows with the cache as straight. A surface
// over a plane is that plane, however it is divided.
func profile(t *testing.T) *Profile {
	t.Helper()
	p := capacity.Profile{CacheTokens: 100000}
	for input := 1000.0; input <= 8000; input += 1000 {
		p.Input, p.FirstToken, p.InputThroughput = append(p.Input, input), append(p.FirstToken, input/50), append(p.InputThroughput, 50000)
		for usage := 0.0; usage <= 1; usage += 0.125 {
			p.Usage, p.Context = append(p.Usage, usage), append(p.Context, input)
			p.Token, p.OutputThroughput = append(p.Token, 4+10*usage), append(p.OutputThroughput, 900+3400*usage)
		}
	}
	out, err := NewProfile(p)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestPromptsOfAProfileNeedNoOrder: they are as somebody measured them.
func TestPromptsOfAProfileNeedNoOrder(t *testing.T) {
	decode := capacity.Profile{CacheTokens: 1000, Usage: []float64{0, 1, 0}, Context: []float64{10, 10, 20}, Token: []float64{4, 8, 4}, OutputThroughput: []float64{1, 2, 1}}
	for _, x := range []struct {
		rule          string
		input, first  []float64
		refused       bool
		below, beyond float64 // the shortest and the longest prompt's time
	}{
		{"in order", []float64{1000, 2000, 3000, 4000}, []float64{20, 40, 60, 80}, false, 20, 80},
		{"in another", []float64{4000, 1000, 3000, 2000}, []float64{80, 20, 60, 40}, false, 20, 80},
		{"one twice", []float64{1000, 2000, 2000, 3000, 4000}, []float64{20, 40, 41, 60, 80}, false, 20, 80},
		{"too few that differ", []float64{1000, 2000, 2000, 3000}, []float64{20, 40, 41, 60}, true, 0, 0},
		{"a length that is no number", []float64{1000, math.NaN(), 2000, 3000, 4000}, []float64{20, 40, 60, 80, 90}, true, 0, 0},
		{"a time that is no number", []float64{1000, 2000, 3000, 4000}, []float64{20, math.Inf(1), 60, 80}, true, 0, 0},
	} {
		t.Run(x.rule, func(t *testing.T) {
			p := decode
			p.Input, p.FirstToken, p.InputThroughput = x.input, x.first, make([]float64, len(x.input))
			got, err := NewProfile(p)
			if (err != nil) != x.refused {
				t.Fatalf("refused: %v", err)
			}
			if err == nil && (math.Abs(got.FirstToken(1)-x.below) > 1e-9 || math.Abs(got.FirstToken(1e6)-x.beyond) > 1e-9) {
				t.Errorf("%v and %v ms, want %v and %v", got.FirstToken(1), got.FirstToken(1e6), x.below, x.beyond)
			}
		})
	}
}

// TestADecodeProfileNeedsTriangles: the original ends on one without, too.
func TestADecodeProfileNeedsTriangles(t *testing.T) {
	prompts := capacity.Profile{CacheTokens: 1000, Input: []float64{1, 2, 3, 4}, FirstToken: make([]float64, 4), InputThroughput: make([]float64, 4)}
	for _, x := range []struct {
		rule                  string
		usage, context, token []float64
		refused               bool
	}{
		{"three places", []float64{0, 1, 0}, []float64{10, 10, 20}, []float64{4, 8, 4}, false},
		{"one of them twice", []float64{0, 1, 0, 1}, []float64{10, 10, 20, 10}, []float64{4, 8, 4, 9}, false},
		{"two", []float64{0, 1}, []float64{10, 20}, []float64{4, 8}, true},
		{"one context", []float64{0, 0.5, 1}, []float64{10, 10, 10}, []float64{4, 6, 8}, true},
		{"a context of nothing", []float64{0, 1, 0}, []float64{0, 10, 20}, []float64{4, 8, 4}, true},
		{"a time that is no number", []float64{0, 1, 0}, []float64{10, 10, 20}, []float64{4, 8, math.NaN()}, true},
		{"a usage that is no number", []float64{0, math.Inf(1), 0}, []float64{10, 10, 20}, []float64{4, 8, 4}, true},
	} {
		t.Run(x.rule, func(t *testing.T) {
			p := prompts
			p.Usage, p.Context, p.Token, p.OutputThroughput = x.usage, x.context, x.token, make([]float64, len(x.usage))
			got, err := NewProfile(p)
			if (err != nil) != x.refused {
				t.Fatalf("refused: %v", err)
			}
			if err == nil && math.Abs(got.token[0][cells-1]-4) > 1e-6 {
				t.Errorf("%v ms where 4 were measured", got.token[0][cells-1])
			}
		})
	}
}

func TestDecide(t *testing.T) {
	// 100 requests a second of 2000 and 400 tokens that got what the profile says.
	seen := Observation{Requests: 18000, Input: 2000, Output: 400, FirstToken: 40, Token: 9.03, Duration: 1, Prefill: 1, Decode: 9, GraphReady: true}
	for _, x := range []struct {
		rule    string
		change  func(*Config, *Observation)
		p, d    int
		outcome Outcome
	}{
		{"work over throughput, rounded up", nil, 4, 24, Decided},
		{"a slow first token asks for nothing more", func(_ *Config, o *Observation) { o.FirstToken = 4000 }, 4, 24, Decided},
		{"a fast first token asks for less", func(_ *Config, o *Observation) { o.FirstToken = 20 }, 2, 24, Decided},
		{"without correction it is the profile alone", func(c *Config, o *Observation) { c.NoCorrection, o.FirstToken = true, 20 }, 4, 16, Decided},
		{"tokens that nobody timed are in time in the fullest cell", func(_ *Config, o *Observation) { o.Token = 0 }, 4, 10, Decided},
		{"GPUs of an engine divide", func(c *Config, _ *Observation) { c.PrefillGPUs = 4 }, 1, 24, Decided},
		{"never below the minimum", func(c *Config, o *Observation) { c.MinEndpoint, o.Requests = 3, 1 }, 3, 3, Decided},
		{"an interval without a request is skipped", func(_ *Config, o *Observation) { o.Requests, o.Input = 0, math.NaN() }, 0, 0, NoTraffic},
		{"what is decided about a graph that is not ready is dropped", func(_ *Config, o *Observation) { o.GraphReady = false }, 4, 24, NotReady},
	} {
		t.Run(x.rule, func(t *testing.T) {
			c, o := Default(), seen
			c.Budget, c.Token = -1, 9
			if x.change != nil {
				x.change(&c, &o)
			}
			d, _ := Decide(c, profile(t), o, Memory{})
			if d.Outcome != x.outcome || x.outcome != NoTraffic && (d.Prefill != x.p || d.Decode != x.d) {
				t.Errorf("got %+v, want %d and %d", d, x.p, x.d)
			}
		})
	}
}

func TestBudget(t *testing.T) {
	type vector struct{ P, D int }
	for _, x := range []struct {
		rule   string
		config Config
		asked  vector
		fits   vector
	}{
		{"what fits stays", Config{Budget: 8, MinEndpoint: 1, PrefillGPUs: 1, DecodeGPUs: 1}, vector{4, 4}, vector{4, 4}},
		{"below 0 there is none", Config{Budget: -1, MinEndpoint: 1, PrefillGPUs: 1, DecodeGPUs: 1}, vector{40, 40}, vector{40, 40}},
		{"decode gets what prefill's rounding leaves, and grows", Config{Budget: 20, MinEndpoint: 1, PrefillGPUs: 8, DecodeGPUs: 1}, vector{10, 1}, vector{2, 4}},
		{"below the minimum both get nothing", Config{Budget: 3, MinEndpoint: 2, PrefillGPUs: 1, DecodeGPUs: 1}, vector{4, 4}, vector{0, 0}},
		{"a share that is rounded below a whole number loses a replica", Config{Budget: 4, MinEndpoint: 1, PrefillGPUs: 1, DecodeGPUs: 1}, vector{49, 49}, vector{1, 3}},
		{"decode keeps its minimum", Config{Budget: 4, MinEndpoint: 1, PrefillGPUs: 1, DecodeGPUs: 2}, vector{100, 1}, vector{2, 1}},
	} {
		t.Run(x.rule, func(t *testing.T) {
			var got vector
			got.P, got.D = x.config.fit(x.asked.P, x.asked.D)
			if diff := cmp.Diff(x.fits, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAPredictorWithFewPointsSaysTheLastValue(t *testing.T) {
	c := Default()
	c.Predictor = Kalman
	var s series
	var said []float64
	for _, v := range []float64{0, 0, 10, 20, 30, 40, 50, 60} {
		s = s.add(c, v)
		var p float64
		p, s = s.predict(c)
		said = append(said, math.Round(p))
	}
	if diff := cmp.Diff([]float64{0, 0, 10, 20, 30, 40, 60, 70}, said); diff != "" {
		t.Error(diff)
	}
}
