package analysis

import (
	"flag"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/policy"
)

// runs is how many rollouts a case of the simulation plays; make rollouts plays more.
var runs = flag.Int("runs", 200, "simulated rollouts of each case")

// traffic is one side of a simulated step.
type traffic struct {
	errors float64
	// ttft is the median, sigma the spread of its logarithm.
	ttft, sigma float64
}

// The bounds are those of the frontend's and of an engine's histogram.
var frontendBounds = []float64{0, 0.0022, 0.0047, 0.01, 0.022, 0.047, 0.1, 0.22, 0.47, 1, 2.2, 4.7, 10, 22, 48, 100, 220, 480, math.Inf(1)}
var engineBounds = []float64{0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80, math.Inf(1)}

// simulated is a pod that counts.
type simulated struct {
	traffic
	counters Counters
	random   *rand.Rand
}

func newSimulated(t traffic, bounds []float64, random *rand.Rand) *simulated {
	h := &Histogram{Bounds: bounds, Counts: make([]float64, len(bounds))}
	return &simulated{t, Counters{TTFT: h}, random}
}

func (s *simulated) request() {
	s.counters.Requests++
	if s.random.Float64() < s.errors {
		s.counters.Errors++
		return
	}
	took := s.ttft * math.Exp(s.sigma*s.random.NormFloat64())
	for i, bound := range s.counters.TTFT.Bounds {
		if took <= bound {
			s.counters.TTFT.Counts[i]++
			return
		}
	}
}

// scraped is a copy: a series keeps what it is given.
func (s *simulated) scraped(name string) map[string]Counters {
	c := s.counters
	c.TTFT = c.TTFT.plus(&Histogram{c.TTFT.Bounds, make([]float64, len(c.TTFT.Counts))})
	return map[string]Counters{name: c}
}

const (
	perSecond = 20.0
	share     = 0.25
	stepTime  = 10 * time.Minute
	every     = 15 * time.Second
)

// play is one step of 25 % for 10 minutes with Poisson arrivals. It returns when the
// candidate failed after its first request, and after its warm-up; zero if never.
func play(seed uint64, candidate, stable traffic, bounds []float64) (failed bool, after, afterWarmUp time.Duration) {
	random := rand.New(rand.NewPCG(seed, 20))
	a, b := newSimulated(candidate, bounds, random), newSimulated(stable, bounds, random)
	var series Series
	start := time.Unix(0, 0)
	next := random.ExpFloat64() / perSecond
	for at := time.Duration(0); at <= stepTime; at += every {
		for ; next < at.Seconds(); next += random.ExpFloat64() / perSecond {
			if random.Float64() < share {
				a.request()
			} else {
				b.request()
			}
		}
		series = series.Observe(Look{At: start.Add(at), Candidate: a.scraped("a"), Stable: b.scraped("b")})
		if series.Judge(policy.SLO{}).Verdict == policy.VerdictFail {
			if !series.Warm.IsZero() {
				afterWarmUp = start.Add(at).Sub(series.Warm)
			}
			return true, at, afterWarmUp
		}
	}
	return false, 0, 0
}

// TestEqualCandidatesAreNotAborted: at most one of 200 equal candidates fails, however
// often it is looked at. The sides are as bad as each other, in errors and in how far
// latencies are spread.
func TestEqualCandidatesAreNotAborted(t *testing.T) {
	for rule, c := range map[string]struct {
		both   traffic
		bounds []float64
	}{
		"1 % errors":                     {traffic{0.01, 0.4, 0.5}, frontendBounds},
		"no errors, latencies far apart": {traffic{0, 0.4, 1}, engineBounds},
		"5 % errors, coarse buckets":     {traffic{0.05, 0.3, 0.3}, frontendBounds},
	} {
		t.Run(rule, func(t *testing.T) {
			t.Parallel()
			aborted := 0
			for seed := range uint64(*runs) {
				if failed, _, _ := play(seed, c.both, c.both, c.bounds); failed {
					aborted++
				}
			}
			t.Logf("%d of %d equal candidates failed", aborted, *runs)
			if aborted*200 > *runs {
				t.Errorf("more than one in 200")
			}
		})
	}
}

// TestBadCandidatesAreAborted: a candidate with 5 % errors, or with twice the time to
// the first token, fails within the warm-up and two minutes, 99 times out of 100.
func TestBadCandidatesAreAborted(t *testing.T) {
	good := traffic{0.01, 0.4, 0.5}
	for rule, c := range map[string]struct {
		candidate, stable traffic
		bounds            []float64
	}{
		"5 % errors beside 1 %":                            {traffic{0.05, 0.4, 0.5}, good, frontendBounds},
		"5 % errors beside none":                           {traffic{0.05, 0.4, 0.5}, traffic{0, 0.4, 0.5}, frontendBounds},
		"twice the TTFT, frontend":                         {traffic{0.01, 0.8, 0.5}, good, frontendBounds},
		"twice the TTFT, engine":                           {traffic{0.01, 0.8, 0.5}, good, engineBounds},
		"twice the TTFT, latencies as far apart as 1 to 7": {traffic{0.01, 0.8, 1}, traffic{0.01, 0.4, 1}, engineBounds},
	} {
		t.Run(rule, func(t *testing.T) {
			t.Parallel()
			inTime, slowest := 0, time.Duration(0)
			for seed := range uint64(*runs) {
				failed, _, after := play(seed, c.candidate, c.stable, c.bounds)
				if failed && after <= 2*time.Minute {
					inTime++
				}
				slowest = max(slowest, after)
			}
			t.Logf("%d of %d failed in time, the slowest %s after the warm-up", inTime, *runs, slowest)
			if inTime*100 < *runs*99 {
				t.Errorf("fewer than 99 of 100")
			}
		})
	}
}

// TestAFixedBoundFailsEqualCandidates is why there is a sequential one: with 2.33
// standard errors at each look more than one in 200 equal candidates fails.
func TestAFixedBoundFailsEqualCandidates(t *testing.T) {
	failed := 0
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 20))
		var c, s Counters
		for range int(stepTime / every) {
			for range int(perSecond * every.Seconds()) {
				side := &s
				if random.Float64() < share {
					side = &c
				}
				side.Requests++
				if random.Float64() < 0.01 {
					side.Errors++
				}
			}
			mine, theirs := ratio(c), ratio(s)
			pooled := (c.Errors + s.Errors) / (c.Requests + s.Requests)
			z := (mine - theirs) / math.Sqrt(pooled*(1-pooled)*(1/c.Requests+1/s.Requests))
			if c.Errors >= leastErrors && mine > errorFactor*theirs && mine > theirs+errorPoint && z >= 2.33 {
				failed++
				break
			}
		}
	}
	t.Logf("%d of 200", failed)
	if failed <= 1 {
		t.Errorf("%d of 200 equal candidates fail by a fixed bound: the sequential one is not needed", failed)
	}
}
