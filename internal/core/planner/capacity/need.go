package capacity

import "math"

// Most is the largest number of replicas that is ever asked for: a load that needs
// more is an error of a counter, not traffic.
const Most = 10000

// spare is the share of their time that prefill replicas have left at even distances.
const spare = 0.08

// Target is what a request is promised.
type Target struct {
	FirstToken, Token float64
}

// Load is what comes in.
type Load struct {
	Rate float64 // requests
	Lengths

	// Even is how much less than requests that come by chance these wait for one another:
	// not at all less, 0, or not at all, 1, where they come at even distances.
	Even float64

	// Handover is how long a computed prompt takes to a replica of the other role: no replica
	// is busy with it, and no number of them makes it shorter.
	Handover float64
}

// Lengths describe the requests of the last minutes.
type Lengths struct {
	Input   float64 // mean prompt
	Input95 float64 // 95 of 100 prompts are no longer
	// InputSpread is the variance of prompts over their squared mean.
	InputSpread float64
	Output      float64 // mean answer
	Hit         float64 // the share of prompts that is in a cache already, 0 to 1
}

// Margins are what a need leaves free.
type Margins struct {
	// Token is the share of the target of tokens that is planned with.
	Token float64
	// Cache is the share of the cache.
	Cache float64
	// Waits is how many mean waits the target of the first token has room for.
	Waits float64
}

// DefaultMargins are those of the design.
func DefaultMargins() Margins { return Margins{Token: 0.92, Cache: 0.9, Waits: 3} }

// Wait is the mean time in the line of n servers that take the same time each, by
// Sakasegawa's approximation; infinite where they cannot keep up.
func Wait(rate, service float64, n int) float64 {
	if rate <= 0 || service <= 0 {
		return 0
	}
	busy := rate * service / float64(n)
	if !(busy < 1) {
		return math.Inf(1)
	}
	return service / 2 * math.Pow(busy, math.Sqrt(2*float64(n+1))-1) / (float64(n) * (1 - busy))
}

// Even is what is left of a mean wait where requests come more evenly than by chance: those
// who take the same time each would not wait for one another at even distances.
func Even(wait, even float64) float64 {
	if math.IsInf(wait, 1) {
		return wait // whoever cannot keep up is late, too
	}
	return (1 - even) * wait
}

// fresh are the tokens of a prompt that are computed.
func (l Lengths) fresh(tokens float64) float64 {
	return tokens * (1 - min(max(l.Hit, 0), 1))
}

// PrefillNeed is what prefill replicas a load needs, and why.
type PrefillNeed struct {
	Replicas int
	// Service is the mean time of a prompt, Wait the mean wait at Replicas, Shorter
	// that at one less.
	Service, Wait, Shorter float64
}

// Prefill is the smallest number of replicas at which a long prompt and its wait
// stay within the target. A prompt that alone, with its handover, takes most of the target
// leaves three tenths of it to waiting: no number of replicas makes it faster.
func Prefill(m Model, l Load, t Target, scale float64, g Margins) PrefillNeed {
	service := scale * m.Prefill(l.fresh(l.Input))
	long := min(scale*m.Prefill(l.fresh(max(l.Input95, l.Input)))+l.Handover, 0.7*t.FirstToken)
	// Of the spread of lengths that of times remains, the less the larger the part of
	// a time that every prompt takes.
	slope := (m.Prefill(l.fresh(2*l.Input)) - m.Prefill(l.fresh(l.Input))) * scale / service
	spread := l.InputSpread * slope * slope
	waits := g.Waits * (1 - l.Even + spread)
	// Where waits do not limit how busy replicas are, a share that is left free does.
	busiest := 1 - spare*l.Even
	fits := func(n int) bool {
		return l.Rate*service <= busiest*float64(n) && long+waits*Wait(l.Rate, service, n) <= t.FirstToken
	}
	n := search(l.Rate*service, fits)
	wait := func(n int) float64 { return Even(Wait(l.Rate, service, n), l.Even) }
	return PrefillNeed{Replicas: n, Service: service, Wait: wait(n), Shorter: wait(max(1, n-1))}
}

// search is the smallest number, at least one, that fits; more always fit better.
func search(busy float64, fits func(int) bool) int {
	low := 1
	if busy > 1 {
		low = int(min(math.Floor(busy), Most))
	}
	for n := low; n < Most; n++ {
		if fits(n) {
			return n
		}
		if n-low > 64 { // the wait is gone by then: what is missing is not replicas
			return n
		}
	}
	return Most
}

// DecodeNeed is what decode replicas a load needs, and why.
type DecodeNeed struct {
	Replicas int
	// Batch is how many sequences a replica takes within the target, Active how many
	// there are at that pace.
	Batch, Active float64
	// CacheBinds says that it is the cache, not the time, that limits the batch.
	CacheBinds bool
}

// Context is the mean length of a sequence while it is decoded.
func (l Lengths) Context() float64 { return l.Input + l.Output/2 }

// Decode is the smallest number of replicas at which as many sequences end as come,
// each token within the target and the cache not full.
func Decode(m Model, l Load, t Target, scale float64, g Margins) DecodeNeed {
	context := max(1, l.Context())
	batch, binds := Batch(m, context, g.Token*t.Token/scale, g.Cache)
	pace := scale * m.Token(batch, context)
	active := l.Rate * l.Output * pace
	n := math.Ceil(active/batch - 1e-9)
	return DecodeNeed{Replicas: int(min(max(1, n), Most)), Batch: batch, Active: active, CacheBinds: binds}
}

// Batch is the largest number of sequences, at least one, that a replica takes
// within a time and a share of its cache.
func Batch(m Model, context, within, cache float64) (batch float64, cacheBinds bool) {
	most := max(1, cache*m.Cache()/context)
	if m.Token(most, context) <= within {
		return most, true
	}
	low, high := 1.0, most
	for range 40 {
		middle := (low + high) / 2
		if m.Token(middle, context) <= within {
			low = middle
		} else {
			high = middle
		}
	}
	return low, false
}
