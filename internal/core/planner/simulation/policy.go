package simulation

import (
	"math"

	"github.com/dynamo-operator/dynamo-operator/internal/core/planner/capacity"
	"github.com/dynamo-operator/dynamo-operator/internal/core/planner/decision"
	"github.com/dynamo-operator/dynamo-operator/internal/core/planner/original"
)

// Native is the policy of this project: decision.Decide, as the planner calls it.
type Native struct {
	Config decision.Config
	memory decision.Memory
	// Last is the latest decision.
	Last decision.Decision
}

// NewNative is the native policy for a setup; changes are made to its defaults.
func NewNative(s Setup, change func(*decision.Config)) *Native {
	c := decision.Config{Target: s.Target, Model: s.Model, GPUs: s.GPUs, Budget: s.Budget, Floors: decision.Vector{1, 1}}.Defaults()
	if change != nil {
		change(&c)
	}
	return &Native{Config: c}
}

// Interval is a tick.
func (n *Native) Interval() int { return Slot }

// Decide is one tick.
func (n *Native) Decide(v *View) (decision.Vector, bool) {
	n.Last, n.memory = decision.Decide(n.Config, v.Snapshot(), n.memory)
	return n.Last.Replicas, true
}

// Original is the planner of January 2026.
type Original struct {
	Config  original.Config
	Profile *original.Profile
	memory  original.Memory
}

// NewOriginal is that planner for a setup, which it is given a profile of.
func NewOriginal(s Setup, profile *original.Profile, interval int) *Original {
	c := original.Default()
	c.Interval, c.FirstToken, c.Token = float64(interval), s.Target.FirstToken*1e3, s.Target.Token*1e3
	c.PrefillGPUs, c.DecodeGPUs = s.GPUs[decision.Prefill], s.GPUs[decision.Decode]
	if c.Budget = s.Budget; c.Budget <= 0 {
		c.Budget = -1
	}
	return &Original{Config: c, Profile: profile}
}

// Interval is its adjustment interval.
func (o *Original) Interval() int { return int(o.Config.Interval) }

// Decide is one interval. A graph is not ready while something starts.
func (o *Original) Decide(v *View) (decision.Vector, bool) {
	seen := observe(v.closed(o.Config.Interval))
	ready := v.Ready()
	seen.Prefill, seen.Decode, seen.GraphReady = ready[decision.Prefill], ready[decision.Decode], v.Settled()
	d, memory := original.Decide(o.Config, o.Profile, seen, o.memory)
	o.memory = memory
	return decision.Vector{d.Prefill, d.Decode}, d.Outcome == original.Decided
}

// observe is what a frontend's metrics say of slots: of requests that ended, of first tokens,
// and of the time to each of the other tokens.
func observe(slots []Count) original.Observation {
	var ended, firsts int
	var seen original.Observation
	for i := range slots {
		s := &slots[i]
		ended += s.Ended
		firsts += s.firsts
		seen.Input += s.endedInput
		seen.Output += s.output
		seen.FirstToken += s.first * 1e3
		seen.Token += s.tokens * 1e3
		seen.Duration += s.duration
	}
	n := float64(ended)
	seen.Requests, seen.Token = n, seen.Token/seen.Output
	seen.Input, seen.Output, seen.Duration = seen.Input/n, seen.Output/n, seen.Duration/n
	seen.FirstToken /= float64(firsts)
	return seen
}

// HPA is a HorizontalPodAutoscaler a role, on requests per replica, tuned as well as
// its targets allow: 15 s, a tolerance of a tenth, up by twice or four, down by the
// highest wish of 300 s.
type HPA struct {
	setup    Setup
	targets  [decision.Roles]float64
	wishes   [decision.Roles][]int
	lookback int
}

// The shares of what a replica could take that the autoscalers aim at.
const (
	hpaPrefill = 0.7
	hpaDecode  = 0.8
)

// NewHPA knows the mean lengths of the trace, as who tunes targets by hand does.
func NewHPA(s Setup) *HPA {
	input, output := s.Trace.Means()
	batch, _ := capacity.Batch(s.Model, input+output/2, s.Target.Token, 1)
	return &HPA{setup: s, targets: [decision.Roles]float64{hpaPrefill, hpaDecode * batch}, lookback: 300 / 15}
}

// Interval is its sync period.
func (h *HPA) Interval() int { return 15 }

// Decide is one sync.
func (h *HPA) Decide(v *View) (decision.Vector, bool) {
	inPrefill, active := v.Mean(15)
	totals, ready, out := [decision.Roles]float64{inPrefill, active}, v.Ready(), v.Wanted()
	for r := range decision.Roles {
		current, target := out[r], h.targets[r]
		wish := current
		ratio := totals[r] / float64(max(1, ready[r])) / target
		if math.Abs(ratio-1) > 0.1 {
			wish = int(math.Ceil(float64(ready[r]) * ratio))
			if ready[r] != current { // those that start are taken as idle, and nothing shrinks for them
				if ratio < 1 {
					wish = max(wish, current)
				} else {
					wish = max(wish, int(math.Ceil(totals[r]/target)))
				}
			}
			wish = min(wish, max(2*current, current+4))
		}
		wish = max(1, wish)
		h.wishes[r] = append(h.wishes[r], wish)
		if wish < current {
			highest := wish
			for _, w := range h.wishes[r][max(0, len(h.wishes[r])-h.lookback):] {
				highest = max(highest, w)
			}
			wish = min(current, highest)
		}
		out[r] = wish
	}
	return limit(out, h.setup), true
}

// limit is what autoscalers of their own get of a quota: who comes first.
func limit(v decision.Vector, s Setup) decision.Vector {
	if s.Budget <= 0 || v.GPUs(s.GPUs) <= s.Budget {
		return v
	}
	share := float64(s.Budget) / float64(v.GPUs(s.GPUs))
	p := max(1, int(float64(v[decision.Prefill])*share+0.5))
	for p > 1 && p*s.GPUs[decision.Prefill]+s.GPUs[decision.Decode] > s.Budget {
		p--
	}
	return decision.Vector{p, max(1, (s.Budget-p*s.GPUs[decision.Prefill])/max(1, s.GPUs[decision.Decode]))}
}

// Fixed never changes anything.
type Fixed struct{}

// Interval is any.
func (Fixed) Interval() int { return 1 << 30 }

// Decide writes nothing.
func (Fixed) Decide(*View) (decision.Vector, bool) { return decision.Vector{}, false }

// Clairvoyant knows every request before it comes, and starts in time what the true
// need, times a factor, asks for.
type Clairvoyant struct {
	setup Setup
	needs []decision.Vector // by slot
}

// NewClairvoyant looks through the trace.
func NewClairvoyant(s Setup, factor float64) *Clairvoyant {
	n := int(s.Trace.Length()/Slot) + 2
	type sums struct{ count, input, output float64 }
	slots := make([]sums, n)
	for _, q := range s.Trace {
		at := &slots[int(q.At/Slot)]
		at.count++
		at.input += float64(q.Input)
		at.output += float64(q.Output)
	}
	c := &Clairvoyant{setup: s}
	margins := capacity.DefaultMargins()
	margins.Token = 0.97
	for i, own := range slots {
		need := decision.Vector{1, 1}
		if own.count > 0 {
			near := sums{}
			from, to := max(0, i-3), min(n, i+2)
			for _, x := range slots[from:to] {
				near.count += x.count
				near.input += x.input
				near.output += x.output
			}
			length := capacity.Lengths{Input: own.input / own.count}
			need[decision.Prefill] = capacity.Prefill(s.Model, capacity.Load{Rate: factor * own.count / Slot, Lengths: length}, s.Target, 1, margins).Replicas
			length = capacity.Lengths{Input: near.input / near.count, Output: near.output / near.count}
			need[decision.Decode] = capacity.Decode(s.Model, capacity.Load{Rate: factor * near.count / Slot / float64(to-from), Lengths: length}, s.Target, 1, margins).Replicas
		}
		c.needs = append(c.needs, need)
	}
	return c
}

// Interval is a slot.
func (c *Clairvoyant) Interval() int { return Slot }

// Decide is one slot.
func (c *Clairvoyant) Decide(v *View) (decision.Vector, bool) {
	return c.at(int(v.Now() / Slot)), true
}

// at is the highest need until what is started in a slot is ready.
func (c *Clairvoyant) at(at int) decision.Vector {
	var out decision.Vector
	for _, need := range c.needs[min(at, len(c.needs)-1):min(len(c.needs), at+int(c.setup.Startup/Slot)+3)] {
		for r := range decision.Roles {
			out[r] = max(out[r], need[r])
		}
	}
	return limit(out, c.setup)
}

// Need is what a constant rate of a trace's requests needs.
func Need(s Setup, rate float64) decision.Vector {
	input, output := s.Trace.Means()
	load := capacity.Load{Rate: rate, Lengths: capacity.Lengths{Input: input, Output: output}}
	margins := capacity.DefaultMargins()
	return limit(decision.Vector{
		capacity.Prefill(s.Model, load, s.Target, 1, margins).Replicas,
		capacity.Decode(s.Model, load, s.Target, 1, margins).Replicas,
	}, s)
}

// Beginning is what the first minute of a trace needs.
func Beginning(s Setup) decision.Vector {
	return Need(s, float64(len(s.Trace.Between(0, 60)))/60+0.1)
}
