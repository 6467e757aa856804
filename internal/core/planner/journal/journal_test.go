package journal

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dynamo-operator/dynamo-operator/internal/core/planner/decision"
	"github.com/dynamo-operator/dynamo-operator/internal/core/planner/forecast"
	"github.com/dynamo-operator/dynamo-operator/internal/core/planner/pricing"
	"github.com/dynamo-operator/dynamo-operator/internal/core/price"
)

func told() (Context, decision.Decision) {
	c := Context{
		At: time.Date(2026, 11, 16, 14, 2, 10, 0, time.UTC), Graph: "lab/chat", Policy: "native", Timing: "a profile",
		Config: decision.Config{GPUs: decision.Vector{1, 2}, Budget: 12},
		Seen:   decision.Snapshot{Now: time.Hour},
		Prices: pricing.Both(price.Tag{Hour: 5, By: "the built-in table, for h200_sxm"}), Needed: &decision.Vector{3, 5},
	}
	c.Seen.Roles[decision.Prefill].Wanted, c.Seen.Roles[decision.Decode].Wanted = 2, 3
	d := decision.Decision{
		Replicas: decision.Vector{4, 4}, Reason: decision.Grow, Horizon: 95 * time.Second,
		Forecast: forecast.Forecast{Level: 31.2, Rate: 44, Way: forecast.Trend, Loss: 0.06},
		Clamps:   []decision.Clamp{{By: "budget", From: decision.Vector{4, 5}, To: decision.Vector{4, 4}}},
		Limited:  "14 GPUs are needed, the budget has 12",
	}
	d.Roles[decision.Prefill] = decision.Term{Need: 4, Target: 4, Binding: decision.ByWait, Wait: 30 * time.Millisecond, Shorter: 118 * time.Millisecond}
	d.Roles[decision.Decode] = decision.Term{Need: 5, Target: 5, Binding: decision.ByToken, Batch: 40.7, ShrinksAt: time.Hour + 5*time.Minute, Pause: 2 * time.Minute}
	return c, d
}

func TestADecisionIsTold(t *testing.T) {
	r := Tell(told())
	want := []string{
		"prefill 2 → 4, decode 3 → 4 (8 → 12 GPUs, $40.00/h → $60.00/h, budget 12): NeedGrew",
		"arrivals 31.2/s, expected 44.0/s within 1m35s (trend; its error was 6 %)",
		"prefill needs 4 (time to the first token: a wait of 30ms, 118ms at one less)",
		"decode needs 5 (time between tokens: 40 sequences a replica)",
		"budget: prefill 4, decode 5 become prefill 4, decode 4",
		"limited: 14 GPUs are needed, the budget has 12",
		"a GPU costs $5.00/h (by the built-in table, for h200_sxm); of the sum $5.00/h is more than what comes now needs",
		"next: decode shrinks no earlier than in 5m0s (a need must be gone for 2m0s)",
		"replicas are timed by a profile",
	}
	if diff := cmp.Diff(want, r.Words); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(&Cost{From: 40, To: 60, Headroom: new(5.0), GPU: 5, By: "the built-in table, for h200_sxm"}, r.Cost); diff != "" || r.Unpriced != "" {
		t.Errorf("%s, %q", diff, r.Unpriced)
	}
	if r.From != (Replicas{2, 3}) || r.To != (Replicas{4, 4}) || r.GPUs != 12 {
		t.Errorf("%+v", r)
	}
}

func TestRequestsAtEvenDistancesAreTold(t *testing.T) {
	c, d := told()
	for even, want := range map[float64]bool{0: false, 0.4: false, 0.9: true} {
		d.Even = even
		said := slices.Contains(Tell(c, d).Words, "they come at even distances: of the waits of requests that come by chance 10 % are planned with")
		if said != want {
			t.Errorf("%v: said %v", even, said)
		}
	}
}

func TestACostThatNobodyKnowsIsSaidAndIsNotZero(t *testing.T) {
	c, d := told()
	c.Prices = pricing.Both(price.Tag{Unknown: "it is not said which GPUs replicas have"})
	r := Tell(c, d)
	if text := r.Plan(); r.Cost != nil || r.Unpriced != c.Prices.Why() || strings.Contains(text, "$") || !strings.Contains(text, "what it costs is not known: it is not said") {
		t.Errorf("%+v, %s", r.Cost, text)
	}
	c.Prices, c.Needed = pricing.Both(price.Tag{Hour: 5, By: "what was given"}), nil
	if r = Tell(c, d); r.Cost == nil || r.Cost.Headroom != nil || !slices.Contains(r.Words, "a GPU costs $5.00/h (by what was given)") {
		t.Errorf("headroom that nobody knows: %+v, %q", r.Cost, r.Words)
	}
}

func TestARoleCostsWhatItsOwnGPUDoes(t *testing.T) {
	dear, cheap := price.Tag{Hour: 5, By: "dear"}, price.Tag{Hour: 2, By: "cheap"}
	for _, x := range []struct {
		rule string
		of   pricing.Tags
		want Cost
		says string
	}{
		{"a kind each", pricing.Tags{dear, cheap}, Cost{From: 22, To: 36, Headroom: new(5.0), Roles: map[string]Price{"prefill": {5, "dear"}, "decode": {2, "cheap"}}},
			"prefill: a GPU costs $5.00/h (by dear); decode: a GPU costs $2.00/h (by cheap); of the sum $5.00/h is more than what comes now needs"},
		{"one without GPUs costs nothing, and the other is told", pricing.Tags{{Free: true}, cheap}, Cost{From: 12, To: 16, Headroom: new(0.0), GPU: 2, By: "cheap"},
			"a GPU costs $2.00/h (by cheap); replicas of prefill ask for none; of the sum $0.00/h is more than what comes now needs"},
	} {
		t.Run(x.rule, func(t *testing.T) {
			c, d := told()
			c.Prices = x.of
			r := Tell(c, d)
			if diff := cmp.Diff(&x.want, r.Cost); diff != "" || r.Unpriced != "" || !slices.Contains(r.Words, x.says) {
				t.Errorf("%s, %q, %q", diff, r.Unpriced, r.Words)
			}
		})
	}
}

func TestANeedIsToldApartFromWhatIsKept(t *testing.T) {
	for want, term := range map[string]decision.Term{
		"decode needs 3 (cache: 9 sequences a replica)":                                    {Need: 3, Target: 3, Binding: decision.ByCache, Batch: 9},
		"decode needs 1 (backlog: arrivals alone need 0), and is to have 4 for now":        {Backlog: 1, Target: 4, Binding: decision.ByBacklog},
		"decode needs no more than its floor, and is to have 2 for now":                    {Target: 2, Binding: decision.ByFloor},
		"decode needs 2 (time to the first token: a wait of 1ms, without end at one less)": {Need: 2, Target: 2, Binding: decision.ByWait, Wait: time.Millisecond, Shorter: time.Hour},
	} {
		if got := need(decision.Decode, term); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestWhoSeesNothingSaysSo(t *testing.T) {
	c, _ := told()
	c.Seen.Failed = "frontend 10.0.0.1: refused"
	r := Tell(c, decision.Decision{Replicas: decision.Vector{2, 3}, Reason: decision.Blind, BlindFor: 3})
	if want := "nothing was seen for 3 ticks (frontend 10.0.0.1: refused): what there is is kept"; len(r.Words) != 2 || r.Words[1] != want {
		t.Errorf("%q", r.Words)
	}
}

func TestAPlanFitsIntoAnAnnotation(t *testing.T) {
	r := Tell(told())
	if got := r.Plan(); !strings.Contains(got, "timed by a profile") {
		t.Errorf("a short one is cut: %s", got)
	}
	for range 100 {
		r.Words = append(r.Words, strings.Repeat("x", 50))
	}
	if got := r.Plan(); len(got) > PlanLimit || !strings.Contains(got, "14 GPUs") {
		t.Errorf("%d bytes: %s", len(got), got)
	}
}

func TestTheJournalKeepsWhatIsNew(t *testing.T) {
	steady := Record{Reason: decision.Steady, From: Replicas{1, 1}, To: Replicas{1, 1}}
	grown := Record{Reason: decision.Grow, From: Replicas{1, 1}, To: Replicas{2, 1}}
	after := Record{Reason: decision.Steady, From: Replicas{2, 1}, To: Replicas{2, 1}}
	limited := after
	limited.Limited = "no node"
	var j Journal
	for i, x := range []struct {
		rule string
		r    Record
		kept bool
	}{
		{"the first", steady, true},
		{"the same again", steady, false},
		{"another number", grown, true},
		{"the same decision that nobody wrote", grown, false},
		{"one that begins elsewhere", Record{Reason: decision.Grow, From: Replicas{1, 2}, To: Replicas{2, 1}}, true},
		{"and ends elsewhere", Record{Reason: decision.Grow, From: Replicas{1, 2}, To: Replicas{2, 2}}, true},
		{"no change after one", after, true},
		{"and again", after, false},
		{"a limit", limited, true},
		{"the same limit in other words", Record{Reason: decision.Steady, From: Replicas{2, 1}, To: Replicas{2, 1}, Limited: "no node at all"}, false},
		{"a write that failed", Record{Reason: decision.Steady, From: Replicas{2, 1}, To: Replicas{2, 1}, Limited: "x", Failed: "refused"}, true},
	} {
		var kept bool
		if j, kept = j.Add(x.r); kept != x.kept {
			t.Errorf("%d, %s: kept %v", i, x.rule, kept)
		}
	}
	for i := range 2 * Kept {
		j, _ = j.Add([]Record{grown, after}[i%2])
	}
	if n := len(j.Records()); n != Kept {
		t.Errorf("%d are kept", n)
	}
}

func TestAGraphIsToldOnceThatNothingIsSeen(t *testing.T) {
	c, _ := told()
	c.Seen.Failed = "refused"
	said := Tell(c, decision.Decision{Reason: decision.Blind, BlindFor: 3}).Plan()
	seen := Tell(told()).Plan()
	for rule, x := range map[string]struct {
		d    decision.Decision
		plan string
		want bool
	}{
		"not at the first":                    {decision.Decision{Reason: decision.Blind, BlindFor: 2}, seen, false},
		"at the third":                        {decision.Decision{Reason: decision.Blind, BlindFor: 3}, seen, true},
		"as long as it does not know":         {decision.Decision{Reason: decision.Blind, BlindFor: 9}, "", true},
		"not again":                           {decision.Decision{Reason: decision.Blind, BlindFor: 4}, said, false},
		"not taken back by one that restarts": {decision.Decision{Reason: decision.Blind, BlindFor: 1}, said, false},
		"taken back by one that sees":         {decision.Decision{Reason: decision.Steady}, said, true},
		"nothing to take back":                {decision.Decision{Reason: decision.Steady}, seen, false},
	} {
		if got := Tells(x.d, x.plan); got != x.want {
			t.Errorf("%s: %t", rule, got)
		}
	}
}
