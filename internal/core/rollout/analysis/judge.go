package analysis

import (
	"fmt"
	"math"
	"time"

	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/policy"
)

// What a candidate fails by, besides the evidence for it.
const (
	// leastErrors is how many requests have to fail at least.
	leastErrors = 5
	// A candidate fails if its share of errors is over errorFactor times that of the
	// stable generation, and over it by errorPoint.
	errorFactor = 2.0
	errorPoint  = 0.01
	// latencyFactor is what its latencies are over those of the stable generation by.
	latencyFactor = 1.5
	// leastSamples is how many of each side a latency is judged by.
	leastSamples = 200
	percentile   = 0.95
)

// The candidate is looked at again and again, and each look is another chance to be
// unlucky: at a fixed bound of 2.33 standard errors, which is right 99 times out of
// 100, one in about twenty equal candidates fails within ten minutes. So the bound is
// that of a sequential test, the normal mixture of Robbins: whatever number of looks
// is taken, an equal candidate passes it with no more than the probability below.
// About 4.2 standard errors it is, which costs a bad candidate some seconds.
const (
	// falseAlarm is that probability, for each of the rules.
	falseAlarm = 0.0005
	// tuned is the number of samples for which the bound is closest.
	tuned = 50.0
)

// bound is how many standard errors are evidence after a number of samples.
func bound(samples float64) float64 {
	x := samples / tuned
	return math.Sqrt((1 + 1/x) * math.Log((1+x)/(4*falseAlarm*falseAlarm)))
}

// Judgement is what a candidate comes to. Pairs are the candidate's, then the stable
// generation's.
type Judgement struct {
	Verdict policy.Verdict
	// Message is why it failed, or what is missing.
	Message string
	// Samples are the candidate's requests.
	Samples int64
	Errors  [2]float64
	// TTFT and ITL are 95th percentiles; zero where they were not measured.
	TTFT, ITL [2]time.Duration
}

// Judge holds the candidate against the stable generation, and against what it has
// to meet.
func (s Series) Judge(slo policy.SLO) Judgement {
	j := Judgement{
		Verdict: policy.VerdictInconclusive,
		Samples: int64(s.Candidate.Requests),
		Errors:  [2]float64{ratio(s.Candidate), ratio(s.Stable)},
		TTFT:    percentiles(s.warmCandidate.TTFT, s.warmStable.TTFT),
		ITL:     percentiles(s.warmCandidate.ITL, s.warmStable.ITL),
	}
	for _, failure := range []string{
		s.errors(slo.Errors),
		latency("time to first token", s.warmCandidate.TTFT, s.warmStable.TTFT, slo.TTFT),
		latency("time between tokens", s.warmCandidate.ITL, s.warmStable.ITL, slo.ITL),
	} {
		if failure != "" {
			j.Verdict, j.Message = policy.VerdictFail, failure
			return j
		}
	}
	if j.Message = s.missing(); j.Message == "" {
		j.Verdict = policy.VerdictPass
	}
	return j
}

// missing is what there is too little of for a verdict.
func (s Series) missing() string {
	switch {
	case s.Began.IsZero():
		return "no request of the candidate was seen"
	case s.Warm.IsZero():
		return fmt.Sprintf("%.0f of %d requests for the warm-up, %s of %s", s.Candidate.Requests, WarmUpRequests, s.last.At.Sub(s.Began).Round(time.Second), WarmUpTime)
	case s.Stable.Requests == 0:
		return "no request of the stable generation was seen at the same time"
	}
	for _, pair := range [][2]*Histogram{{s.warmCandidate.TTFT, s.warmStable.TTFT}, {s.warmCandidate.ITL, s.warmStable.ITL}} {
		if pair[0] == nil && pair[1] == nil {
			continue // nobody measures it
		}
		if n := min(pair[0].Samples(), pair[1].Samples()); n < leastSamples {
			return fmt.Sprintf("%.0f of %d latencies on each side", n, leastSamples)
		}
	}
	return ""
}

func ratio(c Counters) float64 {
	if c.Requests == 0 {
		return 0
	}
	return min(1, c.Errors/c.Requests)
}

// errors says why the candidate fails by its errors; empty if it does not.
func (s Series) errors(slo float64) string {
	c, b := s.Candidate, s.Stable
	if c.Errors < leastErrors || c.Requests == 0 {
		return ""
	}
	mine, theirs := ratio(c), ratio(b)
	if b.Requests > 0 && mine > errorFactor*theirs && mine > theirs+errorPoint {
		pooled := min(1, (c.Errors+b.Errors)/(c.Requests+b.Requests))
		deviation := math.Sqrt(pooled * (1 - pooled) * (1/c.Requests + 1/b.Requests))
		if mine-theirs >= bound(effective(c.Requests, b.Requests))*deviation {
			return fmt.Sprintf("%s of its requests fail, of the stable generation's %s", percent(mine), percent(theirs))
		}
	}
	if slo > 0 && mine > slo && theirs <= slo && mine-slo >= bound(c.Requests)*math.Sqrt(slo*(1-slo)/c.Requests) {
		return fmt.Sprintf("%s of its requests fail, and may %s", percent(mine), percent(slo))
	}
	return ""
}

// effective is how many samples of one side two sides are worth.
func effective(a, b float64) float64 { return a * b / (a + b) }

// latency says why the candidate fails by a latency; empty if it does not. It has to
// be seen that the candidate's percentile lies over the other, or over the objective:
// were both off by their errors, it still would.
func latency(what string, candidate, stable *Histogram, slo time.Duration) string {
	n, m := candidate.Samples(), stable.Samples()
	if n < leastSamples || m < leastSamples {
		return ""
	}
	mine, theirs := candidate.Quantile(percentile), stable.Quantile(percentile)
	worse := mine > latencyFactor*theirs && apart(candidate, stable)
	if slo > 0 {
		low := candidate.Quantile(percentile - bound(n)*rankError(n))
		if low <= slo.Seconds() || !worse && theirs > slo.Seconds() {
			return ""
		}
		return fmt.Sprintf("95th percentile of the %s is %s, and may be %s (of the stable generation %s)", what, seconds(mine), slo, seconds(theirs))
	}
	if !worse {
		return ""
	}
	return fmt.Sprintf("95th percentile of the %s is %s, of the stable generation %s", what, seconds(mine), seconds(theirs))
}

// apart reports whether the candidate's percentile lies over the other one beyond
// doubt. The doubt is shared out so that it is that of the difference.
func apart(candidate, stable *Histogram) bool {
	n, m := candidate.Samples(), stable.Samples()
	a, b := rankError(n), rankError(m)
	k := bound(effective(n, m)) * math.Hypot(a, b) / (a + b)
	return percentile+k*b < 1 && candidate.Quantile(percentile-k*a) > stable.Quantile(percentile+k*b)
}

// rankError is the standard error of the share of samples below the percentile.
func rankError(samples float64) float64 {
	return math.Sqrt(percentile * (1 - percentile) / samples)
}

func percentiles(candidate, stable *Histogram) [2]time.Duration {
	var out [2]time.Duration
	for i, h := range []*Histogram{candidate, stable} {
		if h.Samples() > 0 {
			out[i] = seconds(h.Quantile(percentile))
		}
	}
	return out
}

// seconds in three digits or so: more is not known.
func seconds(s float64) time.Duration {
	d := time.Duration(s * float64(time.Second))
	switch {
	case d > 10*time.Second:
		return d.Round(100 * time.Millisecond)
	case d > time.Second:
		return d.Round(10 * time.Millisecond)
	case d > 10*time.Millisecond:
		return d.Round(time.Millisecond)
	default:
		return d.Round(10 * time.Microsecond)
	}
}

func percent(share float64) string { return fmt.Sprintf("%.1f%%", 100*share) }
