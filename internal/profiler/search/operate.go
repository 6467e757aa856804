package search

import (
	"math"
	"slices"

	"github.com/dynamo-operator/dynamo-operator/internal/core/perfmodel"
	"github.com/dynamo-operator/dynamo-operator/internal/profiler/config"
)

// Engines are not planned to be busier than this: arrivals vary, and the two
// halves of a disaggregated graph never match exactly.
const (
	aggregatedShare = 0.90
	prefillShare    = 0.90
	decodeShare     = 0.92
)

// mostSequences bounds one rank's batch, as engines do.
const mostSequences = 512

// way is how an engine is asked about a load.
type way int

const (
	decoding way = iota // prompts are computed elsewhere
	guessed             // both halves, by formula
	played              // both halves, step by step; for those that may be chosen
	arriving            // both halves, by formula, as the goal says that requests come
)

// served is an engine at a load.
type served struct {
	*engine
	concurrency int
	ttft, itl   Band
	requests    float64 // per second
}

func (s served) perRank() int { return s.concurrency / s.layout.Ranks() }

func (p *Problem) load(concurrency int) perfmodel.Load {
	return perfmodel.Load{Concurrency: concurrency, Input: p.Goal.ISL, Output: p.Goal.OSL, Arrival: p.Goal.Arrival}
}

// whether a load is played: users who ask at once and again when answered can be;
// others are estimated by the mean.
func (p *Problem) closely(w way) way {
	if p.Goal.Arrival == "" || p.Goal.Arrival == perfmodel.InStep {
		return w
	}
	return arriving
}

// at is an engine with so many requests for each of its ranks. Every pair asks
// for much the same loads, so they are remembered.
func (p *Problem) at(e *engine, w way, perRank int) (served, bool) {
	known := e.known[w]
	if s, ok := known[perRank]; ok {
		return s, true
	}
	s, ok := p.estimate(e, w, perRank)
	if ok {
		known[perRank] = s
	}
	return s, ok
}

func (p *Problem) estimate(e *engine, w way, perRank int) (served, bool) {
	concurrency := perRank * e.layout.Ranks()
	estimate := e.pool.DecodeOnly
	switch w {
	case guessed:
		estimate = e.Aggregated
	case played:
		estimate = e.ClosedLoop
	case arriving:
		estimate = e.Serve
	}
	s, err := estimate(p.load(concurrency))
	if err != nil {
		return served{}, false
	}
	requests := s.Requests
	if math.IsInf(requests, 0) {
		// An answer of one token is finished by the prefill; it still takes a step.
		requests = float64(concurrency) / s.PerToken.Value.Seconds()
	}
	return served{engine: e, concurrency: concurrency, ttft: band(s.FirstToken), itl: band(s.PerToken), requests: requests}, true
}

// room is how many requests a rank can have at once.
func (e *engine) room() int { return min(e.most/e.layout.Ranks(), mostSequences) }

func (p *Problem) keeps(e *engine, w way, perRank int) bool {
	s, ok := p.at(e, w, perRank)
	return ok && p.safe(s.itl) <= p.Goal.ITL && (w == decoding || p.safe(s.ttft) <= p.Goal.TTFT)
}

// operate finds the highest load at which an engine keeps the targets that
// depend on it, or the lowest load if it keeps them at none. A guess, if it is
// not zero, is where to look first.
func (p *Problem) operate(e *engine, w way, guess int) (served, bool) {
	within, _ := boundary(guess, e.room(), p.share(), func(n int) bool { return p.keeps(e, w, n) })
	return p.at(e, w, max(1, within))
}

// share is how closely loads are looked for around a guess, as one over it.
func (p *Problem) share() int {
	if p.plain {
		return 4
	}
	return 16
}

// aggregated adds a candidate for each engine that does both halves.
func (o *Outcome) aggregated(engines []*engine) {
	for _, e := range engines {
		if c, ok := o.Problem.whole(e, o.Problem.closely(guessed), 0, 0); ok {
			o.Candidates = append(o.Candidates, c)
		}
	}
}

// whole is a graph of engines that do both halves. The guesses are at its limit
// and at its load, for each rank.
func (p *Problem) whole(e *engine, w way, most, enough int) (Candidate, bool) {
	s, ok := p.operate(e, w, most)
	if !ok {
		return Candidate{}, false
	}
	replicas, limit := 1, s.concurrency
	capacity := s.requests * aggregatedShare * p.lower(s.itl)
	switch {
	case p.Goal.RequestRate > 0:
		replicas = ceiling(p.Goal.RequestRate / capacity)
		if p.Budget > 0 {
			replicas = min(replicas, p.Budget/e.layout.GPUs())
		}
		s = p.easier(s, w, enough, p.Goal.RequestRate/float64(replicas))
	case p.Budget > 0:
		replicas = p.Budget / e.layout.GPUs()
	}
	rate := float64(replicas) * capacity
	if p.Goal.RequestRate > 0 {
		rate = min(rate, p.Goal.RequestRate)
	}
	return p.judge(Candidate{
		Name: "agg-" + e.name, Mode: config.Aggregated,
		Decode: Worker{Layout: e.layout, Replicas: replicas, Concurrency: s.concurrency, Limit: limit, CacheTokens: e.memory.Tokens},
		TTFT:   s.ttft, ITL: s.itl, Rate: rate,
		TokensPerGPU: rate * float64(p.Goal.OSL) / float64(replicas*e.layout.GPUs()),
		settled:      w != guessed,
	}), true
}

// easier is the same engine at the lowest load that serves a rate: replicas are
// whole numbers, so each is asked for less than it could do.
func (p *Problem) easier(s served, w way, guess int, rate float64) served {
	_, enough := boundary(guess, s.perRank(), p.share(), func(n int) bool {
		x, ok := p.at(s.engine, w, n)
		return !ok || x.requests < rate
	})
	// Users who take turns in an unlucky order wait longer than more users may.
	for n := enough; n < s.perRank(); n += 1 + n/8 {
		if x, ok := p.at(s.engine, w, n); ok && p.keeps(s.engine, w, n) {
			return x
		}
	}
	return s
}

// disaggregated adds a candidate for each pair of engines.
func (o *Outcome) disaggregated(engines []*engine) {
	p := &o.Problem
	if p.most() == 1 {
		return // two engines need two GPUs
	}
	// Ranks that share nothing are replicas that cannot be scaled one by one.
	engines = slices.DeleteFunc(slices.Clone(engines), func(e *engine) bool { return e.layout.Kind == DP })
	var decoders []served
	for _, e := range engines {
		if s, ok := p.operate(e, decoding, 0); ok {
			decoders = append(decoders, s)
		}
	}
	o.Candidates = slices.Grow(o.Candidates, len(engines)*len(decoders))
	for _, prefill := range engines {
		for _, decode := range decoders {
			if most := p.most(); most > 0 && prefill.layout.GPUs()+decode.layout.GPUs() > most {
				continue
			}
			if c, ok := p.pair(prefill, decode); ok {
				o.Candidates = append(o.Candidates, p.judge(c))
			}
		}
	}
}

// pair joins a prefill and a decode engine and sizes both.
func (p *Problem) pair(prefill *engine, decode served) (Candidate, bool) {
	prompts := prefill.prompts * prefillShare * p.lower(band(prefill.idle))
	answers := decode.requests * decodeShare * p.lower(decode.itl)
	np, nd := p.replicas(prefill, decode, prompts, answers)
	rate := min(float64(np)*prompts, float64(nd)*answers)
	arrivals, limit := 0.0, decode.concurrency
	if p.Goal.RequestRate > 0 {
		rate = min(rate, p.Goal.RequestRate)
		arrivals = rate / float64(np)
		decode = p.easier(decode, decoding, 0, rate/float64(nd))
	}
	first, err := p.first(prefill, arrivals)
	if err != nil {
		return Candidate{}, false // cannot be: the share is below one
	}
	gp, gd := prefill.layout.GPUs(), decode.layout.GPUs()
	c := Candidate{
		Name: "disagg-" + prefill.name + "-" + decode.name, Mode: config.Disaggregated,
		Prefill: &Worker{Layout: prefill.layout, Replicas: np, Concurrency: prefill.layout.Ranks(), CacheTokens: prefill.memory.Tokens},
		Decode:  Worker{Layout: decode.layout, Replicas: nd, Concurrency: decode.concurrency, Limit: limit, CacheTokens: decode.memory.Tokens},
		TTFT:    band(first).plus(decode.ttft), ITL: decode.itl, Rate: rate,
		TokensPerGPU: rate * float64(p.Goal.OSL) / float64(np*gp+nd*gd),
	}
	if p.Goal.RequestRate == 0 && p.Budget == 0 {
		// One of each is a seed that a planner grows: what counts is the rate per
		// GPU once the halves match.
		c.TokensPerGPU = float64(p.Goal.OSL) / (float64(gp)/prompts + float64(gd)/answers)
	}
	return c, true
}

// first is the time to the first token of a prefill engine to which prompts come
// at a rate.
func (p *Problem) first(e *engine, rate float64) (perfmodel.Estimate, error) {
	if known, ok := e.queued[rate]; ok {
		return known, nil
	}
	estimate, err := e.pool.PrefillOnly(p.load(1), rate)
	if err == nil {
		e.queued[rate] = estimate
	}
	return estimate, err
}

// replicas sizes both halves for the rate, the budget, or one of each.
func (p *Problem) replicas(prefill *engine, decode served, prompts, answers float64) (np, nd int) {
	gp, gd := prefill.layout.GPUs(), decode.layout.GPUs()
	np, nd = 1, 1
	if rate := p.Goal.RequestRate; rate > 0 {
		nd = ceiling(rate / answers)
		// Prompts queue; more engines shorten the line until the target is met, or
		// until no line is left.
		for i := 0; ; i++ {
			s := p.size(prefill, i, prompts)
			np = s.replicas
			if np >= 1<<16 || s.first > 0 && (s.first+p.safe(decode.ttft) <= p.Goal.TTFT || s.idle) {
				break
			}
		}
		if p.Budget == 0 || np*gp+nd*gd <= p.Budget {
			return np, nd
		}
	}
	if p.Budget == 0 {
		return np, nd
	}
	// As much as the budget gives: the best split of a whole number of engines.
	best := -1.0
	for d := 1; d*gd+gp <= p.Budget; d++ {
		n := (p.Budget - d*gd) / gp
		if served := min(float64(n)*prompts, float64(d)*answers); served > best {
			// No more prefill engines than the decode engines can follow.
			best, np, nd = served, min(n, ceiling(float64(d)*answers/prompts)), d
		}
	}
	return np, nd
}

// size is a number of prefill engines for the rate: the time to the first token
// in milliseconds, zero if prompts come faster than they go, and whether hardly
// any of it is waiting.
type size struct {
	replicas int
	first    float64
	idle     bool
}

// size is the i-th number to try. Every pair tries the same ones.
func (p *Problem) size(e *engine, i int, prompts float64) size {
	for len(e.sizes) <= i {
		n := ceiling(p.Goal.RequestRate / prompts)
		if last := len(e.sizes) - 1; last >= 0 {
			n = e.sizes[last].replicas
			n += max(1, n/16)
		}
		s := size{replicas: n}
		if first, err := p.first(e, p.Goal.RequestRate/float64(n)); err == nil {
			s.first, s.idle = p.safe(band(first)), first.Value < e.idle.Value+e.idle.Value/50
		}
		e.sizes = append(e.sizes, s)
	}
	return e.sizes[i]
}

func ceiling(x float64) int { return max(1, int(math.Ceil(x-1e-9))) }
