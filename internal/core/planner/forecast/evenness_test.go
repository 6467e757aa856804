package forecast

import (
	"testing"
)

// TestEvenness plays counts of a bin.
func TestEvenness(t *testing.T) {
	const often = 200 // seeds
	for _, x := range []struct {
		rule      string
		bins      int
		requests  func(seed uint64) func(bin int) float64
		low, high float64 // of the value, in all but one of 50 cases
	}{
		{"at even distances", 60, func(uint64) func(int) float64 { return constant(40) }, 1, 1},
		{"at even distances, counted by looks that are", 60, func(uint64) func(int) float64 {
			return func(bin int) float64 { return 40 + float64(bin%2) }
		}, 0.9, 1},
		{"too few were seen", changesMin, func(uint64) func(int) float64 { return constant(40) }, 0, 0},
		{"by chance", 400, func(seed uint64) func(int) float64 { return counts(seed, 1, constant(40)) }, 0, 0.3},
		{"by chance, and few", 400, func(seed uint64) func(int) float64 { return counts(seed, 1, constant(2)) }, 0, 0.3},
		{"in bursts", 400, func(seed uint64) func(int) float64 {
			some := counts(seed, 1, constant(4))
			return func(bin int) float64 { return 10 * some(bin) }
		}, 0, 0},
		{"a step in between is none of chance", 60, func(uint64) func(int) float64 {
			return func(bin int) float64 {
				if bin < 40 {
					return 40
				}
				return 90
			}
		}, 1, 1},
		{"none at all", 400, func(uint64) func(int) float64 { return constant(0) }, 0, 0},
	} {
		t.Run(x.rule, func(t *testing.T) {
			outside := 0
			for seed := range uint64(often) {
				var e Evenness
				next := x.requests(seed)
				for bin := range x.bins {
					e = e.Next(next(bin))
				}
				if v := e.Value(); v < x.low || v > x.high {
					outside++
				}
			}
			if outside > often/50 {
				t.Errorf("%d of %d are not within %v and %v", outside, often, x.low, x.high)
			}
		})
	}
}

func TestBinsBesideAGapAreNotCompared(t *testing.T) {
	var e Evenness
	for range changesMin {
		e = e.Next(40).Next(40).Gap()
	}
	if v := e.Value(); v != 1 {
		t.Errorf("%v of pairs alone", v)
	}
	var pairs Evenness
	for bin := range changesMin {
		pairs = pairs.Next(float64(bin)).Gap()
	}
	if v := pairs.Value(); v != 0 {
		t.Errorf("%v of bins without another beside them", v)
	}
}
