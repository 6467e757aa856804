package simulation

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/dynamo-operator/dynamo-operator/internal/core/planner/decision"
	"github.com/dynamo-operator/dynamo-operator/internal/core/planner/trace"
)

// Candidate is a policy with its settings, and what came of it.
type Candidate struct {
	Played
	// Size is what a fixed one has; Floors and Pause are what native is told beside its
	// defaults.
	Size   decision.Vector
	Floors decision.Vector
	Pause  time.Duration
}

// Called names a candidate with what it is told.
func (c Candidate) Called() string {
	switch {
	case c.Policy == PolicyFixed:
		return fmt.Sprintf("fixed %d + %d", c.Size[decision.Prefill], c.Size[decision.Decode])
	case c.Policy == PolicyNative && c.Pause > 0:
		return fmt.Sprintf("native, floors %d + %d, pause %s", c.Floors[decision.Prefill], c.Floors[decision.Decode], c.Pause)
	case c.Policy == PolicyNative:
		return fmt.Sprintf("native, floors %d + %d", c.Floors[decision.Prefill], c.Floors[decision.Decode])
	}
	return string(c.Policy)
}

// Bursts are the times at which more than half as much again as the mean comes in.
type Bursts struct {
	Count int
	// Median is the length that half of their time is in: short ones at the edges of a
	// long one count for little.
	Median time.Duration
	// Share of the trace's time.
	Share float64
}

// Advice is which policy to take for a trace, and why.
type Advice struct {
	Take Candidate
	// Others are those that were not taken, the best first.
	Others []Candidate
	// Bound is what who knows the future takes.
	Bound  Played
	Bursts Bursts
	// Reached says that what is taken serves as much as was asked for.
	Reached bool
}

// near are shares of requests that are as good as equal.
const near = 0.005

// Advise plays what a graph could be told for a trace and takes what serves the share of
// requests with the fewest GPU-hours; where nothing serves as many, what serves most.
func Advise(s Setup, share float64, floors decision.Vector) (Advice, error) {
	a := Advice{Bursts: bursts(s.Trace), Bound: BestClairvoyant(s)}
	var all []Candidate
	seen := map[string]bool{}
	native := func(floors decision.Vector, pause time.Duration) error {
		c := Candidate{Floors: limit(floors, s), Pause: pause}
		c.Policy = PolicyNative
		if seen[c.Called()] {
			return nil
		}
		seen[c.Called()] = true
		begun := s
		for r := range decision.Roles {
			begun.Begin[r] = max(begun.Begin[r], c.Floors[r])
		}
		played, err := Play(begun, PolicyNative, func(d *decision.Config) {
			d.Floors = c.Floors
			if pause > 0 {
				d.Pause = pause
			}
		})
		c.Played = played
		all = append(all, c)
		return err
	}
	mean := s.Trace.Rate()
	for _, least := range []decision.Vector{floors, highest(floors, Need(s, mean)), highest(floors, Need(s, 1.5*mean))} {
		for _, pause := range []time.Duration{0, 5 * time.Minute} {
			if err := native(least, pause); err != nil {
				return a, err
			}
		}
	}
	hpa, err := Play(s, PolicyHPA, nil)
	if err != nil {
		return a, err
	}
	all = append(all, Candidate{Played: hpa})
	_, sizes := BestFixed(s)
	for _, p := range sizes {
		c := Candidate{Played: p}
		if _, err := fmt.Sscanf(p.Note, "%d + %d", &c.Size[decision.Prefill], &c.Size[decision.Decode]); err != nil {
			return a, fmt.Errorf("size %q: %w", p.Note, err)
		}
		all = append(all, c)
	}
	slices.SortStableFunc(all, func(x, y Candidate) int { return better(x, y, share) })
	a.Take, a.Others, a.Reached = all[0], oneFixed(all[1:], all[0].Policy == PolicyFixed), all[0].Met >= share
	return a, nil
}

// better orders by whether the share is reached, then by GPU-hours where it is and by
// the share where it is not.
func better(x, y Candidate, share float64) int {
	enough := func(c Candidate) int {
		if c.Met >= share {
			return 0
		}
		return 1
	}
	if e := cmp.Compare(enough(x), enough(y)); e != 0 {
		return e
	}
	if enough(x) == 1 && (x.Met > y.Met+near || y.Met > x.Met+near) {
		return cmp.Compare(y.Met, x.Met)
	}
	return cmp.Or(cmp.Compare(x.GPUHours, y.GPUHours), cmp.Compare(y.Met, x.Met))
}

// oneFixed leaves the best of the sizes.
func oneFixed(all []Candidate, had bool) []Candidate {
	return slices.DeleteFunc(slices.Clone(all), func(c Candidate) bool {
		if c.Policy != PolicyFixed {
			return false
		}
		was := had
		had = true
		return was
	})
}

func highest(a, b decision.Vector) decision.Vector {
	for r := range decision.Roles {
		a[r] = max(a[r], b[r])
	}
	return a
}

// bursts are found in means of three slots, so that chance alone is none.
func bursts(t trace.Trace) Bursts {
	counts := make([]float64, int(t.Length()/Slot)+1)
	for _, q := range t {
		counts[int(q.At/Slot)]++
	}
	mean := float64(len(t)) / float64(len(counts))
	var lengths []time.Duration
	run, high := 0, 0
	end := func() {
		if run > 0 {
			lengths = append(lengths, time.Duration(run*Slot)*time.Second)
		}
		run = 0
	}
	for i := range counts {
		from, to := max(0, i-1), min(len(counts), i+2)
		sum := 0.0
		for _, n := range counts[from:to] {
			sum += n
		}
		if sum/float64(to-from) > 1.5*mean {
			run++
			high++
			continue
		}
		end()
	}
	end()
	b := Bursts{Count: len(lengths), Share: float64(high) / float64(len(counts))}
	slices.Sort(lengths)
	for left := time.Duration(high*Slot) * time.Second / 2; len(lengths) > 0 && left > 0; lengths = lengths[1:] {
		b.Median = lengths[0]
		left -= lengths[0]
	}
	return b
}
