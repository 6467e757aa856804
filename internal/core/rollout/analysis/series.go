package analysis

import (
	"maps"
	"slices"
	"time"
)

// Warm-up: the prefix cache of a new generation is cold, which is not its fault.
const (
	WarmUpTime     = 2 * time.Minute
	WarmUpRequests = 500
)

// Look is what was scraped at one time, by the uid of a pod: one that is replaced
// counts anew. A pod that did not answer is left out.
type Look struct {
	At                time.Time
	Candidate, Stable map[string]Counters
}

// Series is what was seen of a candidate and of the stable generation beside it. The
// zero value has seen nothing. Whoever loses it, as by a restart, begins again.
type Series struct {
	// Began is when requests of the candidate were first seen, Warm when its warm-up was
	// over; zero before.
	Began, Warm time.Time
	// Candidate and Stable are all requests since Began.
	Candidate, Stable Counters
	// warmCandidate and warmStable are those since Warm.
	warmCandidate, warmStable Counters
	last                      Look
}

// Observe is the series with one look more. It leaves the one before as it was.
func (s Series) Observe(l Look) Series {
	candidate, stable := added(s.last.Candidate, l.Candidate), added(s.last.Stable, l.Stable)
	s.last = Look{l.At, latest(s.last.Candidate, l.Candidate), latest(s.last.Stable, l.Stable)}
	if s.Began.IsZero() {
		if candidate.Requests == 0 {
			return s // what the stable generation did before was not at the same time
		}
		s.Began = l.At
	}
	s.Candidate, s.Stable = s.Candidate.plus(candidate), s.Stable.plus(stable)
	if !s.Warm.IsZero() {
		s.warmCandidate, s.warmStable = s.warmCandidate.plus(candidate), s.warmStable.plus(stable)
	} else if l.At.Sub(s.Began) >= WarmUpTime && s.Candidate.Requests >= WarmUpRequests {
		s.Warm = l.At
	}
	return s
}

// added is what was counted between two looks, by pods that were seen in the earlier
// one: what others counted, they may have counted at another time.
func added(before, now map[string]Counters) Counters {
	var sum Counters
	for _, pod := range slices.Sorted(maps.Keys(now)) {
		if earlier, known := before[pod]; known {
			sum = sum.plus(now[pod].since(earlier))
		}
	}
	return sum
}

// latest keeps what is known of pods that did not answer.
func latest(before, now map[string]Counters) map[string]Counters {
	all := make(map[string]Counters, len(now))
	maps.Copy(all, before)
	maps.Copy(all, now)
	return all
}
