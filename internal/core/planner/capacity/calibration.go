package capacity

import "math"

// The range of a calibration, the share of a new ratio that it takes over, and how
// many requests a ratio has to be of.
const (
	leastScale, mostScale = 0.5, 3
	gain                  = 0.1
	fewest                = 20
)

// Calibration is how much slower replicas are than their model says. The zero value
// believes the model.
type Calibration struct {
	Prefill, Decode float64 // logarithms of the ratios
	// Handover is by how many seconds first tokens are late that a handover explains.
	Handover float64
}

// Observation is what the requests of a tick got.
type Observation struct {
	Requests          int
	FirstToken, Token float64 // mean; 0 where unknown
}

// Next takes in what was observed beside what was expected, the wait included. What a first
// token is late by may be the handover of its prompt, which says nothing about how fast
// prompts are. So much of it counts for nothing, and never more: a prompt is not taken to be
// faster than the model says for a handover that nobody has measured.
func (c Calibration) Next(o Observation, expected Target, handover float64) Calibration {
	if o.Requests < fewest {
		return c
	}
	explained := 0.0
	if late := o.FirstToken - expected.FirstToken; late > 0 {
		explained = min(late, handover)
	}
	if o.FirstToken > 0 {
		c.Handover += gain * (explained - c.Handover)
	}
	c.Prefill = follow(c.Prefill, o.FirstToken-explained, expected.FirstToken)
	c.Decode = follow(c.Decode, o.Token, expected.Token)
	return c
}

// Slower takes prompts to be so many times as slow as before, and no time to be a handover.
func (c Calibration) Slower(times float64) Calibration {
	c.Prefill, c.Handover = bounded(c.Prefill+math.Log(times)), 0
	return c
}

func follow(old, observed, expected float64) float64 {
	ratio := math.Log(observed / expected)
	if math.IsNaN(ratio) || math.IsInf(ratio, 0) {
		return old
	}
	return bounded(old + gain*(ratio-old))
}

func bounded(ratio float64) float64 {
	return min(max(ratio, math.Log(leastScale)), math.Log(mostScale))
}

// Scales are the factors on the model's times.
func (c Calibration) Scales() (prefill, decode float64) {
	return math.Exp(c.Prefill), math.Exp(c.Decode)
}
