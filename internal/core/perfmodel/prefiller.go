package perfmodel

import (
	"cmp"
	"math"
)

// A prefiller is an engine that computes nothing but prompts, in passes: whatever came
// during one is computed in the next, as far as there is room. Its attention ranks go
// through a pass together, as they share experts, so a prompt that comes to an idle one
// of them waits for the others' like one that comes to a busy one. A pass with one prompt
// has the experts' work of that prompt alone. Kernels are launched while those before them
// run, so launching is a part of the time of short passes only.
type prefiller struct {
	// Prompts of a pass, and the seconds it takes: one, one on each attention rank, and as
	// many as there is room for. Between these it grows evenly.
	prompts, seconds [3]float64
	// limit is how many prompts a second places allow, where an engine has a number of them:
	// a prompt has one until its cache was handed over.
	limit float64
}

// prefiller of prompts of a load. Less of a GPU is computing than where answers are
// given, too.
func (c *cost) prefiller(l Load) prefiller {
	fresh, cached := l.fresh()
	ranks, places := float64(c.Parallel.DP), float64(c.MaxSequences)
	each := max(1, math.Floor(float64(c.MaxBatchedTokens)/fresh))
	if places > 0 {
		each = min(each, places)
	}
	p := prefiller{prompts: [3]float64{1, ranks, ranks * each}}
	share := cmp.Or(c.k.Prefilling, 1)
	pass := func(c *cost, prompts float64) float64 {
		return overlap(c.prefill(prompts, fresh, cached)/share, c.occupied())
	}
	p.seconds[0] = pass(c.among(1), 1)
	p.seconds[1], p.seconds[2] = p.seconds[0], p.seconds[0]
	if ranks > 1 {
		p.seconds[1] = pass(c, 1)
		p.seconds[2] = p.seconds[1]
	}
	if each > 1 {
		p.seconds[2] = pass(c, each)
	}
	p.limit = math.Inf(1)
	if places > 0 {
		p.limit = ranks * places / (p.seconds[2] + c.k.handover())
	}
	return p
}

// most is how many prompts a second leave no time between passes, at best.
func (p prefiller) most() float64 {
	most := 0.0
	for i, n := range p.prompts {
		most = max(most, n/p.seconds[i])
	}
	return min(most, p.limit)
}

// pass is how long a pass takes where so many prompts come a second: as many as come
// meanwhile are in it.
func (p prefiller) pass(rate float64) float64 {
	if rate*p.seconds[0] <= p.prompts[0] {
		return p.seconds[0]
	}
	for i := 1; i < len(p.prompts); i++ {
		if n := p.prompts[i]; n > p.prompts[i-1] && rate*p.seconds[i] <= n {
			slope := (p.seconds[i] - p.seconds[i-1]) / (n - p.prompts[i-1])
			return (p.seconds[i-1] - slope*p.prompts[i-1]) / (1 - slope*rate)
		}
	}
	return p.seconds[len(p.seconds)-1]
}

// stay is how long a prompt is at one of so many prefillers, to each of which so many
// come a second, at random: for the pass that runs, its own, and those of prompts that
// found no room before it.
func (p prefiller) stay(rate, prefillers float64) float64 {
	pass, whole := p.pass(rate), p.seconds[len(p.seconds)-1]
	busy := min(1, rate*pass/p.prompts[0])
	return pass + waiting(busy, prefillers)*pass/2 + line(whole, prefillers*p.prompts[2], min(0.999, rate/p.most()))
}

// waiting is the share of those who find all of several servers busy that are, each, for
// a share of the time.
func waiting(busy, servers float64) float64 { return math.Pow(busy, math.Sqrt(2*(servers+1))-1) }

// line is the mean wait for one of several servers that take a fixed time each, and
// are busy for a share of the time.
func line(service, servers, busy float64) float64 {
	return service / 2 * waiting(busy, servers) / (servers * (1 - busy))
}
