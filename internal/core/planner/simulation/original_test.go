package simulation

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/dynamo-operator/dynamo-operator/internal/core/planner/decision"
	"github.com/dynamo-operator/dynamo-operator/internal/core/planner/original"
	"github.com/dynamo-operator/dynamo-operator/internal/core/planner/trace"
)

// TestASweepIsTheOriginals: the published profile was measured at 1, 49, 97 and so on sequences
// of 2997 tokens, and 2997 is the second of six contexts.
func TestASweepIsTheOriginals(t *testing.T) {
	s := setup(trace.Trace{{At: 0, Input: 3000, Output: 300}})
	s.GPUs = decision.Vector{2, 4}
	p := sweep(s)
	contexts := map[float64][]float64{}
	for i, c := range p.Context {
		n := p.Usage[i] * p.CacheTokens / c
		contexts[c] = append(contexts[c], math.Round(n))
		token := s.Model.Token(n, c)
		if math.Abs(p.Token[i]-1e3*token) > 1e-9 || math.Abs(p.OutputThroughput[i]-n/token/4) > 1e-9 {
			t.Errorf("%v sequences of %v take %v ms and make %v tokens", n, c, p.Token[i], p.OutputThroughput[i])
		}
	}
	if len(contexts) != 6 {
		t.Errorf("contexts %v", contexts)
	}
	if diff := cmp.Diff([]float64{1, 49, 97, 145, 193, 241, 289}, contexts[2997]); diff != "" {
		t.Error(diff)
	}
	if n := len(p.Input); n != 17 || p.Input[0] != 100 || p.Input[n-1] != 15860 || math.Abs(p.InputThroughput[n-1]-15860/s.Model.Prefill(15860)/2) > 1e-9 {
		t.Errorf("prompts %v", p.Input)
	}
	if _, err := Sweep(s); err != nil {
		t.Error(err)
	}
}

// TestTheOriginalSeesMeansOfRequestsAndOfTokens: who has more tokens counts more for their time.
func TestTheOriginalSeesMeansOfRequestsAndOfTokens(t *testing.T) {
	got := observe([]Count{
		{Ended: 1, endedInput: 1000, output: 100, tokens: 100 * 0.01, token: 0.01, duration: 3, firsts: 2, first: 0.3},
		{Ended: 1, endedInput: 3000, output: 300, tokens: 300 * 0.03, token: 0.03, duration: 5},
	})
	want := original.Observation{Requests: 2, Input: 2000, Output: 200, FirstToken: 150, Token: 25, Duration: 4}
	if diff := cmp.Diff(want, got, cmpopts.EquateApprox(0, 1e-9)); diff != "" {
		t.Error(diff)
	}
}
