package planner

import (
	"time"

	"github.com/dynamo-operator/dynamo-operator/internal/core/planner/decision"
	"github.com/dynamo-operator/dynamo-operator/internal/core/planner/observation"
	"github.com/dynamo-operator/dynamo-operator/internal/core/planner/original"
	"github.com/dynamo-operator/dynamo-operator/internal/planner/config"
)

// asOriginal is what the original's policy keeps between looks. It begins to count once the
// graph has been ready, half a minute after its start at the earliest.
type asOriginal struct {
	begun   bool
	decided time.Duration
	counted observation.Interval
	past    original.Memory
}

const originalSleep = 30 * time.Second

// decideAsOriginal speaks at the end of an interval. What it asks a Prometheus for are means of
// each frontend, and counts of an interval's length, whenever it comes to ask.
func (p *Planner) decideAsOriginal(ready bool, s decision.Snapshot, r observation.Reading) (decision.Decision, bool) {
	wanted := decision.Vector{s.Roles[decision.Prefill].Wanted, s.Roles[decision.Decode].Wanted}
	hold := decision.Decision{Replicas: wanted, Reason: decision.Steady}
	old := &p.old
	if !old.begun {
		old.begun, old.decided = ready && s.Now >= originalSleep, s.Now
		return hold, false
	}
	old.counted = old.counted.Plus(r)
	took := s.Now - old.decided
	if took < p.Config.Interval || p.timing == nil || p.timing.Profile == nil {
		return hold, false
	}
	seen := old.counted
	old.counted, old.decided = observation.Interval{}, s.Now
	c := p.originalConfig()
	said, past := original.Decide(c, p.timing.Profile, original.Observation{
		Requests: seen.Ended() * c.Interval / took.Seconds(), Duration: seen.Mean(func(c observation.Counters) observation.Histogram { return c.Duration }),
		Input:      seen.Mean(func(c observation.Counters) observation.Histogram { return c.Input }),
		Output:     seen.Mean(func(c observation.Counters) observation.Histogram { return c.Output }),
		FirstToken: 1e3 * seen.Mean(func(c observation.Counters) observation.Histogram { return c.FirstToken }),
		Token:      1e3 * seen.Mean(func(c observation.Counters) observation.Histogram { return c.Token }),
		Prefill:    s.Roles[decision.Prefill].Ready, Decode: s.Roles[decision.Decode].Ready, GraphReady: ready,
	}, old.past)
	old.past = past
	if said.Outcome != original.Decided {
		hold.Limited = string(said.Outcome)
		return hold, true
	}
	hold.Replicas, hold.Horizon = decision.Vector{said.Prefill, said.Decode}, p.Config.Interval
	hold.Forecast.Level, hold.Forecast.Rate = seen.Ended()/took.Seconds(), said.Requests/c.Interval
	hold.Reason = decision.Grow
	if hold.Replicas.GPUs(p.timing.GPUs) < wanted.GPUs(p.timing.GPUs) {
		hold.Reason = decision.Shrink
	} else if hold.Replicas == wanted {
		hold.Reason = decision.Steady
	}
	hold.Roles[decision.Prefill].Need, hold.Roles[decision.Decode].Need = said.Prefill, said.Decode
	return hold, true
}

func (p *Planner) originalConfig() original.Config {
	c := original.Default()
	c.Interval, c.FirstToken, c.Token = p.Config.Interval.Seconds(), float64(p.Config.TTFT.Milliseconds()), float64(p.Config.ITL)/1e6
	c.MinEndpoint, c.PrefillGPUs, c.DecodeGPUs = p.Config.Floors[decision.Decode], max(1, p.timing.GPUs[decision.Prefill]), max(1, p.timing.GPUs[decision.Decode])
	if c.Budget = p.Config.Budget; c.Budget <= 0 {
		c.Budget = -1
	}
	c.Predictor, c.Log1p, c.QLevel, c.QTrend, c.RMeasure, c.NoCorrection = p.Config.Predictor, p.Config.Log1p, p.Config.QLevel, p.Config.QTrend, p.Config.RNoise, p.Config.NoCorrection
	c.WithoutPrefill, c.WithoutDecode = p.Config.Mode == config.DecodeOnly, p.Config.Mode == config.PrefillOnly
	return c
}
