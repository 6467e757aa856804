package search

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestABandIsReadAtAConfidence(t *testing.T) {
	b := Band{Value: 100, Low: 80, High: 125}
	for name, c := range map[string]struct{ confidence, want float64 }{
		"without one, the value":             {0, 100},
		"one half is the value":              {0.5, 100},
		"nineteen of twenty, the upper edge": {0.95, 125},
		"less than that, less":               {0.75, 109.6},
	} {
		t.Run(name, func(t *testing.T) {
			if got := b.at(c.confidence); math.Abs(got-c.want) > 0.1 {
				t.Errorf("%.2f, want %.2f", got, c.want)
			}
		})
	}
	if got := (Band{Value: 100}).at(0.99); got != 100 {
		t.Errorf("a value without a band is %.2f", got)
	}
}

func TestWhoAsksForSafetyIsToldTimesAtTheEdgeAndPaysForIt(t *testing.T) {
	last := math.Inf(1)
	for _, confidence := range []float64{0, 0.8, 0.9, 0.95} {
		p := problem(t, "Qwen/Qwen3-32B", "h200_sxm", func(p *Problem) { p.Goal.Confidence = confidence })
		o, err := Solve(p)
		if err != nil {
			t.Fatal(err)
		}
		best := o.Best()
		if !best.Met() || best.TTFT.at(confidence) > p.Goal.TTFT || best.ITL.at(confidence) > p.Goal.ITL {
			t.Errorf("confidence %g: %s has %.0f and %.1f ms at the edge", confidence, best, best.TTFT.at(confidence), best.ITL.at(confidence))
		}
		if best.TokensPerGPU > last*1.02 { // steps of the ranking
			t.Errorf("confidence %g costs nothing: %.0f tokens a second and GPU after %.0f", confidence, best.TokensPerGPU, last)
		}
		last = best.TokensPerGPU
	}
}

func TestARankingIsAsSureAsItsBandsAreNarrow(t *testing.T) {
	p := problem(t, "Qwen/Qwen3-32B", "h200_sxm", nil)
	candidate := func(tokens, width float64) Candidate {
		around := func(v float64) Band { return Band{v, v / width, v * width} }
		return Candidate{TTFT: around(500), ITL: around(10), TokensPerGPU: tokens, Rate: 1, Measured: true}
	}
	ranked := func(width float64, tokens ...float64) Certainty {
		o := &Outcome{Problem: p}
		for _, n := range tokens {
			o.Candidates = append(o.Candidates, candidate(n, width))
		}
		return o.Certainty()
	}
	if diff := cmp.Diff(Certainty{First: 1, Podium: 1, Candidates: 1}, ranked(2, 1000)); diff != "" {
		t.Errorf("the only candidate (-want +got):\n%s", diff)
	}
	if got := ranked(1.01, 1000, 500, 400, 300, 200); got.First != 1 || got.Podium != 1 {
		t.Errorf("twice as good, and known well: %+v", got)
	}
	near := ranked(1.3, 1000, 990, 980, 970, 960, 950)
	if near.First > 0.5 || near.Podium <= near.First || near.Podium > 0.9 {
		t.Errorf("all about as good, and hardly known: %+v", near)
	}
	if wide := ranked(1.8, 1000, 700, 600, 500); wide.First >= ranked(1.2, 1000, 700, 600, 500).First {
		t.Errorf("wider bands are as sure: %+v", wide)
	}
	if diff := cmp.Diff(near, ranked(1.3, 1000, 990, 980, 970, 960, 950)); diff != "" {
		t.Errorf("asked again (-first +second):\n%s", diff)
	}
}
