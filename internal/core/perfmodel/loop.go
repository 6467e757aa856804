package perfmodel

import "slices"

// Counted is how many requests of a closed loop are looked at: as many as the
// profiler counts unless it is told otherwise.
const Counted = 50

// ClosedLoop plays a load step by step, as an engine's scheduler would: all
// users ask at once, and each asks again as soon as it has its answer. The first
// round, which finds the engine empty, is not counted; of the requests after it
// the median is. It costs more than Aggregated, and knows who waits for whom.
func (e *Estimator) ClosedLoop(l Load) (Serving, error) {
	if most := e.MaxConcurrency(l.Input, l.Output); l.Concurrency > most {
		return Serving{}, &CapacityError{Concurrency: l.Concurrency, Most: most}
	}
	users := int(e.c.perRank(l.Concurrency))
	ranks := e.c.Parallel.DP
	p := newLoop(&e.c, l, users, users+(Counted+ranks-1)/ranks)
	p.run()
	var first, token, latency []float64
	for _, r := range p.requests[users:] {
		first = append(first, e.c.k.first()+r.first-r.sent)
		token = append(token, (r.last-r.first)/float64(max(1, l.Output-1)))
		latency = append(latency, r.last-r.sent)
	}
	if l.Output == 1 {
		token = []float64{e.c.step(float64(users), l)}
	}
	s := Serving{FirstToken: estimate(median(first), e.firstSpread(InStep)), PerToken: estimate(median(token), e.spread().TokenP90)}
	s.Requests = float64(l.Concurrency) / (e.c.k.first() + mean(latency))
	s.Tokens = s.Requests * float64(l.Output)
	s.TokensPerGPU = s.Tokens / float64(e.c.Parallel.GPUs())
	return s, nil
}

// loop is one attention rank of an engine under a closed loop. Requests are
// equal and served in the order in which they come, so they also get their first
// tokens and end in that order, and a few marks tell all of their states:
//
//	requests   0 ... ended ... begun ... here ... sent
//	             done    | decoding | in line | on the way
//
// A request that is sent when a step ends comes while the next one runs, and is
// looked at after that; on an idle engine the first to come begins alone.
type loop struct {
	c        *cost
	beside   int // tokens of prompts in a step in which others decode
	output   int
	fresh    int
	cached   int
	requests []journey
	steps    []straight // of decoding, by sequences
	chunks   [64]chunk  // of late, by the last bits of their size

	now                      float64
	step                     int // steps so far
	ended, begun, here, sent int
	computed                 int // of the first prompt in line
	produced                 int // tokens of all that decode
}

// journey is the fate of a request, in seconds.
type journey struct {
	sent, first, last float64
	end               int // the step that gives the last token
}

// straight is a time that grows evenly with the length of sequences.
type straight struct{ at, slope float64 }

// chunk is parts of prompts in one pass, and what of their time does not depend on
// the tokens before them.
type chunk struct {
	parts, tokens int
	beside        bool
	even          float64
}

func newLoop(c *cost, l Load, users, requests int) *loop {
	fresh, cached := l.fresh()
	beside := c.Engine.BesideDecode(c.MaxBatchedTokens)
	return &loop{
		c: c, beside: beside, output: max(1, l.Output), fresh: int(fresh), cached: int(cached),
		sent: users, requests: make([]journey, requests), steps: make([]straight, users+1),
	}
}

func (p *loop) run() {
	for p.ended < len(p.requests) {
		if p.here == p.ended {
			p.here++ // idle: whoever comes first begins alone
		}
		p.skip()
		p.next()
	}
}

// skip passes the steps in which nothing but decoding happens, up to the one
// that ends an answer.
func (p *loop) skip() {
	decoding := p.begun - p.ended
	if decoding == 0 || p.here > p.begun || p.sent > p.here {
		return
	}
	quiet := p.requests[p.ended].end - p.step - 1
	if quiet <= 0 {
		return
	}
	p.now += float64(quiet) * p.decode(decoding, float64(quiet-1)/2)
	p.step += quiet
	p.produced += quiet * decoding
}

// next passes one step.
func (p *loop) next() {
	decoding, began := p.begun-p.ended, p.begun
	budget, step := p.c.MaxBatchedTokens, 0.0
	if decoding > 0 {
		budget, step = p.beside, p.decode(decoding, 0)
	}
	parts, taken, attention := 0, 0, 0.0
	for began < p.here && budget > 0 {
		tokens := min(p.fresh-p.computed, budget)
		attention += p.c.lookaround(float64(tokens), float64(p.cached+p.computed))
		parts++
		taken += tokens
		budget -= tokens
		if p.computed += tokens; p.computed == p.fresh {
			p.computed = 0
			began++
		}
	}
	if parts > 0 {
		step += p.c.shared(step > 0) * (p.prompts(parts, taken, step > 0) + attention)
	}
	p.now += step
	p.step++
	p.produced += decoding
	p.here = p.sent
	for ; p.begun < began; p.begun++ {
		p.produced++
		if p.begun < len(p.requests) {
			p.requests[p.begun].first, p.requests[p.begun].end = p.now, p.step+p.output-1
		}
	}
	// What has all its tokens ends, and its user asks again.
	for ; p.ended < min(p.begun, len(p.requests)) && p.requests[p.ended].end <= p.step; p.ended++ {
		p.requests[p.ended].last = p.now
		p.produced -= p.output
		if p.sent < len(p.requests) {
			p.requests[p.sent].sent = p.now
		}
		p.sent++
	}
}

// decode is the time of a step that gives each of so many sequences a token, so
// many steps ahead.
func (p *loop) decode(sequences int, ahead float64) float64 {
	s := &p.steps[sequences]
	if s.at == 0 {
		prompt := float64(p.fresh + p.cached)
		s.at = p.c.decode(float64(sequences), prompt)
		s.slope = (p.c.decode(float64(sequences), prompt+float64(p.output)) - s.at) / float64(p.output)
	}
	return s.at + s.slope*(float64(p.produced)/float64(sequences)+ahead)
}

// prompts is the time that so many tokens of prompts add to a pass, but for attention.
func (p *loop) prompts(parts, tokens int, beside bool) float64 {
	want := chunk{parts: parts, tokens: tokens, beside: beside}
	known := &p.chunks[(tokens+parts)%len(p.chunks)]
	if known.parts != parts || known.tokens != tokens || known.beside != beside {
		want.even = p.c.prompts(float64(parts), float64(tokens), beside)
		*known = want
	}
	return known.even
}

func mean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}

// median is the middle, or lies between the two that are nearest to it.
func median(values []float64) float64 {
	slices.Sort(values)
	n := len(values)
	return (values[(n-1)/2] + values[n/2]) / 2
}
