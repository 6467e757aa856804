package search

import "slices"

// finalists are looked at closely whatever comes of it.
const finalists = 3

// decide ranks. Formulas come first; those that they put first are looked at
// closely, until the first one stays so.
func (o *Outcome) decide() {
	for closely := finalists; ; closely = 1 {
		o.rank()
		if o.Best().settled {
			return
		}
		for i := range min(closely, len(o.Candidates)) {
			o.settle(i)
		}
	}
}

// settle replaces a guess by what comes out when the load is played.
func (o *Outcome) settle(i int) {
	c := &o.Candidates[i]
	if c.settled || c.Measured {
		return
	}
	c.settled = true
	if e := o.whole(c); e != nil {
		if exact, ok := o.Problem.whole(e, played, c.Decode.Limit/e.layout.Ranks(), c.Decode.Concurrency/e.layout.Ranks()); ok {
			*c = exact
		}
	}
}

// whole is the engine of a candidate that does both halves.
func (o *Outcome) whole(c *Candidate) *engine {
	i := slices.IndexFunc(o.able, func(e *engine) bool { return e.layout == c.Decode.Layout })
	if i < 0 || c.Prefill != nil {
		return nil
	}
	return o.able[i]
}

// confirm puts a candidate first that meets the goal for sure, if one is found
// soon. Without a rate there always is: one user is served as the formula says.
func (o *Outcome) confirm() {
	o.lead()
	if o.Problem.Goal.RequestRate == 0 {
		return
	}
	for range 2 {
		if c := &o.Candidates[0]; !c.Met() || c.settled || c.Prefill != nil {
			return
		}
		o.settle(0)
		if o.Best().Met() {
			return
		}
		o.lead()
	}
	o.Candidates = slices.DeleteFunc(o.Candidates, func(c Candidate) bool { return c.Prefill == nil && !c.settled })
	o.lead()
}

// boundary finds how far a property reaches that small numbers have: within has
// it or is zero, beyond has not or is more than most. Without a guess they are
// neighbours. Around a guess, as has is dear then, it is found in few steps and up
// to a share of within.
func boundary(guess, most, share int, has func(int) bool) (within, beyond int) {
	within, beyond = 0, most+1
	if guess = min(guess, most); guess > 0 {
		step := max(1, guess/8)
		for n := guess; n > within && n < beyond; step *= 2 {
			if has(n) {
				within, n = n, n+step
			} else {
				beyond, n = n, n-step
			}
			if within >= guess && beyond <= most || within > 0 && beyond <= guess {
				break
			}
		}
	}
	tolerance := 1
	if guess > 0 {
		tolerance = max(1, within/share)
	}
	for beyond-within > tolerance {
		if n := (within + beyond) / 2; has(n) {
			within = n
		} else {
			beyond = n
		}
	}
	return within, beyond
}
