package simulation

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/dynamo-operator/dynamo-operator/internal/core/planner/decision"
	"github.com/dynamo-operator/dynamo-operator/internal/core/planner/trace"
)

func TestAdvice(t *testing.T) {
	// Every two minutes 20 s of nine times as much.
	pulses := func(at float64) float64 {
		if int(at)%120 < 20 {
			return 36
		}
		return 4
	}
	for _, x := range []struct {
		rule    string
		shape   trace.Shape
		length  float64
		startup float64
		policy  Name
		reached bool
		bursts  time.Duration // at most; 0 is none
	}{
		{"a rate that stays needs no policy", trace.Poisson(20), 900, 30, PolicyFixed, true, 0},
		{"what changes over many starts is followed", trace.Sine(2, 30, 1800), 1800, 15, PolicyNative, true, 20 * time.Minute},
		{"bursts shorter than a start are waited for by a fixed size", pulses, 1200, 120, PolicyFixed, true, 30 * time.Second},
	} {
		t.Run(x.rule, func(t *testing.T) {
			s := setup(trace.Generate(x.shape, x.length, 3000, 300, rand.New(rand.NewPCG(1, 2))))
			s.Startup = x.startup
			a, err := Advise(s, 0.95, decision.Vector{1, 1})
			if err != nil {
				t.Fatal(err)
			}
			if a.Take.Policy != x.policy || a.Reached != x.reached || a.Bursts.Median > x.bursts || (a.Bursts.Count > 0) != (x.bursts > 0) {
				t.Errorf("take %s (%.3f with %.2f GPU-hours), reached %v; %+v", a.Take.Called(), a.Take.Met, a.Take.GPUHours, a.Reached, a.Bursts)
			}
			for _, c := range append([]Candidate{a.Take}, a.Others...) {
				if c.Violations > 0 && c.Policy != PolicyHPA {
					t.Errorf("%s is over the budget %d times", c.Called(), c.Violations)
				}
				if c.Met >= 0.95 && c.GPUHours < a.Take.GPUHours {
					t.Errorf("%s serves %.3f with %.2f GPU-hours, less than %s", c.Called(), c.Met, c.GPUHours, a.Take.Called())
				}
			}
			if a.Bound.Policy != PolicyClairvoyant {
				t.Errorf("the bound is %s", a.Bound.Policy)
			}
		})
	}
}

func TestWhereNothingServesEnoughTheMostIsTaken(t *testing.T) {
	s := setup(trace.Generate(trace.Poisson(60), 300, 3000, 300, rand.New(rand.NewPCG(1, 2))))
	s.Budget = 3
	s.Begin = Beginning(s)
	a, err := Advise(s, 0.99, decision.Vector{1, 1})
	if err != nil {
		t.Fatal(err)
	}
	if a.Reached {
		t.Errorf("%s serves %.3f of what three GPUs cannot", a.Take.Called(), a.Take.Met)
	}
	for _, c := range a.Others {
		if c.Met > a.Take.Met+near {
			t.Errorf("%s serves %.3f, %s was taken with %.3f", c.Called(), c.Met, a.Take.Called(), a.Take.Met)
		}
	}
}
