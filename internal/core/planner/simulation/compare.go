package simulation

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/dynamo-operator/dynamo-operator/internal/core/planner/capacity"
	"github.com/dynamo-operator/dynamo-operator/internal/core/planner/decision"
	"github.com/dynamo-operator/dynamo-operator/internal/core/planner/original"
)

// Name is that of a policy.
type Name string

// The policies.
const (
	PolicyNative      Name = "native"
	PolicyOriginal    Name = "original"
	PolicyHPA         Name = "hpa"
	PolicyFixed       Name = "fixed"
	PolicyClairvoyant Name = "clairvoyant"
)

// Names lists them in the order of reports.
func Names() []Name {
	return []Name{PolicyNative, PolicyOriginal, PolicyHPA, PolicyFixed, PolicyClairvoyant}
}

// Played is a policy and what came of it.
type Played struct {
	Policy Name
	Result
	// Note is what was chosen in hindsight, or what the policy was given.
	Note string
}

// enough is the share of requests at which hindsight stops to add GPUs.
const enough = 0.99

// originalInterval is how often the original is let decide: three times as often as
// it would by itself, which is to its advantage.
const originalInterval = 60

// Play runs one policy.
func Play(s Setup, name Name, change func(*decision.Config)) (Played, error) {
	switch name {
	case PolicyNative:
		return Played{Policy: name, Result: Run(s, NewNative(s, change))}, nil
	case PolicyOriginal:
		profile, err := Sweep(s)
		if err != nil {
			return Played{}, err
		}
		return Played{Policy: name, Result: Run(s, NewOriginal(s, profile, originalInterval)), Note: fmt.Sprintf("every %d s", originalInterval)}, nil
	case PolicyHPA:
		return Played{Policy: name, Result: Run(s, NewHPA(s)), Note: "one autoscaler a role"}, nil
	case PolicyFixed:
		best, _ := BestFixed(s)
		return best, nil
	case PolicyClairvoyant:
		return BestClairvoyant(s), nil
	}
	return Played{}, fmt.Errorf("policy %q: want one of %v", name, Names())
}

// Sweep is the profile that the original would have been given of the model.
func Sweep(s Setup) (*original.Profile, error) { return original.NewProfile(sweep(s)) }

// As the original's profiler goes through an engine with a context of so many tokens: prompts
// and answers of these lengths, and at each length of prompts from one sequence to what fits.
const (
	sweepContext     = 16384
	sweepFirst       = 100
	sweepOutput      = 500
	sweepFree        = 512 // tokens that prompts leave
	sweepPrompts     = 16
	sweepGranularity = 6
	sweepSequences   = 2000 // at most
)

func sweep(s Setup) capacity.Profile {
	p := capacity.Profile{CacheTokens: s.Model.Cache()}
	// An engine is not started with more than its cache holds.
	context := max(sweepFirst+sweepFree+sweepPrompts, int(min(sweepContext, p.CacheTokens)))
	for prompt := sweepFirst; prompt < context-sweepFree; prompt += (context - sweepFree - sweepFirst) / sweepPrompts {
		input := float64(prompt)
		took := s.Model.Prefill(input)
		p.Input, p.FirstToken = append(p.Input, input), append(p.FirstToken, took*1e3)
		p.InputThroughput = append(p.InputThroughput, input/took/float64(max(1, s.GPUs[decision.Prefill])))
	}
	for prompt := sweepFirst; prompt < context-sweepOutput; prompt += (context - sweepOutput) / sweepGranularity {
		length := float64(prompt + sweepOutput/2)
		most := int(min(sweepSequences, p.CacheTokens/float64(prompt+sweepOutput)))
		for n := 1; n <= most; n += max(1, (most-1)/sweepGranularity) {
			token := s.Model.Token(float64(n), length)
			p.Usage, p.Context = append(p.Usage, length*float64(n)/p.CacheTokens), append(p.Context, length)
			p.Token, p.OutputThroughput = append(p.Token, token*1e3), append(p.OutputThroughput, float64(n)/token/float64(max(1, s.GPUs[decision.Decode])))
		}
	}
	return p
}

// BestFixed is the cheapest size that is enough, chosen in hindsight, or the one that
// serves most; all are the sizes that were looked at: those that some constant rate
// between the mean and the peak of the trace needs, and their neighbours.
func BestFixed(s Setup) (best Played, all []Played) {
	counts := map[int]int{}
	peak := 0.0
	for _, q := range s.Trace {
		counts[int(q.At/Slot)]++
	}
	for _, n := range counts {
		peak = max(peak, float64(n)/Slot)
	}
	mean := s.Trace.Rate()
	seen := map[decision.Vector]bool{}
	try := func(v decision.Vector) {
		if v[0] < 1 || v[1] < 1 || seen[v] || s.Budget > 0 && v.GPUs(s.GPUs) > s.Budget {
			return
		}
		seen[v] = true
		fixed := s
		fixed.Begin = v
		all = append(all, Played{Policy: PolicyFixed, Result: Run(fixed, Fixed{}), Note: fmt.Sprintf("%d + %d", v[0], v[1])})
	}
	const steps = 8
	for i := range steps + 1 {
		v := Need(s, mean+(peak-mean)*float64(i)/steps)
		for _, d := range []decision.Vector{{0, 0}, {1, -1}, {-1, 1}, {0, -1}, {-1, 0}} {
			try(decision.Vector{v[0] + d[0], v[1] + d[1]})
		}
	}
	slices.SortFunc(all, func(a, b Played) int {
		return cmp.Or(cmp.Compare(a.GPUHours, b.GPUHours), cmp.Compare(b.Met, a.Met))
	})
	best = all[0]
	for _, p := range all {
		if best.Met < enough && p.Met > best.Met {
			best = p
		}
	}
	return best, all
}

// BestClairvoyant is the one with the smallest factor that is enough, or than which none
// serves noticeably more. It knows what comes before the trace begins, and has begun what
// the first requests need.
func BestClairvoyant(s Setup) Played {
	var best Played
	for _, factor := range []float64{1, 1.1, 1.2, 1.35, 1.5, 1.75, 2} {
		known := NewClairvoyant(s, factor)
		s.Begin = known.at(0)
		p := Played{Policy: PolicyClairvoyant, Result: Run(s, known), Note: fmt.Sprintf("true need × %v", factor)}
		if best.Policy == "" || p.Met >= enough || p.Met > best.Met+near {
			best = p
		}
		if best.Met >= enough {
			break
		}
	}
	return best
}
