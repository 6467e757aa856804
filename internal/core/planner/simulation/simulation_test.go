package simulation

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/dynamo-operator/dynamo-operator/internal/core/planner/capacity"
	"github.com/dynamo-operator/dynamo-operator/internal/core/planner/decision"
	"github.com/dynamo-operator/dynamo-operator/internal/core/planner/trace"
)

func setup(t trace.Trace) Setup {
	s := Setup{Trace: t, Model: capacity.H200(), Target: capacity.Target{FirstToken: 0.2, Token: 0.01}, Startup: 30, Budget: 16, GPUs: decision.Vector{1, 1}}
	s.Begin = Beginning(s)
	return s
}

func TestARequestAloneTakesWhatTheModelSays(t *testing.T) {
	s := setup(trace.Trace{{At: 0, Input: 3000, Output: 300}, {At: 50, Input: 3000, Output: 300}})
	s.Begin = decision.Vector{1, 1}
	r := Run(s, Fixed{})
	first, token := s.Model.Prefill(3000), s.Model.Token(1, 3150)
	if r.Met != 1 || r.First95 < first || r.First95 > 1.2*first || r.Token95 < token || r.Token95 > 1.2*token {
		t.Errorf("%.4f s and %.5f s, the model says %.4f and %.5f", r.First95, r.Token95, first, token)
	}
	if want := 2 * (50 + first + 300*token) / 3600; math.Abs(r.GPUHours/want-1) > 0.02 {
		t.Errorf("%.4f GPU-hours, want %.4f", r.GPUHours, want)
	}
}

func TestEveryRequestEndsUnderEveryPolicy(t *testing.T) {
	chance := rand.New(rand.NewPCG(1, 2))
	s := setup(trace.Generate(trace.Step(2, 40, 120, 240), 400, 3000, 300, chance))
	for _, name := range Names() {
		p, err := Play(s, name, nil)
		if err != nil {
			t.Fatal(err)
		}
		ended, began := 0, 0
		for _, slot := range p.Slots {
			ended += slot.Ended
			began += slot.Began
		}
		if ended != len(s.Trace) || began != ended {
			t.Errorf("%s: %d requests, %d began and %d ended", name, len(s.Trace), began, ended)
		}
		if name == PolicyNative && p.Violations > 0 {
			t.Errorf("native is over its budget %d times", p.Violations)
		}
	}
}

func TestTheClairvoyantServesMoreThanTheOriginal(t *testing.T) {
	s := setup(trace.Generate(trace.Sine(5, 45, 600), 900, 3000, 300, rand.New(rand.NewPCG(3, 4))))
	known := BestClairvoyant(s)
	old, err := Play(s, PolicyOriginal, nil)
	if err != nil {
		t.Fatal(err)
	}
	if known.Met < 0.97 || old.Met > known.Met {
		t.Errorf("clairvoyant %.3f, original %.3f", known.Met, old.Met)
	}
}

// told keeps how long starts are said to take.
type told struct {
	Fixed
	startup time.Duration
}

func (p *told) Interval() int { return Slot }

func (p *told) Decide(v *View) (decision.Vector, bool) {
	p.startup = v.Snapshot().Startup
	return p.Fixed.Decide(v)
}

func TestAPolicySeesThatAStartIsOverWhenItLooks(t *testing.T) {
	for took, want := range map[float64]time.Duration{3: 5 * time.Second, 10.2: 15 * time.Second, 15: 15 * time.Second, 30: 30 * time.Second, 120: 120 * time.Second} {
		s := setup(trace.Generate(trace.Poisson(5), 20, 3000, 300, rand.New(rand.NewPCG(1, 2))))
		s.Startup = took
		p := &told{}
		Run(s, p)
		if p.startup != want {
			t.Errorf("starts of %v s are said to take %s, want %s", took, p.startup, want)
		}
	}
}

// TestWhoKnowsTheFutureTakesLessThanAFixedSize: what none can serve, since no start is so fast,
// is no reason to add GPUs that serve nobody.
func TestWhoKnowsTheFutureTakesLessThanAFixedSize(t *testing.T) {
	s := setup(trace.Generate(trace.Sine(5, 45, 600), 1800, 3000, 300, rand.New(rand.NewPCG(7, 7))))
	s.Startup = 120
	known := BestClairvoyant(s)
	fixed, _ := BestFixed(s)
	if known.Met < enough || known.GPUHours > 0.9*fixed.GPUHours {
		t.Errorf("%s: %.3f with %.2f GPU-hours, a fixed size has %.3f with %.2f", known.Note, known.Met, known.GPUHours, fixed.Met, fixed.GPUHours)
	}
}

// TestNativeFollowsWhatComesAgain: several rounds of the same, with starts of a twentieth and a
// fifth of a round, and requests that come by another chance each time.
func TestNativeFollowsWhatComesAgain(t *testing.T) {
	for _, x := range []struct{ startup, share, hours float64 }{{30, 0.97, 1.25}, {120, 0.95, 1.45}} {
		for seed := range uint64(3) {
			s := setup(trace.Generate(trace.Sine(5, 45, 600), 1800, 3000, 300, rand.New(rand.NewPCG(seed+11, 7))))
			s.Startup = x.startup
			r, bound := Run(s, NewNative(s, nil)), BestClairvoyant(s)
			if r.Met < x.share || r.GPUHours > x.hours*bound.GPUHours || r.Changes > 30 || r.Violations > 0 {
				t.Errorf("starts of %v s, seed %d: %.3f with %.2f GPU-hours, the clairvoyant takes %.2f; %d changes in half an hour", x.startup, seed, r.Met, r.GPUHours, bound.GPUHours, r.Changes)
			}
		}
	}
}

// TestWhenAPlannerLooksMattersLittle: a planner that looks a moment later counts a request or two
// at another look, which is not to decide what its graph costs.
func TestWhenAPlannerLooksMattersLittle(t *testing.T) {
	const seeds, moments = 8, 20
	pairs, apart := 0, 0
	for seed := range uint64(seeds) {
		wave := trace.Sine(0.4, 4, 300)
		requests := trace.Generate(wave, 900, 3000, 300, rand.New(rand.NewPCG(7, seed)))
		var hours []float64
		for moment := range moments {
			s := setup(requests.Stretch(1))
			for i := range s.Trace {
				s.Trace[i].At += Slot * float64(moment) / moments
			}
			s.Model, s.Startup = slowed{s.Model, 12}, 10
			s.Target = capacity.Target{FirstToken: 12 * s.Target.FirstToken, Token: 12 * s.Target.Token}
			s.Begin = decision.Vector{1, 1}
			hours = append(hours, Run(s, NewNative(s, nil)).GPUHours)
		}
		for i, a := range hours {
			for _, b := range hours[:i] {
				pairs++
				if math.Abs(a/b-1) > 0.05 {
					apart++
				}
			}
		}
	}
	if apart > pairs/10 {
		t.Errorf("of %d pairs of moments %d take GPU-hours more than 5 %% apart for the same requests", pairs, apart)
	}
}

// slowed is a model whose replicas take a multiple of the time.
type slowed struct {
	capacity.Model
	by float64
}

func (s slowed) Prefill(tokens float64) float64 { return s.by * s.Model.Prefill(tokens) }
func (s slowed) Token(sequences, context float64) float64 {
	return s.by * s.Model.Token(sequences, context)
}
