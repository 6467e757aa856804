package search

import "slices"

// Front picks the candidates that no other one beats in TTFT, ITL and tokens
// per GPU at once, in rank order.
func (o *Outcome) Front() []Candidate {
	var front []Candidate
	for i, c := range o.Candidates {
		beaten := false
		for j, d := range o.Candidates {
			if i != j && dominates(d, c) && !(dominates(c, d) && i < j) {
				beaten = true
				break
			}
		}
		if !beaten {
			front = append(front, c)
		}
	}
	return front
}

// dominates reports whether a is nowhere worse than b. Equals dominate each
// other.
func dominates(a, b Candidate) bool {
	return a.TTFT.Value <= b.TTFT.Value && a.ITL.Value <= b.ITL.Value && a.TokensPerGPU >= b.TokensPerGPU
}

// Contenders are the candidates that could be the best one if the estimates are
// off by their bands: they may meet the targets, and may be as good as the
// chosen one. Only these are worth deploying. The chosen one is the first.
func (o *Outcome) Contenders(most int) []Candidate {
	best := o.Best()
	floor := o.Problem.merit(&best) * best.ITL.Value / max(best.ITL.High, 1e-9)
	var all []Candidate
	for i := range o.Candidates {
		if len(all) == most {
			break
		}
		o.settle(i)
		c := o.Candidates[i]
		ceiling := o.Problem.merit(&c) * c.ITL.Value / max(c.ITL.Low, 1e-9)
		may := c.TTFT.Low <= o.Problem.Goal.TTFT && c.ITL.Low <= o.Problem.Goal.ITL && ceiling >= floor
		if i == 0 || may {
			all = append(all, c)
		}
	}
	return all
}

// merit is what more of is better, where the goal leaves it open.
func (p *Problem) merit(c *Candidate) float64 {
	if p.Budget > 0 && p.Goal.RequestRate == 0 {
		return c.Rate
	}
	return c.TokensPerGPU
}

// Measurement is what a load test found, beside what the model says of the same
// load. The ratio corrects the candidate, whose own load may be a higher one.
type Measurement struct {
	TTFT, ITL         Band
	ModelTTFT         float64
	ModelITL          float64
	Concurrency, Done int
}

// Expect is what the model says of a candidate's engines, one of each, under a
// load of so many requests. Disaggregated, the first token is that of a request
// that finds both engines idle.
func (p Problem) Expect(c Candidate, concurrency int) (ttft, itl float64, ok bool) {
	decode, reason, err := p.engine(c.Decode.Layout)
	if reason != "" || err != nil {
		return 0, 0, false
	}
	w := played
	if c.Prefill != nil {
		w = decoding
	}
	s, ok := p.at(decode, w, ceiling(float64(concurrency)/float64(c.Decode.Layout.Ranks())))
	if !ok {
		return 0, 0, false
	}
	if c.Prefill == nil {
		return s.ttft.Value, s.itl.Value, true
	}
	prefill, reason, err := p.engine(c.Prefill.Layout)
	if reason != "" || err != nil {
		return 0, 0, false
	}
	alone, ok := p.at(decode, decoding, 1)
	return band(prefill.pool.FirstToken(p.Goal.ISL, 0)).Value + alone.ttft.Value, s.itl.Value, ok
}

// Correct replaces a candidate's estimates by what was measured and ranks
// again. Measured candidates that meet the goal come first: they are known.
func (o *Outcome) Correct(name string, m Measurement) {
	for i, c := range o.Candidates {
		if c.Name != name {
			continue
		}
		if m.ModelTTFT > 0 && m.ModelITL > 0 {
			slower := m.ITL.Value / m.ModelITL
			c.FirstFactor, c.StepFactor = m.TTFT.Value/m.ModelTTFT, slower
			c.TTFT = spread(c.TTFT.Value*m.TTFT.Value/m.ModelTTFT, m.TTFT)
			c.ITL = spread(c.ITL.Value*slower, m.ITL)
			if slower > 0 {
				c.Rate, c.TokensPerGPU = c.Rate/slower, c.TokensPerGPU/slower
			}
		} else {
			c.TTFT, c.ITL = m.TTFT, m.ITL
		}
		c.Measured, c.Trial = true, m
		o.Candidates[i] = o.Problem.judge(c)
	}
	o.rank()
}

// Drop removes a candidate that could not be measured.
func (o *Outcome) Drop(name, why string) {
	o.Candidates = slices.DeleteFunc(o.Candidates, func(c Candidate) bool {
		if c.Name == name {
			o.Rejected = append(o.Rejected, Rejection{Layout: c.Decode.Layout, Role: c.Name, Reason: "could not be measured: " + why})
		}
		return c.Name == name
	})
}

// spread puts the relative width of what was measured around a value.
func spread(value float64, measured Band) Band {
	if measured.Value <= 0 {
		return Band{value, value, value}
	}
	return measured.times(value / measured.Value)
}
