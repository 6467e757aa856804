package perfmodel

import "math"

// Pools is a disaggregated deployment: engines that compute prompts and engines
// that give answers, and how many of each.
type Pools struct {
	Prefill, Decode   *Estimator
	Prefills, Decodes int
}

// GPUs of both pools.
func (p Pools) GPUs() int {
	return p.Prefills*p.Prefill.c.Parallel.GPUs() + p.Decodes*p.Decode.c.Parallel.GPUs()
}

// With replaces the constants of both; for fitting them.
func (p Pools) With(k Constants) Pools {
	p.Prefill, p.Decode = p.Prefill.With(k), p.Decode.With(k)
	return p
}

// Matching is how many prefill engines answer the prompts that one decode engine
// can take at a load of so many requests of its own: where the pools have that
// ratio, neither waits for the other.
func (p Pools) Matching(perDecode Load) float64 {
	c := &p.Decode.c
	step := c.step(c.perRank(perDecode.Concurrency), perDecode)
	answers := float64(perDecode.Concurrency) / (step * float64(max(1, perDecode.Output-1)))
	return answers / p.Prefill.PrefillRate(perDecode)
}

// Serve estimates a closed loop of so many requests over both pools. A request is
// at one of them: as many are decoding as prompts come, and prompts come as fast as
// answers end. Where the prefill pool is the narrower one, requests wait there, and
// the decode engines run fewer at once than are offered.
func (p Pools) Serve(l Load) (Serving, error) {
	prefill, decode := &p.Prefill.c, &p.Decode.c
	station, stations := prefill.prefiller(l), float64(p.Prefills)
	most := stations * station.most()
	ranks := float64(p.Decodes * decode.Parallel.DP)
	tokens := float64(max(1, l.Output-1))
	users := float64(max(1, l.Concurrency))
	fixed := decode.k.first() + decode.k.handover() + p.Decode.transfer(l.Input)
	// Those that come together wait for half of each other.
	fixed += decode.meeting(l.Arrival) * (users - 1) / 2 / most

	room := float64(p.Decode.MaxConcurrency(l.Input, l.Output) * p.Decodes)
	if room <= 0 {
		return Serving{}, &CapacityError{Concurrency: l.Concurrency}
	}
	// Where there is a place for everybody and no more, the one that is free may be another
	// engine's.
	full := 0.0
	if users >= room {
		full = decode.k.Full
	}
	// How many decode on a rank is a mean. Rounded up it would make every token longer at
	// once, and with a prefill engine more fewer requests could be served.
	token := func(decoding float64) float64 {
		whole, part := math.Modf(max(1, decoding/ranks))
		return (1-part)*decode.step(whole, l) + part*decode.step(whole+1, l)
	}
	// How many more are there than should be, if so many decode.
	excess := func(decoding float64) float64 {
		answer := tokens * token(decoding)
		rate := decoding / answer
		if rate >= most {
			return users // far too many; how many does not matter
		}
		return min(users, decoding+rate*(fixed+full*answer+station.stay(rate/stations, stations))-users)
	}
	low := root(excess, min(users, room), -users)
	each := token(low)
	rate := low / (tokens * each)
	spread := p.Decode.spread()
	s := Serving{
		// Whoever is not decoding waits for the first token.
		FirstToken: estimate(users/rate-tokens*each, max(spread.ApartFirstP90, spread.FirstP90)),
		PerToken:   estimate(each, max(spread.ApartP90, spread.TokenP90)),
		Requests:   rate,
	}
	s.Tokens = s.Requests * float64(l.Output)
	s.TokensPerGPU = s.Tokens / float64(p.GPUs())
	return s, nil
}

// root is where a growing function passes zero between zero, where it is known, and
// the highest number, or the highest if it does not. The secant is halved where it
// keeps one end, so that both close in.
func root(f func(float64) float64, high, atZero float64) float64 {
	low, below, above := 0.0, atZero, f(high)
	if above <= 0 {
		return high
	}
	side := 0
	for range 40 {
		x := (low*above - high*below) / (above - below)
		switch y := f(x); {
		case math.Abs(y) < 1e-4*math.Abs(atZero) || high-low < 1e-4*high:
			return x
		case y > 0:
			if high, above = x, y; side > 0 {
				below /= 2
			}
			side = 1
		default:
			if low, below = x, y; side < 0 {
				above /= 2
			}
			side = -1
		}
	}
	return (low + high) / 2
}
