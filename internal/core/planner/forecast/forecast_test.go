package forecast

import (
	"math"
	"math/rand/v2"
	"reflect"
	"testing"
)

func params() Params {
	return Params{Step: 5, Horizon: 12, Quantile: 0.7, Level: 1, Trend: 0.1, Noise: 10}
}

// after is what is expected after so many bins of a rate.
func after(bins int, p Params, rate func(bin int) float64) (State, Forecast) {
	var s State
	for i := range bins {
		s = s.Next(rate(i), p)
	}
	return s, s.Forecast(p)
}

func constant(rate float64) func(int) float64 { return func(int) float64 { return rate } }

// counts are as chance has them.
func counts(seed uint64, step float64, rate func(int) float64) func(int) float64 {
	chance := rand.New(rand.NewPCG(seed, 1))
	return func(bin int) float64 {
		n, mean := 0, rate(bin)*step
		for left := chance.ExpFloat64(); left < mean; left += chance.ExpFloat64() {
			n++
		}
		return float64(n) / step
	}
}

func TestForecast(t *testing.T) {
	p := params()
	pulse := func(bin int) float64 { // every 20 minutes a rise of 5 over 2 minutes that stays for 3
		switch at := bin % 240; {
		case at < 24:
			return 10 + 40*float64(at)/24
		case at < 60:
			return 50
		}
		return 10
	}
	for _, x := range []struct {
		rule      string
		bins      int
		rate      func(int) float64
		low, high float64 // of Rate
		level     float64 // about
	}{
		{"nothing seen, nothing expected", 0, constant(1), 0, 0, 0},
		{"a constant rate stays", 400, constant(20), 20, 22, 20},
		{"one that is counted stays within its scatter", 400, counts(1, 5, constant(20)), 19, 27, 20},
		{"no requests are a real zero", 400, constant(0), 0, 0.5, 0},
		{"a rise goes on until the horizon", 60, func(i int) float64 { return 10 + float64(i) }, 78, 95, 69},
		{"a fall is not run after", 60, func(i int) float64 { return 100 - float64(i) }, 40.9, 60, 41},
		{"a step is believed at once", 103, func(i int) float64 { return 5 + 40*float64(min(1, max(0, i-99))) }, 44, 60, 45},
		{"what is no number is what was before", 100, func(i int) float64 {
			return [...]float64{20, math.NaN(), math.Inf(1), -3}[i%4]
		}, 20, 23, 20},
		{"what followed the like before follows again", 240*6 + 3, pulse, 22, 60, 11},
	} {
		t.Run(x.rule, func(t *testing.T) {
			s, f := after(x.bins, p, x.rate)
			if !(f.Rate >= x.low && f.Rate <= x.high) || math.Abs(f.Level-x.level) > 0.1*x.level+0.5 {
				t.Errorf("%+v, want %v to %v at a level of %v", f, x.low, x.high, x.level)
			}
			if s.Bins() != x.bins {
				t.Errorf("%d bins seen of %d", s.Bins(), x.bins)
			}
		})
	}
}

func TestWays(t *testing.T) {
	p := params()
	p.Step, p.Horizon = 300, 3
	const day = 86400 / 300
	noon := func(bin int) float64 { // ten times as much from 12:00 to 13:00
		if at := bin % day; at >= day/2 && at < day/2+12 {
			return 100
		}
		return 10
	}
	rise := func(bin int) float64 { return 10 + float64(bin) }
	for _, x := range []struct {
		rule      string
		bins      int
		rate      func(int) float64
		way       Way
		low, high float64
	}{
		{"the level stays", 30, rise, Last, 38, 40},
		{"the trend goes on, no further than it is believed", 30, rise, Trend, 39.4, 39.6},
		{"the filter goes on until the horizon", 30, rise, Filter, 41, 43},
		{"before a day has gone by there is no yesterday", day / 2, noon, Season, 10, 11},
		{"what came yesterday comes again", day + day/2 - 1, noon, Season, 40, 100},
		{"a rise of yesterday is not believed beyond four times", day + day/2 - 1, noon, Season, 40, 40.1},
		{"after yesterday's rise comes no other", day + day/2 + 40, noon, Season, 10, 11},
		{"what followed the like follows again", day + day/2 - 1, noon, Analogue, 10, 100},
	} {
		t.Run(x.rule, func(t *testing.T) {
			s, _ := after(x.bins, p, x.rate)
			if got := s.foresee(x.way, p); got < x.low || got > x.high {
				t.Errorf("%s says %v, want %v to %v", x.way, got, x.low, x.high)
			}
		})
	}
}

func TestAHigherQuantileExpectsNoLess(t *testing.T) {
	rate := func(i int) float64 { return 30 + 20*math.Sin(float64(i)/40) }
	before := 0.0
	for _, q := range []float64{0.5, 0.7, 0.9, 0.99} {
		p := params()
		p.Quantile = q
		sum := 0.0
		var s State
		next := counts(3, p.Step, rate)
		for i := range 800 {
			s = s.Next(next(i), p)
			if i > 300 {
				sum += s.Forecast(p).Rate
			}
		}
		if sum < before {
			t.Errorf("quantile %v expects %v in all, a lower one %v", q, sum, before)
		}
		before = sum
	}
}

func TestTheQuantileIsThatOfTheFutures(t *testing.T) {
	p := params()
	p.Quantile = 0.8
	const bins = 1400
	next, rates := counts(5, p.Step, func(i int) float64 { return 30 + 20*math.Sin(float64(i)/40) }), make([]float64, bins)
	for i := range rates {
		rates[i] = next(i)
	}
	var s State
	met, all := 0, 0
	for i := range bins - p.Horizon - 1 {
		s = s.Next(rates[i], p)
		if i < 400 {
			continue
		}
		all++
		high := 0.0
		for j := i + 3; j <= i+p.Horizon; j++ {
			high = max(high, (rates[j-2]+rates[j-1]+rates[j])/3)
		}
		if high <= s.Forecast(p).Rate {
			met++
		}
	}
	if share := float64(met) / float64(all); share < 0.7 || share > 0.97 {
		t.Errorf("%.2f of futures are no higher than was said, asked for were 0.8", share)
	}
}

func TestAStateThatWasKeptStaysAsItWas(t *testing.T) {
	p := params()
	s, before := after(300, p, counts(7, p.Step, constant(20)))
	one, two := s, s
	for i := range 50 {
		one = one.Next(float64(100+i), p)
		two = two.Next(0, p)
	}
	if now := s.Forecast(p); now != before {
		t.Errorf("%+v became %+v", before, now)
	}
	again := s
	for i := range 50 {
		again = again.Next(float64(100+i), p)
	}
	if !reflect.DeepEqual(one, again) {
		t.Error("the same gave another state")
	}
}

func TestMemoryHasAnEnd(t *testing.T) {
	p := params()
	s, _ := after(3*kept, p, constant(3))
	if len(s.rates) > kept || len(s.fits) > kept || len(s.pending) > 2*p.Horizon+2 || len(s.days) > daySlots {
		t.Errorf("%d rates, %d fits, %d attempts and %d slots are kept", len(s.rates), len(s.fits), len(s.pending), len(s.days))
	}
	for w, r := range s.ratios {
		if len(r) > scored {
			t.Errorf("%d ratios of %s", len(r), Way(w))
		}
	}
}

// wave rises from low to high and falls again, once in so many bins.
func wave(low, high float64, bins int) func(int) float64 {
	return func(bin int) float64 {
		return (low+high)/2 - (high-low)/2*math.Cos(2*math.Pi*float64(bin)/float64(bins))
	}
}

// TestNoMoreIsExpectedThanHasCome: what ways were short of in a trough says nothing about a
// peak, nor does a slope about what is above the highest that came.
func TestNoMoreIsExpectedThanHasCome(t *testing.T) {
	for name, horizon := range map[string]int{"a fifth of a round": 24, "a twentieth": 6} {
		t.Run(name, func(t *testing.T) {
			p := params()
			p.Horizon = horizon
			next := counts(11, p.Step, wave(5, 45, 120))
			var s State
			for i := range 5 * 120 {
				s = s.Next(next(i), p)
				if f := s.Forecast(p); i > 120 && f.Rate > 1.3*45 {
					t.Fatalf("bin %d: %+v, and no more than 45 ever came", i, f)
				}
			}
		})
	}
}

func TestWhoHasSeenLittleIsLessSure(t *testing.T) {
	p := params()
	p.Horizon = 25
	next := counts(1, p.Step, constant(20))
	_, few := after(8, p, next)
	_, many := after(400, p, next)
	if few.Rate < 1.3*20 || many.Rate > 1.3*20 {
		t.Errorf("after 8 bins %.1f a second are expected, after 400 %.1f, of a rate of 20", few.Rate, many.Rate)
	}
}
