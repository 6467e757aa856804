package decision

import (
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dynamo-operator/dynamo-operator/internal/core/planner/capacity"
)

func config() Config {
	return Config{Target: capacity.Target{FirstToken: 0.2, Token: 0.01}, Model: capacity.H200(), GPUs: Vector{1, 1}, Floors: Vector{1, 1}, Budget: 16}.Defaults()
}

// world is a cluster in which what is written comes true after a while.
type world struct {
	config  Config
	now     time.Duration
	startup time.Duration
	wanted  Vector
	ready   Vector
	starts  [Roles][]time.Duration // when they began
	ends    [Roles][]time.Duration // when they will be gone
	memory  Memory
	drain   func() time.Duration
}

func newWorld(c Config, startup time.Duration, begin Vector) *world {
	return &world{config: c, startup: startup, wanted: begin, ready: begin, drain: func() time.Duration { return 20 * time.Second }}
}

func (w *world) snapshot(requests float64) Snapshot {
	s := Snapshot{
		Now: w.now, Bins: []float64{requests}, Startup: w.startup,
		Lengths: capacity.Lengths{Input: 3000, Input95: 3000, Output: 300},
	}
	for r := range Roles {
		s.Roles[r] = State{Wanted: w.wanted[r], Ready: w.ready[r], Draining: len(w.ends[r])}
		for _, began := range w.starts[r] {
			s.Roles[r].Starting = append(s.Roles[r].Starting, w.now-began)
		}
	}
	return s
}

// held are the GPUs that somebody has.
func (w *world) held() int {
	n := 0
	for r := range Roles {
		n += w.config.GPUs[r] * (w.ready[r] + len(w.starts[r]) + len(w.ends[r]))
	}
	return n
}

// write does with a role what a controller does.
func (w *world) write(r Role, to int) {
	w.wanted[r] = to
	for w.ready[r]+len(w.starts[r]) < to {
		w.starts[r] = append(w.starts[r], w.now)
	}
	for w.ready[r]+len(w.starts[r]) > to {
		if n := len(w.starts[r]); n > 0 {
			w.starts[r] = w.starts[r][:n-1]
		} else {
			w.ready[r]--
		}
		w.ends[r] = append(w.ends[r], w.now+w.drain())
	}
}

// pass lets a tick go by.
func (w *world) pass() {
	w.now += w.config.Tick
	for r := range Roles {
		for len(w.starts[r]) > 0 && w.now-w.starts[r][0] >= w.startup {
			w.starts[r] = w.starts[r][1:]
			w.ready[r]++
		}
		var left []time.Duration
		for _, at := range w.ends[r] {
			if at > w.now {
				left = append(left, at)
			}
		}
		w.ends[r] = left
	}
}

func (w *world) tick(requests float64) Decision { return w.play(w.snapshot(requests)) }

// play lets a look be decided on.
func (w *world) play(s Snapshot) Decision {
	var d Decision
	d, w.memory = Decide(w.config, s, w.memory)
	for r := range Role(Roles) {
		w.write(r, d.Replicas[r])
	}
	w.pass()
	return d
}

func TestNoBudgetIsEverExceededWhateverIsLostOnTheWay(t *testing.T) {
	for seed := range uint64(30) {
		chance := rand.New(rand.NewPCG(seed, 1))
		c := config()
		c.GPUs, c.Budget = Vector{1 + chance.IntN(4), 1 + chance.IntN(4)}, 8+chance.IntN(24)
		w := newWorld(c, time.Duration(10+chance.IntN(120))*time.Second, Vector{1, 1})
		w.drain = func() time.Duration { return time.Duration(chance.IntN(90)) * time.Second }
		rate := 10.0
		for range 300 {
			if chance.IntN(20) == 0 {
				rate = 100 * chance.Float64()
			}
			s := w.snapshot(5 * rate * (0.8 + 0.4*chance.Float64()))
			s.Lengths.Input, s.Lengths.Output = 100+8000*chance.Float64(), 10+600*chance.Float64()
			s.Queue, s.Active = float64(chance.IntN(200)), float64(chance.IntN(300))
			if chance.IntN(10) == 0 {
				s.Failed = "scrape"
			}
			d, memory := Decide(w.config, s, w.memory)
			if chance.IntN(20) != 0 { // else the planner was restarted
				w.memory = memory
			} else {
				w.memory = Memory{}
			}
			// Either write may be lost, and they come in any order.
			for _, r := range chance.Perm(Roles) {
				if chance.IntN(10) > 0 {
					w.write(Role(r), d.Replicas[r])
				}
				if w.held() > c.Budget {
					t.Fatalf("seed %d: %d GPUs held of a budget of %d after %+v", seed, w.held(), c.Budget, d)
				}
			}
			for r := range Roles {
				if d.Replicas[r] < c.Floors[r] {
					t.Fatalf("seed %d: %s has %d replicas, its floor is %d", seed, Role(r), d.Replicas[r], c.Floors[r])
				}
			}
			w.pass()
		}
	}
}

func TestABudgetBelowTheFloorsChangesNothingAndSaysSo(t *testing.T) {
	c := config()
	c.Floors, c.Budget = Vector{3, 3}, 4
	w := newWorld(c, 30*time.Second, Vector{2, 2})
	for range 100 {
		d := w.tick(200)
		if d.Replicas != (Vector{2, 2}) || d.Reason != BelowFloors || d.Limited == "" {
			t.Fatalf("got %+v", d)
		}
	}
}

func TestWhoSeesNothingNeverShrinksAndStillHoldsFloors(t *testing.T) {
	c := config()
	c.Floors = Vector{2, 1}
	w := newWorld(c, 30*time.Second, Vector{1, 7})
	for i := range 200 {
		s := w.snapshot(0)
		s.Failed = "frontend: connection refused"
		if i%3 == 0 {
			s.Failed, s.Bins = "", []float64{math.NaN()}
		}
		var d Decision
		d, w.memory = Decide(w.config, s, w.memory)
		if d.Replicas != (Vector{2, 7}) || d.Reason != Blind || d.BlindFor != i+1 {
			t.Fatalf("tick %d: %+v", i, d)
		}
		for r := range Role(Roles) {
			w.write(r, d.Replicas[r])
		}
		w.pass()
	}
}

// TestWhoHasNotLookedForAWhileTakesNothingAway: a planner that was restarted, or saw nothing
// for a while, does not know how much came meanwhile.
func TestWhoHasNotLookedForAWhileTakesNothingAway(t *testing.T) {
	for rule, forget := range map[string]func(*world){
		"it begins anew": func(w *world) { w.memory = Memory{} },
		"it saw nothing": func(w *world) {
			for range 60 {
				s := w.snapshot(0)
				s.Failed = "frontend: connection refused"
				_, w.memory = Decide(w.config, s, w.memory)
				w.pass()
			}
		},
	} {
		t.Run(rule, func(t *testing.T) {
			w := newWorld(config(), 30*time.Second, Vector{1, 1})
			for range 120 {
				w.tick(30 * 5)
			}
			settled := w.wanted
			forget(w)
			// The first look counts nothing: how old the counters are is not known.
			s := w.snapshot(0)
			s.Bins, s.Lengths = nil, capacity.Lengths{}
			var d Decision
			d, w.memory = Decide(w.config, s, w.memory)
			if d.Replicas != settled {
				t.Errorf("at the first look %v became %v", settled, d.Replicas)
			}
			w.pass()
			for range 120 {
				w.tick(30 * 5)
				if w.wanted[Prefill] < settled[Prefill] || w.wanted[Decode] < settled[Decode] {
					t.Fatalf("%v became %v", settled, w.wanted)
				}
			}
		})
	}
}

// TestAPlannerThatHasSeenNothingDividesItsBudgetAsItWasDivided: who begins above a budget has to
// cut at once, and does not know yet which role needs what.
func TestAPlannerThatHasSeenNothingDividesItsBudgetAsItWasDivided(t *testing.T) {
	for _, x := range []struct {
		rule   string
		begin  Vector
		budget int
		want   Vector
	}{
		{"evenly", Vector{8, 8}, 8, Vector{4, 4}},
		{"by the share that each role has", Vector{4, 12}, 8, Vector{2, 6}},
		{"and leaves the floor of a role that has none", Vector{0, 12}, 8, Vector{0, 7}},
	} {
		t.Run(x.rule, func(t *testing.T) {
			c := config()
			c.Budget = x.budget
			w := newWorld(c, 30*time.Second, x.begin)
			s := w.snapshot(0)
			s.Bins, s.Lengths = nil, capacity.Lengths{}
			d, _ := Decide(w.config, s, Memory{})
			if d.Replicas != x.want || d.Limited == "" {
				t.Errorf("%v become %v, want %v: %+v", x.begin, d.Replicas, x.want, d)
			}
		})
	}
}

func TestNobodyEndsWhileRequestsWait(t *testing.T) {
	w := newWorld(config(), 30*time.Second, Vector{4, 2})
	look := func(queue float64) {
		s := w.snapshot(0)
		s.Queue = queue
		var d Decision
		d, w.memory = Decide(w.config, s, w.memory)
		for r := range Role(Roles) {
			w.write(r, d.Replicas[r])
		}
		w.pass()
	}
	for range 12 * 10 {
		look(60)
		if w.wanted[Prefill] < 4 {
			t.Fatalf("%v while 60 wait", w.wanted)
		}
	}
	for range 12 * 10 {
		look(0)
	}
	if w.wanted != (Vector{1, 1}) {
		t.Errorf("%v are left when nobody waits any more", w.wanted)
	}
}

func TestAnIdleGraphReachesItsFloors(t *testing.T) {
	w := newWorld(config(), 30*time.Second, Vector{6, 8})
	for range 12 * 30 {
		w.tick(0)
	}
	if w.wanted != (Vector{1, 1}) {
		t.Errorf("after half an hour without a request there are %v", w.wanted)
	}
}

func TestShrinksAreRareLateAndRegretted(t *testing.T) {
	for seed := range uint64(2) {
		chance := rand.New(rand.NewPCG(seed, 2))
		c := config()
		w := newWorld(c, time.Duration(20+chance.IntN(100))*time.Second, Vector{2, 2})
		least := max(c.Pause, w.startup)
		rate := 20.0
		var grown, shrunk [Roles]moment
		for range 720 {
			if chance.IntN(15) == 0 {
				rate = 60 * chance.Float64()
			}
			before, past := w.wanted, w.memory.Roles
			w.tick(5 * rate)
			now := w.now - c.Tick
			for r := range Roles {
				pause := past[r].pause(now, c, w.startup)
				switch {
				case w.wanted[r] > before[r]:
					again := shrunk[r].within(pause+w.startup, now) && past[r].before > 0 && w.wanted[r] >= past[r].before && past[r].tookBack.within(longestPause, now)
					if after := w.memory.Roles[r].Pause; again && after < min(longestPause, 2*pause) {
						t.Fatalf("seed %d: %s took a shrink back, and pauses %v after %v", seed, Role(r), after, pause)
					}
					grown[r] = moment{now, true}
				case w.wanted[r] < before[r]:
					if grown[r].within(least, now) || shrunk[r].within(least/4, now) {
						t.Fatalf("seed %d: %s shrinks at %v, grew at %v, shrank at %v", seed, Role(r), now, grown[r], shrunk[r])
					}
					shrunk[r] = moment{now, true}
				}
			}
		}
	}
}

// TestOneShrinkTakenBackIsChance: a single look can do that, and where a pause depends on it the
// same requests cost some per cent more or not. Two within the longest pause are a habit.
func TestOneShrinkTakenBackIsChance(t *testing.T) {
	const startup = 30 * time.Second
	c := config()
	least := max(c.Pause, startup)
	for _, x := range []struct {
		rule string
		back []time.Duration // when shrinks are taken back
		want time.Duration
	}{
		{"one changes nothing", []time.Duration{5 * time.Minute}, least},
		{"a second soon after it doubles the pause", []time.Duration{5 * time.Minute, 30 * time.Minute}, 2 * least},
		{"and so does a third", []time.Duration{5 * time.Minute, 15 * time.Minute, 16 * time.Minute}, 4 * least},
		{"two that are half an hour apart are chance", []time.Duration{5 * time.Minute, 36 * time.Minute}, least},
	} {
		var p Past
		for _, at := range x.back {
			p.moved(at-startup, 3, 2, startup, c)
			p.moved(at, 2, 3, startup, c)
		}
		// What decays meanwhile is less than a second in a minute.
		if got := p.pause(x.back[len(x.back)-1], c, startup); got < x.want-2*time.Second || got > x.want {
			t.Errorf("%s: a pause of %v, want %v", x.rule, got, x.want)
		}
	}
}

// TestAPlannerThatHasJustBegunShrinksNothing: it cannot know what was needed a moment ago.
func TestAPlannerThatHasJustBegunShrinksNothing(t *testing.T) {
	c := config()
	w := newWorld(c, 30*time.Second, Vector{6, 8})
	least := max(c.Pause, w.startup)
	for w.now < least {
		w.tick(1)
		if w.wanted != (Vector{6, 8}) {
			t.Fatalf("after %v there are %v", w.now-c.Tick, w.wanted)
		}
	}
	for w.now < 3*least {
		w.tick(1)
	}
	if w.wanted[Prefill] >= 6 || w.wanted[Decode] >= 8 {
		t.Errorf("after %v there are %v still", w.now, w.wanted)
	}
}

func TestConstantTrafficSettles(t *testing.T) {
	for _, rate := range []float64{0.2, 5, 20, 40} {
		w := newWorld(config(), 30*time.Second, Vector{2, 2})
		for range 12 * 10 {
			w.tick(5 * rate)
		}
		settled := w.wanted
		for range 12 * 30 {
			w.tick(5 * rate)
			if w.wanted != settled {
				t.Fatalf("%v requests a second: %v became %v", rate, settled, w.wanted)
			}
		}
	}
}

func TestMoreLoadNeverMeansFewer(t *testing.T) {
	settle := func(uneven, rate, input, output float64, target capacity.Target) Vector {
		c := config()
		c.Budget, c.Target = 0, target
		w := newWorld(c, 30*time.Second, Vector{1, 1})
		for i := range 100 {
			s := w.snapshot(5 * rate * (1 + uneven*float64(2*(i%2)-1)))
			s.Lengths = capacity.Lengths{Input: input, Input95: 1.5 * input, InputSpread: 0.3, Output: output}
			var d Decision
			d, w.memory = Decide(c, s, w.memory)
			for r := range Role(Roles) {
				w.write(r, d.Replicas[r])
			}
			w.pass()
		}
		return w.wanted
	}
	chance := rand.New(rand.NewPCG(3, 3))
	for range 20 {
		rate, input, output := 1+60*chance.Float64(), 100+6000*chance.Float64(), 10+500*chance.Float64()
		target := capacity.Target{FirstToken: 0.1 + chance.Float64(), Token: 0.006 + 0.02*chance.Float64()}
		uneven := 0.3 * float64(chance.IntN(2)) // as evenly as can be, or more by chance than chance
		base := settle(uneven, rate, input, output, target)
		for name, more := range map[string]Vector{
			"more arrivals":   settle(uneven, rate*1.5, input, output, target),
			"longer prompts":  settle(uneven, rate, input*1.5, output, target),
			"longer answers":  settle(uneven, rate, input, output*1.5, target),
			"tighter targets": settle(uneven, rate, input, output, capacity.Target{FirstToken: target.FirstToken * 0.7, Token: target.Token * 0.7}),
		} {
			if more[Prefill] < base[Prefill] || more[Decode] < base[Decode] {
				t.Errorf("%s: %v became %v at %v/s, %v and %v tokens, %+v", name, base, more, rate, input, output, target)
			}
		}
	}
}

func TestTheMomentDoesNotMatterAndTheSameComesOfTheSame(t *testing.T) {
	play := func(from time.Duration) []Vector {
		chance := rand.New(rand.NewPCG(5, 5))
		w := newWorld(config(), 30*time.Second, Vector{1, 1})
		w.now = from
		var all []Vector
		for range 300 {
			w.tick(200 * chance.Float64())
			all = append(all, w.wanted)
		}
		return all
	}
	if diff := cmp.Diff(play(0), play(1234567*time.Millisecond)); diff != "" {
		t.Errorf("twenty minutes later:\n%s", diff)
	}
}

func TestADecisionLeavesWhatItWasGivenAsItWas(t *testing.T) {
	w := newWorld(config(), 30*time.Second, Vector{1, 1})
	for range 100 {
		w.tick(100)
	}
	s := w.snapshot(150)
	first, _ := Decide(w.config, s, w.memory)
	Decide(w.config, w.snapshot(900), w.memory)
	second, _ := Decide(w.config, s, w.memory)
	if !reflect.DeepEqual(first, second) {
		t.Errorf("the same snapshot and memory gave\n%+v, then\n%+v", first, second)
	}
}

func TestAnyNumbersGiveADecision(t *testing.T) {
	odd := []float64{0, -1, 1, math.NaN(), math.Inf(1), math.Inf(-1), 1e300, 5e-324}
	chance := rand.New(rand.NewPCG(9, 9))
	pick := func() float64 { return odd[chance.IntN(len(odd))] }
	for range 1000 {
		c := config()
		c.Quantile, c.Budget, c.Handover = pick(), chance.IntN(40)-5, pick()
		s := Snapshot{
			Now: time.Duration(chance.Int64()), Bins: []float64{pick(), pick()}, Queue: pick(), Active: pick(), Startup: time.Duration(chance.Int64()) - math.MaxInt64/2,
			Lengths:  capacity.Lengths{Input: pick(), Input95: pick(), InputSpread: pick(), Output: pick(), Hit: pick()},
			Observed: capacity.Observation{Requests: 50, FirstToken: pick(), Token: pick()},
		}
		for r := range Roles {
			s.Roles[r] = State{Wanted: chance.IntN(9) - 1, Ready: chance.IntN(5), Draining: chance.IntN(3)}
		}
		_, m := Decide(c, s, Memory{})
		d, _ := Decide(c, s, m)
		for r := range Roles {
			if d.Replicas[r] < 0 || d.Replicas[r] > capacity.Most {
				t.Fatalf("%d replicas of %s from %+v", d.Replicas[r], Role(r), s)
			}
		}
	}
}

func TestAStepIsFollowedAtOnceAndNotTwice(t *testing.T) {
	for _, startup := range []time.Duration{30 * time.Second, 120 * time.Second} {
		c := config()
		c.Budget = 0
		w := newWorld(c, startup, Vector{1, 1})
		for range 120 {
			w.tick(5 * 5)
		}
		settled := func() Vector {
			v := newWorld(c, startup, Vector{1, 1})
			for range 200 {
				v.tick(45 * 5)
			}
			return v.wanted
		}()
		for i := range 60 {
			w.tick(45 * 5)
			for r := range Roles {
				if i >= 1 && w.wanted[r] < settled[r] {
					t.Errorf("start %v: %d ticks after the step %s has %d of %d", startup, i+1, Role(r), w.wanted[r], settled[r])
				}
				if w.wanted[r] > settled[r]+1 {
					t.Errorf("start %v: %d ticks after the step %s has %d, %d are enough", startup, i+1, Role(r), w.wanted[r], settled[r])
				}
			}
		}
	}
}

func TestGPUsMoveFromOneRoleToTheOtherOnceTheyAreFree(t *testing.T) {
	c := config()
	c.Budget = 5
	w := newWorld(c, 30*time.Second, Vector{1, 4})
	for range 240 {
		s := w.snapshot(5 * 25)
		s.Lengths = capacity.Lengths{Input: 8000, Input95: 8000, Output: 5}
		var d Decision
		d, w.memory = Decide(c, s, w.memory)
		for r := range Role(Roles) {
			w.write(r, d.Replicas[r])
		}
		if w.held() > c.Budget {
			t.Fatalf("%d GPUs are held", w.held())
		}
		w.pass()
	}
	if w.wanted != (Vector{4, 1}) {
		t.Errorf("got %v", w.wanted)
	}
}

func TestReplicasWithoutANodeAreGivenUpAndNotAskedForAgainAtOnce(t *testing.T) {
	w := newWorld(config(), 30*time.Second, Vector{2, 2})
	for range 60 {
		w.tick(40 * 5)
	}
	s := w.snapshot(40 * 5)
	wanted := s.Roles[Decode].Wanted
	s.Roles[Decode].Unschedulable, s.Roles[Decode].UnschedulableFor, s.Roles[Decode].Resource = 2, 70*time.Second, "nvidia.com/gpu"
	d, m := Decide(w.config, s, w.memory)
	if d.Replicas[Decode] != wanted-2 || d.Reason != Unschedulable || d.Limited == "" {
		t.Fatalf("got %+v", d)
	}
	later := w.snapshot(40 * 5)
	later.Roles[Decode].Wanted = wanted - 2
	later.Now += time.Minute
	if d, _ := Decide(w.config, later, m); d.Replicas[Decode] != wanted-2 {
		t.Errorf("a minute later: %+v", d)
	}
	later.Now += learnt
	if d, _ := Decide(w.config, later, m); d.Replicas[Decode] <= wanted-2 {
		t.Errorf("after %v: %+v", learnt, d)
	}
}

func BenchmarkDecide(b *testing.B) {
	w := newWorld(config(), 120*time.Second, Vector{1, 1})
	chance := rand.New(rand.NewPCG(1, 1))
	for range 2000 {
		w.tick(200 * chance.Float64())
	}
	s := w.snapshot(123)
	b.ReportAllocs()
	for b.Loop() {
		Decide(w.config, s, w.memory)
	}
}

// A planner sees that a start is over when it looks, and looks are never exactly a tick apart:
// a start of three ticks is seen as one of three and a little.
func TestTheHorizonDoesNotDependOnHowEvenLooksAre(t *testing.T) {
	const s = time.Second
	for startup, want := range map[time.Duration]time.Duration{
		14900 * time.Millisecond: 20 * s, 15 * s: 20 * s, 15040 * time.Millisecond: 20 * s, 15400 * time.Millisecond: 20 * s,
		16 * s: 25 * s, 30 * s: 35 * s, 120 * s: 125 * s,
	} {
		if d, _ := Decide(config(), newWorld(config(), startup, Vector{1, 1}).snapshot(10), Memory{}); d.Horizon != want {
			t.Errorf("starts of %s: it looks %s ahead, want %s", startup, d.Horizon, want)
		}
	}
}

func TestWhatComesNowNeedsNoForecastAndNoFloor(t *testing.T) {
	c := config()
	c.Floors = Vector{3, 3}
	w := newWorld(c, 30*time.Second, Vector{3, 3})
	var d Decision
	for range 24 {
		d, w.memory = Decide(c, w.snapshot(200), w.memory) // 40 a second
		w.now += c.Tick
	}
	for rate, want := range map[float64]Vector{0: {}, d.Forecast.Rate: {d.Roles[Prefill].Need, d.Roles[Decode].Need}, 0.1: {1, 1}, math.NaN(): {}} {
		if got := c.Needed(rate, w.memory); got != want {
			t.Errorf("%v a second need %v, want %v", rate, got, want)
		}
	}
	if got := c.Needed(40, Memory{}); got != (Vector{}) {
		t.Errorf("requests of lengths that nobody has seen need %v", got)
	}
	c.GPUs[Prefill] = 0
	if got := c.Needed(40, w.memory); got[Prefill] != 0 || got[Decode] == 0 {
		t.Errorf("of a role that is not scaled %v", got)
	}
}

// slowly is a look at requests whose tokens take so many times what the model says, at the
// number of sequences that settles then.
func (w *world) slowly(rate, times float64) Snapshot {
	s := w.snapshot(rate * w.config.Tick.Seconds())
	each := func(n float64) float64 {
		return times * w.config.Model.Token(n/float64(w.ready[Decode]), s.Lengths.Context())
	}
	n := 0.0
	for range 200 {
		n = min(rate*s.Lengths.Output*each(n), 1e5)
	}
	service := w.config.Model.Prefill(s.Lengths.Input)
	wait := min(5, capacity.Wait(rate, service, w.ready[Prefill]))
	s.Active, s.Queue = n, max(0, rate*(wait+service)-float64(w.ready[Prefill]))
	s.Observed = capacity.Observation{Requests: int(5 * rate), FirstToken: service + wait, Token: each(n)}
	return s
}

// Prefill replicas are busy for nine tenths of the time where the target of the first token has
// room for waits: that says nothing about how long tokens take.
func TestDecodeThatIsSlowIsLearntWhilePrefillIsBusy(t *testing.T) {
	for rule, want := range map[string]struct{ times, least, most float64 }{
		"slower": {1.5, 1.4, 1.55}, "as the model says": {1, 0.95, 1.05}, "faster": {0.8, 0.75, 0.85},
	} {
		t.Run(rule, func(t *testing.T) {
			c := config()
			c.Target.FirstToken, c.Budget = 0.5, 0
			w := newWorld(c, 30*time.Second, Vector{3, 3})
			var s Snapshot
			for w.now < 20*time.Minute {
				s = w.slowly(45, want.times)
				w.play(s)
			}
			_, decode := w.memory.Calibration.Scales()
			if decode < want.least || decode > want.most || s.Observed.Token > c.Target.Token {
				t.Errorf("%v replicas: a token takes %.1f ms, and is taken to be %.2f times as slow", w.wanted, 1e3*s.Observed.Token, decode)
			}
		})
	}
}

// handing is upstream's scenario as the published planner of SGLang sees it.
func handing() Config {
	c := config()
	c.Target = capacity.Target{FirstToken: 0.5, Token: 0.05}
	c.Model = capacity.Curve{Lengths: []float64{4000, 8000}, Times: []float64{0.055, 0.11}, Step: 0.005, Tokens: 1e6}
	c.Handover = 0.126
	return c
}

// prompts is a look at requests whose prompts take so long, and so much longer until decode
// has them.
func (w *world) prompts(rate, prompt, handover float64) Snapshot {
	requests := rate * w.config.Tick.Seconds()
	scatter := 0.7 * math.Sqrt(requests) // of those who come by chance, who wait now and then
	if w.now/w.config.Tick%2 == 0 {
		scatter = -scatter
	}
	s := w.snapshot(requests + scatter)
	ready := float64(w.ready[Prefill])
	first := min(5, prompt+capacity.Wait(rate, prompt, w.ready[Prefill])) + handover
	s.Lengths = capacity.Lengths{Input: 4000, Input95: 4000, Output: 150}
	s.Observed = capacity.Observation{Requests: int(5 * rate), FirstToken: first, Token: 0.005}
	s.Queue, s.Active = max(0, rate*first-ready), rate*150*0.005
	return s
}

func TestAHandoverKeepsNoReplica(t *testing.T) {
	w := newWorld(handing(), 10*time.Second, Vector{2, 2})
	for _, step := range []struct {
		rate float64
		long time.Duration
		want Vector
	}{{8, 10 * time.Minute, Vector{1, 1}}, {18, time.Minute, Vector{2, 1}}, {18, 10 * time.Minute, Vector{2, 1}}} {
		for end := w.now + step.long; w.now < end; {
			w.play(w.prompts(step.rate, 0.055, 0.126))
		}
		if w.wanted != step.want {
			scale, _ := w.memory.Calibration.Scales()
			t.Errorf("%v a second end with %v, want %v; prompts taken to be %.1f times as slow", step.rate, w.wanted, step.want, scale)
		}
	}
}

// Prompts that are more than twice as slow as the model says, of engines that hand over in no
// time: a replica is taken away for the handover that is not there once, and not again.
func TestAHandoverThatIsNotThereIsDoubted(t *testing.T) {
	w := newWorld(handing(), 10*time.Second, Vector{2, 2})
	shrinks, short := 0, time.Duration(0)
	for w.now < time.Hour {
		before := w.wanted[Prefill]
		w.play(w.prompts(7, 0.12, 0))
		if w.wanted[Prefill] < before {
			shrinks++
		}
		if w.ready[Prefill] < 2 {
			short += w.config.Tick
		}
	}
	if w.wanted[Prefill] != 2 || shrinks > 1 || short > 2*time.Minute {
		scale, _ := w.memory.Calibration.Scales()
		t.Errorf("%v after %d shrinks and %s with too few, prompts taken to be %.1f times as slow", w.wanted, shrinks, short, scale)
	}
}

// Requests that come by chance wait now and then, one behind the other: that they do says
// nothing against a handover that takes as long as is believed.
func TestAHandoverIsNotDoubtedForRequestsThatComeByChance(t *testing.T) {
	for rate, target := range map[float64]float64{8: 0.5, 12: 0.5, 13: 1, 14: 2} {
		for seed := range uint64(2) {
			c := handing()
			c.Target.FirstToken = target
			w := newWorld(c, 10*time.Second, Vector{1, 1})
			chance := rand.New(rand.NewPCG(seed, 7))
			next, free, leaves := 0.0, []float64{}, []float64{}
			for w.now < 6*time.Hour {
				for len(free) < w.ready[Prefill] {
					free = append(free, w.now.Seconds())
				}
				free = free[:w.ready[Prefill]]
				end, requests, first := (w.now + w.config.Tick).Seconds(), 0, 0.0
				for ; next < end; next += chance.ExpFloat64() / rate {
					slices.Sort(free)
					free[0] = max(next, free[0]) + 0.055
					leaves = append(leaves, free[0]+0.126)
					requests, first = requests+1, first+free[0]+0.126-next
				}
				leaves = slices.DeleteFunc(leaves, func(at float64) bool { return at <= end })
				s := w.prompts(rate, 0.055, 0.126)
				s.Bins = []float64{float64(requests)}
				s.Observed.Requests, s.Observed.FirstToken = requests, first/float64(max(1, requests))
				s.Queue = float64(max(0, len(leaves)-w.ready[Prefill]))
				w.play(s)
			}
			if scale, _ := w.memory.Calibration.Scales(); w.memory.Waits >= doubted || scale > 1.2 {
				t.Errorf("%v a second, seed %d: prompts taken to be %.1f times as slow, doubted after %d looks", rate, seed, scale, w.memory.Waits)
			}
		}
	}
}

func TestWhoIsHandedOverWaitsForNobody(t *testing.T) {
	for _, x := range []struct {
		rule     string
		handover float64
		want     int
	}{
		{"those who wait keep a replica", 0, 8},
		{"those who are handed over keep none", 0.126, 4},
	} {
		t.Run(x.rule, func(t *testing.T) {
			c := handing()
			c.Handover = x.handover
			w := newWorld(c, 10*time.Second, Vector{8, 2})
			for w.now < 20*time.Minute {
				s := w.prompts(60, 0.055, 0.126)
				s.Observed.FirstToken = 0 // the queue alone
				s.Queue = 9
				w.play(s)
			}
			if w.wanted[Prefill] != x.want {
				t.Errorf("%v, want %d of prefill", w.wanted, x.want)
			}
		})
	}
}

// evenly is a look at requests that come at even distances, and so wait for nobody.
func (w *world) evenly(rate float64) Snapshot {
	s := w.prompts(rate, 0.091, 0)
	s.Bins = []float64{rate * w.config.Tick.Seconds()}
	if busy := rate * 0.091; busy < float64(w.ready[Prefill]) {
		s.Observed.FirstToken, s.Queue = 0.091, 0
	}
	return s
}

// paced is upstream's scenario for the planner that has no profile: 4000 tokens take 91 ms.
func paced() Config {
	c := config()
	c.Model = capacity.Curve{Lengths: []float64{4000, 8000}, Times: []float64{0.091, 0.182}, Step: 0.005, Tokens: 1e6}
	return c
}

func TestRequestsAtEvenDistancesKeepNoReplicaForWaits(t *testing.T) {
	late := func(w *world, rate float64) Snapshot {
		s := w.evenly(rate)
		s.Observed.FirstToken = 0.19
		return s
	}
	for _, x := range []struct {
		rule        string
		uncorrected bool
		look        func(w *world, rate float64) Snapshot
		want        [2]Vector // at 8 and at 18 a second
	}{
		{"at even distances nobody waits", false, (*world).evenly, [2]Vector{{1, 1}, {2, 1}}},
		{"by chance some do", false, func() func(*world, float64) Snapshot {
			chance := rand.New(rand.NewPCG(1, 1))
			return func(w *world, rate float64) Snapshot {
				s := w.evenly(rate)
				s.Bins = []float64{0}
				for left := chance.ExpFloat64(); left < 5*rate; left += chance.ExpFloat64() {
					s.Bins[0]++
				}
				return s
			}
		}(), [2]Vector{{2, 1}, {3, 1}}},
		{"as many in each bin, and late: in bursts", true, late, [2]Vector{{2, 1}, {3, 1}}},
	} {
		t.Run(x.rule, func(t *testing.T) {
			c := paced()
			c.Uncorrected = x.uncorrected
			w := newWorld(c, 10*time.Second, Vector{1, 1})
			for i, rate := range []float64{8, 18} {
				for range 12 * 10 {
					w.play(x.look(w, rate))
				}
				if w.wanted != x.want[i] {
					t.Errorf("%v a second end with %v, want %v", rate, w.wanted, x.want[i])
				}
			}
		})
	}
}

func TestAStepOfRequestsAtEvenDistancesIsFollowedExactly(t *testing.T) {
	w := newWorld(paced(), 5*time.Second, Vector{1, 1})
	for range 12 * 10 {
		w.play(w.evenly(8))
	}
	queue := 0.0
	for look := range 24 {
		s := w.evenly(18)
		// What came while there was one replica waits; two are rid of it soon.
		queue = max(0, queue+s.Bins[0]-float64(w.ready[Prefill])*w.config.Tick.Seconds()/w.config.Model.Prefill(s.Lengths.Input))
		s.Queue = queue
		w.play(s)
		if w.wanted != (Vector{2, 1}) {
			t.Errorf("%d looks after the step there are %v", look+1, w.wanted)
		}
	}
}

// Bursts that counts do not show are told by first tokens, also where replicas are as busy as
// only even distances allow, and while another role's replica has no node.
func TestRequestsThatWaitAllTheSameDoNotComeAtEvenDistances(t *testing.T) {
	late := func(s Snapshot) Snapshot {
		s.Observed.FirstToken, s.Queue = 0.51, 6
		return s
	}
	for _, x := range []struct {
		rule  string
		rate  float64
		look  func(w *world, s Snapshot) Snapshot
		after int // replicas of prefill
	}{
		{"later bursts", 10, func(w *world, s Snapshot) Snapshot {
			if w.now > 20*time.Minute && w.ready[Prefill] == 1 {
				return late(s)
			}
			return s
		}, 2},
		{"a replica of decode that has no node", 8, func(w *world, s Snapshot) Snapshot {
			s.Roles[Decode].Starting = []time.Duration{w.now}
			if w.ready[Prefill] == 1 {
				return late(s)
			}
			return s
		}, 2},
		{"a backlog that goes is none", 18, func(w *world, s Snapshot) Snapshot {
			if w.now > 20*time.Minute && w.now < 20*time.Minute+25*time.Second {
				return late(s)
			}
			return s
		}, 2},
	} {
		t.Run(x.rule, func(t *testing.T) {
			c := paced()
			c.Uncorrected = true // that nothing else learns
			w := newWorld(c, 10*time.Second, Vector{1, 1})
			for w.now < time.Hour {
				w.play(x.look(w, w.evenly(x.rate)))
			}
			if w.wanted[Prefill] != x.after {
				t.Errorf("%v after an hour at %v a second, want %d of prefill", w.wanted, x.rate, x.after)
			}
		})
	}
}

// steady lets a rate come for a while, and is what there is after it.
func (w *world) steady(rate float64, long time.Duration) Vector {
	for end := w.now + long; w.now < end; {
		w.tick(rate * w.config.Tick.Seconds())
	}
	return w.wanted
}

// TestWhatPilesUpWhileReplicasStartIsNotCountedAgain: sequences stay where they are decoded, and
// those on their way get what comes.
func TestWhatPilesUpWhileReplicasStartIsNotCountedAgain(t *testing.T) {
	for _, x := range []struct {
		rule   string
		active []float64 // by look
		more   bool
	}{
		{"what ends soon needs nobody", []float64{400, 400, 0}, false},
		{"what stays needs more", []float64{400, 400, 400, 400, 400, 400, 400, 400}, true},
	} {
		t.Run(x.rule, func(t *testing.T) {
			w := newWorld(config(), 30*time.Second, Vector{2, 2})
			settled := w.steady(20, 10*time.Minute)
			for _, active := range x.active {
				s := w.snapshot(20 * 5)
				s.Active = active
				w.play(s)
				if w.wanted[Decode] > settled[Decode]+2 {
					t.Fatalf("%d of decode, %d are enough", w.wanted[Decode], settled[Decode])
				}
			}
			if more := w.wanted[Decode] > settled[Decode]; more != x.more {
				t.Errorf("%v became %v", settled, w.wanted)
			}
		})
	}
	w := newWorld(config(), 120*time.Second, Vector{1, 1})
	w.steady(5, 10*time.Minute)
	enough := newWorld(config(), 120*time.Second, Vector{1, 1}).steady(30, 20*time.Minute)
	for i := range 24 {
		s := w.snapshot(30 * 5)
		s.Active = 60 * float64(i)
		w.play(s)
		if w.wanted[Decode] > enough[Decode]+1 {
			t.Fatalf("after %d looks there are %v, %v are enough", i+1, w.wanted, enough)
		}
	}
}

func TestABacklogNeedsBothRoles(t *testing.T) {
	w := newWorld(config(), 30*time.Second, Vector{2, 2})
	settled := w.steady(20, 10*time.Minute)
	s := w.snapshot(20 * 5)
	s.Queue = 1200
	if d := w.play(s); d.Replicas[Prefill] <= settled[Prefill] || d.Replicas[Decode] <= settled[Decode] {
		t.Errorf("%v became %v for 1200 that wait: those are decoded as well", settled, d.Replicas)
	}
}

// TestWhatCameIsHeldForTwoStarts: a shrink that is taken back costs a start, and one more in
// which requests are late. What was only feared is not held so long.
func TestWhatCameIsHeldForTwoStarts(t *testing.T) {
	const startup = 120 * time.Second
	w := newWorld(config(), startup, Vector{1, 1})
	high := w.steady(40, 20*time.Minute)
	ended := w.now
	for w.now < ended+2*startup-w.config.Tick {
		w.tick(5 * 5)
		if w.wanted != high {
			t.Fatalf("%s after 40 a second came %v became %v", w.now-ended, high, w.wanted)
		}
	}
	if low := w.steady(5, 4*startup); low[Prefill] >= high[Prefill] || low[Decode] >= high[Decode] {
		t.Errorf("%v are left of %v", low, high)
	}
}

// TestBothRolesShrinkInOneWrite: where the other role has less to do a moment later, a shrink
// waits for it, for a quarter of a pause at most.
func TestBothRolesShrinkInOneWrite(t *testing.T) {
	for seed := range uint64(4) {
		chance := rand.New(rand.NewPCG(seed, 3))
		c := config()
		c.Budget = 0
		w := newWorld(c, 30*time.Second, Vector{8, 8})
		w.steady(100, 10*time.Minute)
		var last [Roles]moment
		for rate := 100.0; rate > 5; rate -= 0.5 + chance.Float64() {
			before := w.wanted
			w.tick(5 * rate)
			at, p, d := w.now, w.wanted[Prefill] < before[Prefill], w.wanted[Decode] < before[Decode]
			for r, alone := range [Roles]bool{p && !d, d && !p} {
				if alone && last[1-r].within(c.Pause/4, at) {
					t.Errorf("seed %d: %s shrinks %s after the other role did", seed, Role(r), at-last[1-r].at)
				}
				if alone {
					last[r] = moment{at, true}
				}
			}
		}
	}
}

// TestWhoGrowsTakesTheOtherRoleAlong: one that a tenth more requests would need grows now, in
// the same write.
func TestWhoGrowsTakesTheOtherRoleAlong(t *testing.T) {
	for seed := range uint64(4) {
		chance := rand.New(rand.NewPCG(seed, 4))
		c := config()
		c.Budget = 0
		w := newWorld(c, 30*time.Second, Vector{1, 1})
		w.steady(5, 10*time.Minute)
		for rate := 5.0; rate < 100; rate += chance.Float64() {
			before := w.wanted
			d := w.tick(5 * rate)
			if w.wanted == before {
				continue
			}
			soon := c.Needed(1.1*d.Forecast.Rate, w.memory)
			for r := range Roles {
				if w.wanted[1-r] > before[1-r] && w.wanted[r] == before[r] && soon[r] > w.wanted[r] {
					t.Errorf("seed %d: %v became %v, and a tenth more needs %v", seed, before, w.wanted, soon)
				}
			}
		}
	}
}
