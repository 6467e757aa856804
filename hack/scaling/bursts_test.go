package main

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/dynamo-operator/dynamo-operator/internal/core/planner/simulation"
)

func TestTheBestSizeForHours(t *testing.T) {
	sizes := []simulation.Result{{GPUHours: 2, Met: 0.5}, {GPUHours: 4, Met: 0.9}, {GPUHours: 5, Met: 0.8}}
	for _, x := range []struct {
		rule        string
		hours, want float64
	}{
		{"fewer than any size takes", 1, 0},
		{"a size's own", 2, 0.5},
		{"two sizes, half of the time each", 3, 0.7},
		{"a larger size that serves less is not taken", 5, 0.9},
		{"more than any takes", 9, 0.9},
	} {
		if got := best(sizes, x.hours); math.Abs(got-x.want) > 1e-9 {
			t.Errorf("%s: %v, want %v", x.rule, got, x.want)
		}
	}
}

func TestBurstsAreAsTheyAreSaidToBe(t *testing.T) {
	for seed := range uint64(burstSeeds) {
		once := bursty(rand.New(rand.NewPCG(seed, 99)))
		counts := map[int]int{}
		peak := 0
		for _, q := range once {
			at := int(q.At / simulation.Slot)
			counts[at]++
			peak = max(peak, counts[at])
		}
		input, output := once.Means()
		if rate, most := once.Rate(), float64(peak)/simulation.Slot; rate < 1.7 || rate > 4 || most < 30 || most > 61 {
			t.Errorf("seed %d: %.1f requests a second, %.1f in the 5 s with the most", seed, rate, most)
		}
		if math.Abs(input-2090) > 50 || math.Abs(output-22) > 2 {
			t.Errorf("seed %d: prompts of %.0f and answers of %.0f tokens", seed, input, output)
		}
	}
}
