package main

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/dynamo-operator/dynamo-operator/internal/core/planner/capacity"
	"github.com/dynamo-operator/dynamo-operator/internal/core/planner/decision"
	"github.com/dynamo-operator/dynamo-operator/internal/core/planner/simulation"
	"github.com/dynamo-operator/dynamo-operator/internal/core/planner/trace"
)

// burstSeeds is how many traces of bursts are played.
const burstSeeds = 6

// asGood is how much less a share may be and still be as good: a point.
const asGood = 0.01

// bursty is an hour of bursts of some seconds with quiet between them, long prompts and short
// answers: by its rates what is known of Azure's code trace of 2023, which is not at hand.
func bursty(chance *rand.Rand) trace.Trace {
	const minutes, minute = 57, 60
	around := func(middle, spread float64) float64 { return middle * math.Exp(spread*chance.NormFloat64()) }
	var t trace.Trace
	mood := 0.0
	for m := range minutes {
		mood = 0.7*mood + 0.7*chance.NormFloat64()
		between := minute / (1.9 * math.Exp(0.8*mood))
		for at := float64(m*minute) + between*chance.ExpFloat64(); at < float64((m+1)*minute); at += between * chance.ExpFloat64() {
			rate, lasts := min(50, around(20, 0.5)), min(9, around(2.2, 0.7))
			for x := chance.ExpFloat64() / rate; x < lasts; x += chance.ExpFloat64() / rate {
				t = append(t, trace.Request{At: at + x, Input: int32(min(7400, max(3, around(1500, 0.9)))), Output: int32(min(900, max(6, around(15, 0.9))))})
			}
		}
	}
	slices.SortFunc(t, func(a, b trace.Request) int { return cmp.Compare(a.At, b.At) })
	return t.Between(t[0].At, math.Inf(1))
}

// bursts plays traces whose bursts are shorter than a start, on which nobody who decides when a
// burst comes is as good as a size that is right from the start. It has advise look at a first
// half, plays what that takes on the second beside native's defaults, and holds both against the
// best of all sizes for their hours, chosen in hindsight.
func bursts() (missed []string, err error) {
	fmt.Printf("\nbursts of some seconds x12, advised on a first half, second half: %d traces\n", burstSeeds)
	for _, startup := range []float64{30, 120} {
		var advised, native float64 // above the best size, in the mean
		for seed := range uint64(burstSeeds) {
			chance := rand.New(rand.NewPCG(seed, 99)) //nolint:gosec // figures are to be the same each time
			once := bursty(chance)
			half := once.Length() / 2
			s := subject{trace: once.Multiply(12, 20, chance), target: capacity.Target{FirstToken: 0.4, Token: 0.012}, warm: half}.setup(startup)
			first := s
			first.Trace, first.Warm = s.Trace.Between(0, half), 0
			advice, err := simulation.Advise(first, 0.97, decision.Vector{1, 1})
			if err != nil {
				return nil, err
			}
			sizes := everySize(s)
			taken, own := follow(s, advice.Take), simulation.Run(s, simulation.NewNative(s, nil))
			advised += (taken.Met - best(sizes, taken.GPUHours)) / burstSeeds
			native += (own.Met - best(sizes, own.GPUHours)) / burstSeeds
			fmt.Printf("  starts of %3.0f s  advised %-14s %5.1f %% of %5.2f hours, the best size %5.1f %%; native %5.1f %% of %5.2f, the best size %5.1f %%\n", startup, advice.Take.Called(),
				100*taken.Met, taken.GPUHours, 100*best(sizes, taken.GPUHours), 100*own.Met, own.GPUHours, 100*best(sizes, own.GPUHours))
		}
		word, text := "met", fmt.Sprintf("what advise takes serves %.1f points less than the best size for its hours, target %.0f (native's defaults: %.1f)", -100*advised, 100*asGood, -100*native)
		if advised < -asGood {
			word = "NOT MET"
			missed = append(missed, fmt.Sprintf("bursts, starts of %.0f s: %s", startup, text))
		}
		fmt.Printf("  %-7s  %s\n", word, text)
	}
	return missed, nil
}

// follow does what an advice says.
func follow(s simulation.Setup, taken simulation.Candidate) simulation.Result {
	switch taken.Policy {
	case simulation.PolicyFixed:
		s.Begin = taken.Size
		return simulation.Run(s, simulation.Fixed{})
	case simulation.PolicyHPA:
		return simulation.Run(s, simulation.NewHPA(s))
	}
	return simulation.Run(s, simulation.NewNative(s, func(c *decision.Config) {
		c.Floors = taken.Floors
		if taken.Pause > 0 {
			c.Pause = taken.Pause
		}
	}))
}

// everySize plays all sizes of up to two decode replicas, more than which answers this short
// never need.
func everySize(s simulation.Setup) []simulation.Result {
	var out []simulation.Result
	for decode := 1; decode <= 2; decode++ {
		for prefill := 1; prefill+decode <= s.Budget; prefill++ {
			s.Begin = decision.Vector{prefill, decode}
			out = append(out, simulation.Run(s, simulation.Fixed{}))
		}
	}
	return out
}

// best is the share that the best size serves for so many hours, and between two sizes one of
// them at one time and the other at another.
func best(sizes []simulation.Result, hours float64) float64 {
	share := 0.0
	for _, a := range sizes {
		if a.GPUHours > hours {
			continue
		}
		share = max(share, a.Met)
		for _, b := range sizes {
			if b.GPUHours > hours {
				share = max(share, a.Met+(b.Met-a.Met)*(hours-a.GPUHours)/(b.GPUHours-a.GPUHours))
			}
		}
	}
	return share
}
