package observation

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/dynamo-operator/dynamo-operator/internal/core/planner/capacity"
)

// lengthsOver is over how much time the lengths of requests are taken.
const lengthsOver = 5 * time.Minute

// mostBins is how many ticks are made up for after a pause; a longer one says nothing
// about its single ticks.
const mostBins = 12

// away is for how long the counters of a frontend are kept that no Service lists, and
// mostAway of how many: one that comes back has counted since then, and not since it began.
const (
	away     = time.Hour
	mostAway = 256
)

// Look is one look at all frontends of a graph.
type Look struct {
	At time.Duration
	// Frontends are their counters by address; Failed says for others why there are none.
	Frontends map[string]Counters
	Failed    map[string]string
}

// Traffic is what has been seen of requests. The zero value has seen nothing.
type Traffic struct {
	at    time.Duration
	last  map[string]counted
	parts []part // of lengthsOver, the oldest first
}

// counted is what a frontend had counted when it was seen last.
type counted struct {
	Counters

	at time.Duration
}

type part struct {
	at    time.Duration
	delta Counters
}

// Reading is what came of a look.
type Reading struct {
	// Failed says what could not be read; empty if all was.
	Failed string
	// Bins are the requests that began since the last look that succeeded, a tick each, of the
	// last mostBins at most. Over is for how long they came; 0 where nobody knows what came.
	Bins          []float64
	Over          time.Duration
	Lengths       capacity.Lengths
	Observed      capacity.Observation
	Queue, Active float64
	// Delta is what was counted since then, and Frontends by whom.
	Delta     Counters
	Frontends map[string]Frontend

	// tells are the gauges of frontends.
	tells Counters
}

// Beside is a reading with what engines of both roles tell where frontends do not: who waits
// for a first token waits or is computed in a prefill engine, and whoever has one is in a
// decode engine. What all frontends tell is all of it, and is not counted twice. Where some
// engines are silent there is at least what the others tell, and nothing is learnt of times,
// which may be of waits that nobody saw.
func (r Reading) Beside(prefill, decode Engines) Reading {
	if r.Failed != "" {
		return r
	}
	if !r.tells.TellsQueued && prefill.Told > 0 {
		r.Queue = max(r.Queue, prefill.Waiting+prefill.Running)
		r.Active = max(0, r.tells.InFlight-r.Queue)
	}
	if !r.tells.TellsInFlight && decode.Told > 0 {
		r.Active = max(r.Active, decode.Waiting+decode.Running)
	}
	if !r.tells.TellsQueued && prefill.partly() || !r.tells.TellsInFlight && decode.partly() {
		r.Observed = capacity.Observation{}
	}
	return r
}

// Next takes in a look. One at which a frontend did not answer changes nothing: what it
// has counted meanwhile is in the next answer.
func (t Traffic) Next(l Look, tick time.Duration) (Reading, Traffic) {
	var r Reading
	if len(l.Failed) > 0 {
		address := slices.Min(slices.Collect(maps.Keys(l.Failed)))
		r.Failed = "frontend " + address + ": " + l.Failed[address]
		return r, t
	}
	if len(l.Frontends) == 0 {
		r.Failed = "no frontend is ready"
		return r, t
	}
	delta := Counters{TellsInFlight: true, TellsQueued: true}
	frontends := map[string]Frontend{}
	known := false
	for _, address := range slices.Sorted(maps.Keys(l.Frontends)) {
		c := l.Frontends[address]
		// What a frontend had counted before it was first seen is of unknown age: one that
		// was not ready until now would be a burst of all the requests of its life.
		earlier, seen := t.last[address]
		if !seen {
			earlier.Counters = c
		}
		known = known || seen
		own := c.since(earlier.Counters)
		delta = delta.Plus(own)
		frontends[address] = Frontend{own, c}
	}
	elapsed := l.At - t.at
	t.last, t.at = remember(t.last, l), l.At
	r.Queue, r.Active, r.tells = delta.Queued, max(0, delta.InFlight-delta.Queued), delta
	if !known {
		return r, t
	}
	bins := min(mostBins, max(1, int(math.Round(float64(elapsed)/float64(tick)))))
	for range bins {
		// A bin is a tick long, whatever time the look took.
		r.Bins = append(r.Bins, delta.Began*float64(tick)/float64(max(elapsed, tick/2)))
	}
	r.Delta, r.Over = delta, elapsed
	r.Frontends = frontends
	r.Observed = capacity.Observation{Requests: int(min(delta.FirstToken.Count, delta.Ended))}
	if r.Observed.Requests > 0 {
		r.Observed.FirstToken, r.Observed.Token = finite(delta.FirstToken.Mean()), finite(delta.Token.Mean())
	}
	t.parts = append(slices.Clip(t.parts), part{l.At, delta})
	for len(t.parts) > 0 && l.At-t.parts[0].at > lengthsOver {
		t.parts = t.parts[1:]
	}
	r.Lengths = t.lengths()
	return r, t
}

// remember is what the frontends of a look have counted, and those that were there before:
// one that is not ready for a look comes back with all that it has counted in its life.
func remember(last map[string]counted, l Look) map[string]counted {
	var gone []string
	for address, c := range last {
		if _, there := l.Frontends[address]; !there && l.At-c.at <= away {
			gone = append(gone, address)
		}
	}
	slices.SortFunc(gone, func(a, b string) int {
		return cmp.Or(-cmp.Compare(last[a].at, last[b].at), cmp.Compare(a, b))
	})
	kept := map[string]counted{}
	for _, address := range gone[:min(len(gone), mostAway)] {
		kept[address] = last[address]
	}
	for address, c := range l.Frontends {
		kept[address] = counted{c, l.At}
	}
	return kept
}

func (t Traffic) lengths() capacity.Lengths {
	var all Counters
	for _, p := range t.parts {
		all = all.Plus(p.delta)
	}
	if all.Input.Count == 0 || !(all.Input.Mean() > 0) {
		return capacity.Lengths{}
	}
	l := capacity.Lengths{Input: all.Input.Mean()}
	l.Input95, l.InputSpread = all.Input.shape(0.95)
	l.Input95 = max(l.Input95, l.Input)
	if all.Output.Count > 0 {
		l.Output = all.Output.Mean()
	}
	if all.Cached.Count > 0 {
		l.Hit = min(1, all.Cached.Sum/all.Input.Sum)
	}
	return l
}

// Replicas is what there is of a role, as the graph's status says it.
type Replicas struct {
	Wanted, Ready int
	// Draining replicas end; their pods are still there.
	Draining int
	// Message is the first cause a person could act on, and Unschedulable whether it is
	// that no node has room.
	Message       string
	Unschedulable bool
	// Held says that those that are missing are not on their way: the graph sleeps, or a
	// budget of GPUs holds them back.
	Held bool
}

// samples is how many starts are remembered.
const samples = 20

// Starts is what has been seen of the starts of a role. The zero value has seen nothing.
type Starts struct {
	seen   bool
	at     time.Duration
	wanted int
	ready  int
	since  []start         // those that are not ready, the oldest first
	took   []time.Duration // the newest last
	held   bool            // at the last look
	// Since when no node has had room, and when that was said last.
	homeless         bool
	homelessT, saidT time.Duration
}

// silent is for how long a status may say something else before a node is taken to have
// been found: while replicas change it speaks of the change for a look or two.
const silent = 20 * time.Second

// start is one replica on its way. Of those that were before the first look nobody
// knows since when.
type start struct {
	at    time.Duration
	known bool
}

// Starting are the ages of replicas that are not ready.
func (s Starts) Starting(now time.Duration) []time.Duration {
	ages := make([]time.Duration, 0, len(s.since))
	for _, one := range s.since {
		ages = append(ages, now-one.at)
	}
	return ages
}

// Unschedulable is for how long no node has had room. A look that was not told so gives
// up nothing: it may be that a node was found.
func (s Starts) Unschedulable(now time.Duration) time.Duration {
	if !s.homeless || s.saidT != s.at {
		return 0
	}
	return now - s.homelessT
}

// Next takes in what there is now. Replicas get ready in the order in which they were
// asked for; who asks for fewer gives up the newest.
func (s Starts) Next(now time.Duration, r Replicas) Starts {
	s.since, s.took = slices.Clone(s.since), slices.Clone(s.took)
	for i := range s.since {
		// Those that were held back begin once they are not.
		s.since[i].known = s.since[i].known || s.held && !r.Held
	}
	// What is wanted more now was asked for after the last look at the earliest.
	for wanted := s.wanted; s.seen && wanted < r.Wanted; wanted++ {
		s.since = append(s.since, start{s.at, true})
	}
	for ready := s.ready; s.seen && ready < r.Ready && len(s.since) > 0; ready++ {
		if s.since[0].known {
			s.took = append(s.took, now-s.since[0].at)
		}
		s.since = s.since[1:]
	}
	s.took = s.took[max(0, len(s.took)-samples):]
	missing := max(0, r.Wanted-r.Ready)
	for len(s.since) < missing {
		s.since = append(s.since, start{now, s.seen})
	}
	s.since = s.since[:missing]
	for i := range s.since {
		if r.Held { // one that gets ready meanwhile began nobody knows when
			s.since[i] = start{now, false}
		}
	}
	s.held = r.Held
	s.seen, s.at, s.wanted, s.ready = true, now, r.Wanted, r.Ready
	switch {
	case missing == 0:
		s.homeless = false
	case r.Unschedulable:
		if !s.homeless {
			s.homeless, s.homelessT = true, now
		}
		s.saidT = now
	case now-s.saidT > silent:
		s.homeless = false
	}
	return s
}

// Startup is how long starts of some roles took, in 19 of 20 cases; 0 is unknown.
func Startup(roles ...Starts) time.Duration {
	longest := time.Duration(0)
	for _, s := range roles {
		if len(s.took) > 0 {
			sorted := slices.Sorted(slices.Values(s.took))
			longest = max(longest, sorted[(len(sorted)*95+99)/100-1])
		}
	}
	return longest
}

// Lacking is what a message of the scheduler says is missing.
func Lacking(message string) string {
	_, what, _ := strings.Cut(message, "Insufficient ")
	if what, _, _ = strings.Cut(what, ","); what == "" {
		return message
	}
	what, _, _ = strings.Cut(what, " ")
	return strings.TrimRight(what, ".")
}
