package search

import (
	"cmp"
	"math"
	"slices"

	"github.com/dynamo-operator/dynamo-operator/internal/core/price"
)

// judge fills in what follows from a candidate's times, rate and replicas.
func (p *Problem) judge(c Candidate) Candidate {
	c.GPUs = c.Decode.GPUs()
	if c.Prefill != nil {
		c.GPUs += c.Prefill.GPUs()
	}
	if p.PricePerHour > 0 {
		c.CostPerMillion = price.PerMillion(p.PricePerHour, c.TokensPerGPU)
	}
	c.Misses, c.excess, c.grade = nil, 0, step(p.merit(&c))
	miss := func(target, unit string, got, want, ratio float64) {
		if ratio > 1 {
			c.Misses = append(c.Misses, Miss{target, unit, got, want})
			c.excess = max(c.excess, ratio)
		}
	}
	ttft, itl := p.safe(c.TTFT), p.safe(c.ITL)
	miss("ttft", " ms", ttft, p.Goal.TTFT, ttft/p.Goal.TTFT)
	miss("itl", " ms", itl, p.Goal.ITL, itl/p.Goal.ITL)
	if want := p.Goal.RequestRate; want > 0 && c.Rate > 0 {
		miss("requestRate", "/s", c.Rate, want, want/c.Rate)
	}
	return c
}

// better orders candidates: those that meet the goal before those that come
// close; then by what the goal leaves open. A fixed rate asks for few GPUs, a
// fixed number of GPUs for a high rate, and neither for tokens per GPU.
func (p *Problem) better(a, b *Candidate) int {
	if a.Met() != b.Met() {
		if a.Met() {
			return -1
		}
		return 1
	}
	if !a.Met() {
		if c := cmp.Compare(a.excess, b.excess); c != 0 {
			return c
		}
	}
	var byGoal int
	switch {
	case p.Goal.RequestRate > 0:
		byGoal = cmp.Compare(a.GPUs, b.GPUs)
	default:
		byGoal = cmp.Compare(b.grade, a.grade)
	}
	return cmp.Or(byGoal, cmp.Compare(a.GPUs, b.GPUs), a.parts()-b.parts(), cmp.Compare(p.latency(a), p.latency(b)), cmp.Compare(a.Name, b.Name))
}

// step counts in steps of 2 %: less than the estimates are good for, so less
// must not decide against a simpler graph.
func step(x float64) int {
	if x <= 0 {
		return math.MinInt
	}
	return int(math.Round(math.Log(x) / math.Log(1.02)))
}

// parts is how many things of a candidate can be wrong: kinds of parallelism
// beyond slicing.
func (c *Candidate) parts() int {
	n := c.Decode.Layout.parts()
	if c.Prefill != nil {
		n += c.Prefill.Layout.parts()
	}
	return n
}

// latency of a whole request.
func (p *Problem) latency(c *Candidate) float64 {
	return c.TTFT.Value + c.ITL.Value*float64(p.Goal.OSL)
}

// lead puts the best candidate first and leaves the others: enough for who asks
// only whether the goal can be met.
func (o *Outcome) lead() {
	best := 0
	for i := range o.Candidates {
		if o.Problem.better(&o.Candidates[i], &o.Candidates[best]) < 0 {
			best = i
		}
	}
	o.Candidates[0], o.Candidates[best] = o.Candidates[best], o.Candidates[0]
}

// rank sorts the candidates. What was measured goes before what was estimated,
// among those that meet the goal: it is known.
func (o *Outcome) rank() {
	// Candidates are large: they are moved once, after their order is known.
	order := make([]*Candidate, len(o.Candidates))
	for i := range o.Candidates {
		order[i] = &o.Candidates[i]
	}
	slices.SortStableFunc(order, func(a, b *Candidate) int {
		if a.Met() && b.Met() && a.Measured != b.Measured {
			if a.Measured {
				return -1
			}
			return 1
		}
		return o.Problem.better(a, b)
	})
	ranked := make([]Candidate, len(order))
	for i, c := range order {
		ranked[i] = *c
	}
	o.Candidates = ranked
}
