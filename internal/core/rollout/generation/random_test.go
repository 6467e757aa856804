package generation

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
)

var (
	seeds = flag.Uint64("seeds", 1000, "random rollouts to play")
	seed  = flag.Uint64("seed", 0, "the first of them, to play one again")
)

// TestRandomRolloutsKeepTheInvariants plays rollouts of up to five roles and 32
// replicas with steps, faults, changes of mind, views that are behind, and records lost.
func TestRandomRolloutsKeepTheInvariants(t *testing.T) {
	var next, steps atomic.Uint64
	next.Store(*seed)
	var group sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		group.Go(func() {
			for !t.Failed() {
				s := next.Add(1) - 1
				if s >= *seed+*seeds {
					return
				}
				n, err := playRandom(s)
				steps.Add(uint64(n))
				if err != nil {
					t.Errorf("-seed %d -seeds 1: %v", s, err)
				}
			}
		})
	}
	group.Wait()
	t.Logf("%d rollouts, %d steps", *seeds, steps.Load())
}

// randomShape is small mostly, since that is where things collide.
func randomShape(random *rand.Rand) shape {
	roles, most := 1+random.IntN(3), 4
	switch random.IntN(20) {
	case 0:
		roles, most = 1+random.IntN(2), 32
	case 1:
		roles, most = 4+random.IntN(2), 2
	}
	var s shape
	for range roles {
		d := 1 + random.IntN(most)
		if random.IntN(8) == 0 {
			d = 0
		}
		surge, unavailable := random.IntN(3), random.IntN(min(3, d+1))
		if random.IntN(3) == 0 { // the defaults
			surge, unavailable = (d+3)/4, d/4
		}
		if surge+unavailable == 0 {
			surge = 1
		}
		s.desired, s.surge, s.unavailable = append(s.desired, d), append(s.surge, surge), append(s.unavailable, unavailable)
	}
	return s
}

func playRandom(seed uint64) (steps int, err error) {
	random := rand.New(rand.NewPCG(seed, 1))
	s := randomShape(random)
	w := s.begin()
	w.Whole = seed%3 == 1
	if seed%3 == 0 {
		w = paired(w)
	}
	if random.IntN(8) == 0 && s.desired[0] > 0 {
		w = without(w, random.IntN(2) == 0)
	}
	if seed%4 == 1 {
		w = ordinal(w)
	}
	if random.IntN(4) == 0 { // it stops at a step
		w.Level, w.Unapproved = 1+random.IntN(3), true
	}
	seen := clone(w) // what the operator sees, which may be some events behind
	slack, faultsLeft, sound := 0, random.IntN(7), true
	slack = Next(w).Slack
	for range 20000 {
		if random.IntN(3) > 0 {
			seen = clone(w)
		} else {
			seen = behind(seen, w)
		}
		if random.IntN(10) == 0 {
			seen.Stable = mostRoutable(seen) // the record is lost, and what stands in for it may be wrong
		}
		step := Next(seen)
		shuffled := clone(seen)
		random.Shuffle(len(shuffled.Generations), func(i, j int) {
			shuffled.Generations[i], shuffled.Generations[j] = shuffled.Generations[j], shuffled.Generations[i]
		})
		if again := Next(shuffled); again != step {
			return steps, fmt.Errorf("%v: I5 memoryless: %+v, and %+v for the same world in another order", s, step, again)
		}
		if err := Check(seen, step); err != nil {
			return steps, fmt.Errorf("%v: %w", s, err)
		}
		if sound {
			if err := Serves(w, slack); err != nil {
				return steps, fmt.Errorf("%v: %w", s, err)
			}
		}
		events := progress(w)
		current := key(seen) == key(w)
		switch {
		case step.Action != Wait && (current || random.IntN(4) > 0): // otherwise it is killed before it writes
			steps++
			w = take(w, step)
		case step.Action == Wait && len(events) == 0 && current:
			if err := Ended(step); err != nil {
				return steps, fmt.Errorf("%v: %w", s, err)
			}
			if step.Reason == ReasonNoPath {
				return steps, fmt.Errorf("%v: blocked without need: %+v", s, w)
			}
			if w.Unapproved && random.IntN(2) == 0 { // somebody approves of it
				w.Level, w.Unapproved = 0, false
				slack = max(slack, Next(w).Slack) // what was promised led up to the level
				continue
			}
			if faultsLeft == 0 && !w.Unapproved {
				return steps, nil
			}
		}
		if faultsLeft > 0 && (random.IntN(12) == 0 || len(progress(w)) == 0 && step.Action == Wait) {
			faultsLeft--
			sound = false
			if all := faults(w); len(all) > 0 {
				w = happen(w, all[random.IntN(len(all))])
			}
		} else if events := progress(w); len(events) > 0 {
			w = happen(w, events[random.IntN(len(events))])
		}
	}
	return steps, fmt.Errorf("%v: %w", s, violated(EndsInvariant, "does not end: %+v", w))
}

// mostRoutable is the generation that serves most, the target aside.
func mostRoutable(w World) ID {
	best, most := w.Target(), -1
	for _, g := range w.Generations {
		if n := w.Routable(g.ID); g.ID != w.Target() && (n > most || n == most && g.ID < best) {
			best, most = g.ID, n
		}
	}
	return best
}

// behind is an old view with what the operator itself wrote since, which it knows:
// a write with the version that it has seen is refused otherwise.
func behind(old, now World) World {
	if len(old.Generations) != len(now.Generations) || old.Spec != now.Spec || !slices.Equal(old.Roles, now.Roles) || len(old.Aborted) != len(now.Aborted) || old.Stable != now.Stable {
		return clone(now)
	}
	view := clone(now)
	for g := range view.Generations {
		if old.Generations[g].ID != now.Generations[g].ID {
			return view
		}
		for r := range view.Generations[g].Roles {
			seen, was := &view.Generations[g].Roles[r], old.Generations[g].Roles[r]
			seen.Routable, seen.Exist = min(was.Routable, seen.Want), max(was.Exist, seen.Want)
			if was.Ordinals != nil {
				seen.Ordinals = slices.DeleteFunc(slices.Clone(was.Ordinals), func(n int) bool { return n >= seen.Want })
				seen.Routable = len(seen.Ordinals)
			}
			seen.Unschedulable = min(seen.Unschedulable, seen.Want-seen.Routable)
		}
	}
	return view
}
