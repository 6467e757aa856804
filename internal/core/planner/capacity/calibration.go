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
}

// Observation is what the requests of a tick got.
type Observation struct {
	Requests          int
	FirstToken, Token float64 // mean; 0 where unknown
}

// Next takes in what was observed beside what was expected, the wait included.
func (c Calibration) Next(o Observation, expected Target) Calibration {
	if o.Requests < fewest {
		return c
	}
	c.Prefill = follow(c.Prefill, o.FirstToken, expected.FirstToken)
	c.Decode = follow(c.Decode, o.Token, expected.Token)
	return c
}

func follow(old, observed, expected float64) float64 {
	ratio := math.Log(observed / expected)
	if math.IsNaN(ratio) || math.IsInf(ratio, 0) {
		return old
	}
	return min(max(old+gain*(ratio-old), math.Log(leastScale)), math.Log(mostScale))
}

// Scales are the factors on the model's times.
func (c Calibration) Scales() (prefill, decode float64) {
	return math.Exp(c.Prefill), math.Exp(c.Decode)
}
