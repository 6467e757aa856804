// Package decision says how many replicas of prefill and decode a graph is to have:
// one decision about both, inside one budget of GPUs. It is given a snapshot and what
// it remembered and gives back what to write and what to remember; it has no clock,
// no client and no chance.
//
//	bins -> forecast -> need -> react -> hysteresis -> both roles -> ceilings -> budget -> step
//
// Every arrow may only do what the next ones can bound: the budget is last but for
// the step, which gives GPUs out only when they are free.
package decision

import (
	"math"
	"time"

	"github.com/dynamo-operator/dynamo-operator/internal/core/planner/capacity"
	"github.com/dynamo-operator/dynamo-operator/internal/core/planner/forecast"
)

// Role is a part of a graph that is scaled.
type Role int

// The roles.
const (
	Prefill Role = iota
	Decode

	Roles = 2
)

func (r Role) String() string { return [...]string{"prefill", "decode"}[r] }

// Vector is a number of each role.
type Vector [Roles]int

// GPUs are those of so many replicas.
func (v Vector) GPUs(each Vector) int { return v[Prefill]*each[Prefill] + v[Decode]*each[Decode] }

// Config is what does not change while a planner runs.
type Config struct {
	// Tick is how often a decision is made, and the length of a bin.
	Tick   time.Duration
	Target capacity.Target
	Model  capacity.Model
	// Margins are what a need leaves free.
	Margins capacity.Margins
	// Handover is how many seconds a computed prompt takes from a prefill replica to one of
	// decode, at most; 0 where nobody knows. It is in the time to the first token, and keeps
	// no prefill replica busy.
	Handover float64
	// Uncorrected believes the model, whatever requests got.
	Uncorrected bool
	// GPUs of one replica; a role with none is not scaled.
	GPUs Vector
	// Floors are the fewest replicas.
	Floors Vector
	// Budget is the most GPUs of both roles together; 0 or less is none.
	Budget int
	// Quantile of the forecast.
	Quantile float64
	// Pause is how long a need must be gone before replicas are taken away, at least; a
	// start that takes longer makes it longer.
	Pause time.Duration
	// Drain is in how much time a backlog is to be gone, at least.
	Drain time.Duration
	// Filter has the variances of Kalman's filter.
	FilterLevel, FilterTrend, FilterNoise float64
}

// Defaults fills in what is not given.
func (c Config) Defaults() Config {
	def := func(at *time.Duration, value time.Duration) {
		if *at <= 0 {
			*at = value
		}
	}
	def(&c.Tick, 5*time.Second)
	def(&c.Pause, 60*time.Second)
	def(&c.Drain, 20*time.Second)
	if c.Margins == (capacity.Margins{}) {
		c.Margins = capacity.DefaultMargins()
	}
	if !(c.Quantile > 0 && c.Quantile < 1) {
		c.Quantile = 0.7
	}
	if c.FilterLevel+c.FilterTrend+c.FilterNoise == 0 {
		c.FilterLevel, c.FilterTrend, c.FilterNoise = 1, 0.1, 10
	}
	if !(c.Handover > 0) || math.IsInf(c.Handover, 0) {
		c.Handover = 0
	}
	return c
}

// Snapshot is everything that was observed.
type Snapshot struct {
	// Now counts from any moment, always the same.
	Now time.Duration
	// Failed names what could not be read. A decision that does not see never shrinks.
	Failed string
	// Bins are the requests that began since the last snapshot, a tick each, the newest last.
	Bins    []float64
	Lengths capacity.Lengths
	// Queue are requests that wait for prefill, Active those that decode.
	Queue, Active float64
	Observed      capacity.Observation
	Roles         [Roles]State
	// Startup is how long a replica takes to serve, in 19 of 20 cases; 0 is unknown.
	Startup time.Duration
	// Grant is what GPUs somebody above leaves to this graph; 0 or less is no limit.
	Grant int
}

// State is what there is of a role.
type State struct {
	Wanted int // as the spec says now
	Ready  int
	// Starting are the ages of replicas that are not ready.
	Starting []time.Duration
	// Draining replicas end, and hold their GPUs until they have.
	Draining int
	// Unschedulable are those of the starting ones for which no node has had room for
	// as long as is told.
	Unschedulable    int
	UnschedulableFor time.Duration
	// Resource is what they lack.
	Resource string
}

// held are the replicas that have GPUs or will, whatever becomes of them.
func (s State) held() int { return max(s.Wanted, s.Ready+len(s.Starting)) + s.Draining }

// Memory is what a decision leaves to the next. The zero value has seen nothing.
type Memory struct {
	Forecast forecast.State
	// Evenness is how evenly requests come, and Bursts at how many looks in a row they waited
	// all the same for prefill replicas that had time for them.
	Evenness    forecast.Evenness
	Bursts      int
	Calibration capacity.Calibration
	// Waits is at how many looks in a row requests waited for prefill replicas that had time
	// for them, as far as is believed.
	Waits int
	// full is since when there is more to decode than fits.
	full    moment
	Blind   int // ticks in a row
	Roles   [Roles]Past
	Lengths capacity.Lengths
}

// Past is what is remembered of a role.
type Past struct {
	// needs of the longest pause, the newest last.
	needs []needAt
	// since is from when on they were looked at without a long gap.
	since time.Duration
	// Pause is how long a need must be gone; 0 is the least. Regret doubles it.
	Pause time.Duration
	// pausedAt is when Pause was last made.
	pausedAt time.Duration
	grown    moment // the last growth
	shrunk   moment // the last shrink
	before   int    // replicas before the shrinks that may still be taken back
	tookBack moment // the last growth that took shrinks back
	ceiling  int    // replicas that there is room for
	until    time.Duration
	resource string
}

// needAt is what was to be ready for at a time, and what of it had come by then.
type needAt struct {
	at         time.Duration
	need, came int
}

// moment is a time, if there was one.
type moment struct {
	at  time.Duration
	was bool
}

func (m moment) within(d, now time.Duration) bool { return m.was && now-m.at < d }

// Reason is why a decision is what it is.
type Reason string

// The reasons.
const (
	// Steady changes nothing.
	Steady Reason = "Steady"
	// Grow and Shrink follow the need.
	Grow   Reason = "NeedGrew"
	Shrink Reason = "NeedFell"
	// Rebalance moves GPUs from one role to the other.
	Rebalance Reason = "Rebalance"
	// Blind holds what there is.
	Blind Reason = "MetricsUnavailable"
	// BelowFloors changes nothing: the budget is less than the fewest replicas.
	BelowFloors Reason = "BudgetBelowFloors"
	// Unschedulable gives up replicas that no node has room for.
	Unschedulable Reason = "Unschedulable"
)

// Decision is what to write, and why.
type Decision struct {
	// Replicas are to be written where they differ from what is wanted.
	Replicas Vector
	Reason   Reason
	// Limited names what stands between the need and the replicas; empty if nothing does.
	Limited string
	// BlindFor is how many ticks nothing was seen.
	BlindFor int

	Forecast forecast.Forecast
	Horizon  time.Duration
	// Even is how evenly requests come: 0 by chance, 1 at even distances.
	Even  float64
	Roles [Roles]Term
	// Clamps are what changed the numbers on the way, in order.
	Clamps []Clamp
}

// Term is why a role has its number.
type Term struct {
	// Need is what the forecast needs, Backlog what those who wait need on top, Target
	// what comes of both by hysteresis, before budgets.
	Need, Backlog, Target int
	// Binding is what the need is made of.
	Binding Binding
	// Wait is the wait for prefill at the need, Shorter that at one replica less.
	Wait, Shorter time.Duration
	// Batch is what a decode replica takes.
	Batch float64
	// ShrinksAt is when the role can shrink next, as Snapshot.Now counts.
	ShrinksAt time.Duration
	Pause     time.Duration
}

// Binding is what decides a need.
type Binding string

// The bindings.
const (
	ByFloor   Binding = "floor"
	ByWait    Binding = "time to the first token"
	ByToken   Binding = "time between tokens"
	ByCache   Binding = "cache"
	ByBacklog Binding = "backlog"
)

// Clamp is one change on the way.
type Clamp struct {
	By       string
	From, To Vector
}
