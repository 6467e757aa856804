package search

import (
	"cmp"
	"math"
	"math/rand/v2"
)

// A band holds nine of ten measurements. Errors are taken to be normal on a
// logarithmic scale, so its edges lie so many deviations from the value.
const edge = 1.645

// deviation of the truth from the value, as a logarithm.
func (b Band) deviation() float64 {
	if b.Value <= 0 || b.High <= b.Value {
		return 0
	}
	return math.Log(b.High/b.Value) / edge
}

// at is what the truth is below with that chance: the value itself with one half.
func (b Band) at(confidence float64) float64 {
	if confidence <= 0.5 {
		return b.Value
	}
	return b.Value * math.Exp(b.deviation()*math.Sqrt2*math.Erfinv(2*confidence-1))
}

// safe is a time that the goal's confidence is kept with; without one, the value.
func (p *Problem) safe(b Band) float64 { return b.at(p.Goal.Confidence) }

// lower is the share of a rate that is left at the lower edge, where what it
// depends on takes as long as the goal's confidence asks to reckon with.
func (p *Problem) lower(b Band) float64 {
	if b.Value <= 0 {
		return 1
	}
	return b.Value / p.safe(b)
}

// Certainty says how sure a ranking is.
type Certainty struct {
	// First and Podium are the chances that the chosen candidate is the best one,
	// and that it is among the best three.
	First, Podium float64
	// Candidates are those that were held against each other.
	Candidates int
}

const (
	podium = 3
	draws  = 2000
	// rivals are those that a ranking is asked about: further behind, none wins.
	rivals = 40
)

// Certainty draws what the truth might be, as often as it takes, and ranks again.
// What all candidates have in common, a model on a GPU that is slower than thought,
// makes targets missed but changes no order; what they have not does. It draws the
// same lots every time.
func (o *Outcome) Certainty() Certainty {
	n := min(rivals, len(o.Candidates))
	c := Certainty{Candidates: n}
	if n == 1 {
		c.First, c.Podium = 1, 1
		return c
	}
	own := 0.0
	if len(o.able) > 0 {
		own = math.Log1p(o.able[0].Constants().Error.AmongP90) / edge
	}
	chance := rand.New(rand.NewPCG(1, uint64(n)))
	var first, among int
	for range draws {
		common := chance.NormFloat64()
		ahead := 0
		var best Candidate
		for i := range n {
			drawn := o.Problem.drawn(o.Candidates[i], common, chance.NormFloat64(), chance.NormFloat64(), own)
			if i == 0 {
				best = drawn
			} else if o.Problem.ahead(&drawn, &best) {
				ahead++
			}
		}
		if ahead == 0 {
			first++
		}
		if ahead < podium {
			among++
		}
	}
	c.First, c.Podium = float64(first)/draws, float64(among)/draws
	return c
}

// drawn is a candidate as it might be. What was measured is known to its own band.
func (p *Problem) drawn(c Candidate, common, token, first, own float64) Candidate {
	slower := func(b Band, lot float64) float64 {
		all := b.deviation()
		mine := min(all, own)
		if c.Measured {
			mine = all
		}
		return math.Exp(common*math.Sqrt(max(0, all*all-mine*mine)) + lot*mine)
	}
	itl := slower(c.ITL, token)
	c.ITL = Band{Value: c.ITL.Value * itl}
	c.TTFT = Band{Value: c.TTFT.Value * slower(c.TTFT, first)}
	c.TokensPerGPU, c.Rate = c.TokensPerGPU/itl, c.Rate/itl
	return c
}

// ahead reports whether a turned out better than b, by more than 2 %.
func (p *Problem) ahead(a, b *Candidate) bool {
	if x, y := p.keepsTimes(a), p.keepsTimes(b); x != y {
		return x
	}
	if p.Goal.RequestRate > 0 {
		if c := cmp.Compare(a.GPUs, b.GPUs); c != 0 {
			return c < 0
		}
	}
	return p.merit(a) > 1.02*p.merit(b)
}

func (p *Problem) keepsTimes(c *Candidate) bool {
	return c.TTFT.Value <= p.Goal.TTFT && c.ITL.Value <= p.Goal.ITL
}
