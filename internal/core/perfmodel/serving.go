package perfmodel

import (
	"cmp"
	"fmt"
	"math"
	"time"
)

// Arrival is how the requests of a load come. It decides whether prompts delay
// first tokens or next ones: their sum does not depend on it.
type Arrival string

// The processes.
const (
	// Staggered is a closed loop whose users ask again one after the other, as their
	// answers differ in length: what load generators with a fixed number of users
	// do, all of whom begin at once. It is what an empty Arrival means.
	Staggered Arrival = "spread"
	// InStep is a closed loop of equal requests: all users ask at once, and those
	// who were served together ask again together.
	InStep Arrival = "in-step"
	// Poisson is an open load: requests come at random, at the rate at which they
	// are served, and Concurrency is how many are there in the mean.
	Poisson Arrival = "poisson"
)

// Arrivals are those that a load may have.
var Arrivals = []Arrival{Staggered, InStep, Poisson}

// Load is a number of equal requests at a time.
type Load struct {
	// Concurrency is how many requests an engine has at once, over all its
	// attention ranks.
	Concurrency int
	Input       int // prompt tokens
	Output      int // output tokens
	// Cached is the share of a prompt that is found in the cache, 0 to 1.
	Cached  float64
	Arrival Arrival
}

// Serving is what a load gets.
type Serving struct {
	FirstToken Estimate // TTFT
	PerToken   Estimate // ITL, TPOT
	// Requests and Tokens are completed per second by the engine, and output
	// tokens per second and GPU.
	Requests     float64
	Tokens       float64
	TokensPerGPU float64
}

// CapacityError says that a load does not fit into an engine's cache.
type CapacityError struct {
	Concurrency, Most int
}

func (e *CapacityError) Error() string {
	return fmt.Sprintf("%d concurrent requests do not fit: the key-value cache holds %d", e.Concurrency, e.Most)
}

func (l Load) fresh() (fresh, cached float64) {
	cached = math.Floor(float64(l.Input) * min(1, max(0, l.Cached)))
	fresh = max(1, float64(l.Input)-cached)
	return fresh, float64(l.Input) - fresh
}

// prompt is the prefill of one request, and step one step of a rank's batch in
// the middle of the answers, in seconds. They are what a load costs.
func (c *cost) prompt(l Load) float64 {
	fresh, cached := l.fresh()
	return c.prefill(1, fresh, cached)
}

func (c *cost) step(batch float64, l Load) float64 {
	return c.decode(batch, float64(l.Input)+float64(l.Output)/2)
}

// together is which share of those that could come together do: of them each
// waits for half of the others' prompts before its first token, in the mean, and
// the other half computes theirs while it decodes.
func (c *cost) together(a Arrival) float64 {
	switch a {
	case InStep:
		return c.k.EqualQueue
	case Poisson:
		return 0
	default:
		return c.k.Queue
	}
}

// meeting is the same of requests that come to a prefill pool.
func (c *cost) meeting(a Arrival) float64 {
	if a == InStep || a == Poisson || c.k.Meeting == 0 {
		return c.together(a)
	}
	return c.k.Meeting
}

// company is how many prompts are computed in one pass. SGLang computes prompts in
// passes of their own, as many as there is room for: equal requests that were served
// together come back together. The others take a prompt into the step that runs.
func (c *cost) company(batch float64, l Load) float64 {
	if l.Arrival != InStep || c.Engine != SGLang {
		return 1
	}
	fresh, _ := l.fresh()
	return max(1, min(batch, math.Floor(float64(c.MaxBatchedTokens)/fresh)))
}

// added is what each prompt adds to the steps of a rank's batch, in seconds.
func (c *cost) added(batch, company float64, l Load) float64 {
	fresh, cached := l.fresh()
	if c.Engine == SGLang {
		return c.prefill(company, fresh, cached) / company
	}
	return c.joined(batch, fresh, cached)
}

// joined is by how much steps of n sequences become longer that take in a prompt, a
// part of it at a time: they read the weights anyway.
func (c *cost) joined(n, fresh, cached float64) float64 {
	parts := max(1, fresh/float64(c.Engine.BesideDecode(c.MaxBatchedTokens)))
	return c.lookaround(fresh, cached) + c.measured(c.k.Prompt, func(c *cost) float64 {
		time := parts * (c.layers(n+fresh/parts, n+1) - c.layers(n, n))
		return time + c.passes(fresh) + c.output(n+1) - c.output(n)
	})
}

// Part is a part of a prompt that a pass computes, and how many tokens are before it.
type Part struct{ Fresh, Before int }

// Pass is the time of one pass that computes parts of prompts, and gives a token to
// sequences for which that alone takes step; zero if there are none.
func (e *Estimator) Pass(parts []Part, step time.Duration) time.Duration {
	if len(parts) == 0 {
		return step
	}
	var attention float64
	tokens := 0
	for _, p := range parts {
		attention += e.c.lookaround(float64(p.Fresh), float64(p.Before))
		tokens += p.Fresh
	}
	prompts := e.c.prompts(float64(len(parts)), float64(tokens), step > 0) + attention
	return step + estimate(e.c.shared(step > 0)*prompts, 0).Value
}

// shared is the share of its time that a pass takes longer by prompts: all of it
// where nothing else is computed.
func (c *cost) shared(beside bool) float64 {
	if beside {
		return c.k.beside()
	}
	return 1
}

// prompts is the time that tokens of parts of prompts add to a pass, but for
// attention. Beside a step they read no weights that it does not, but for experts:
// one sequence stands for all, as a pass is asked about more often than it matters.
func (c *cost) prompts(parts, tokens float64, beside bool) float64 {
	return c.measured(c.k.Prompt, func(c *cost) float64 {
		if !beside || c.Engine == SGLang {
			return c.layers(tokens, parts) + c.passes(tokens) + c.output(parts)
		}
		return c.layers(1+tokens, 1+parts) - c.layers(1, 1) + c.passes(tokens) + c.output(1+parts) - c.output(1)
	})
}

// token is the mean time per output token of a rank's batch, in seconds: the
// step itself, and other requests' prompts computed in between, but for those that
// were computed together with its own.
func (c *cost) token(t Terms, l Load) float64 {
	beside := c.k.Interference * (1 - c.together(l.Arrival)/2)
	return t.Step + beside*(t.Batch-t.Company)/float64(max(1, l.Output))*t.Added
}

// occupied is how much later a first token comes where an engine serves others, too, but
// for what GPUs compute, in seconds.
func (c *cost) occupied() float64 {
	m := &c.Model
	micros := c.k.Busy + c.k.BusyLayer*float64(m.Layers) + c.k.BusyExpert*float64(m.expertLayers())
	if m.Latent != nil {
		micros += c.k.BusyLatent * float64(m.Layers)
	}
	if m.Linear != nil {
		micros += c.k.BusyLinear * float64(m.Linear.Layers)
	}
	return cmp.Or(c.k.Request, 1) * micros * 1e-6
}

// first is the mean time to the first token of requests of about the same length,
// in seconds: what is fixed, the own prompt and those computed with it, which
// others' steps slow down, the steps that run when it comes, and the prompts before
// it. In an open load these are a line at the one server that computes prompts.
func (c *cost) first(t Terms, l Load) float64 {
	others, own := 1-1/t.Batch, c.k.Own
	if l.Arrival == InStep {
		own = c.k.Equal
	}
	pass := own * t.Company * t.Added
	first := c.k.first() + c.occupied()*others + t.Prompt + (pass-t.Prompt)*others + c.k.Wait*t.Token*others
	if l.Arrival == Poisson {
		whole := first + t.Token*float64(max(0, l.Output-1))
		busy := min(0.95, t.Batch/whole*t.Added)
		return first + t.Added*busy/(2*(1-busy))
	}
	return first + c.together(l.Arrival)*(t.Batch-t.Company)/2*t.Line
}

// line is what each of the prompts before one takes that wait together. Passes of SGLang
// read weights once for as many as there is room for; steps of the others read them anyway.
func (c *cost) line(t Terms, l Load) float64 {
	if c.Engine != SGLang || l.Arrival == InStep { // or counted by company
		return t.Added
	}
	fresh, cached := l.fresh()
	n := max(1, min(t.Batch, math.Floor(float64(c.MaxBatchedTokens)/fresh)))
	return c.prefill(n, fresh, cached) / n
}

// round is one turn of a closed loop on a rank, in which every user asks once:
// a guess at what ClosedLoop finds. Beside decoding sequences a prompt takes
// chunks steps; it waits for the step that runs when it comes, and where prompts
// fill more steps than answers have tokens, for those before it.
func (c *cost) round(users, prompt float64, l Load) (first, token float64) {
	output := float64(max(1, l.Output))
	if users <= 1 {
		return c.k.first() + prompt, c.step(1, l)
	}
	fresh, _ := l.fresh()
	chunks := fresh / float64(c.Engine.BesideDecode(c.MaxBatchedTokens))
	own := math.Ceil(chunks)
	steps := max(output+own+1, users*chunks)
	decoding := max(1, users*output/steps)
	step := c.step(decoding, l)
	prompt = c.k.beside() * c.added(decoding, c.company(users, Load{Input: l.Input, Cached: l.Cached, Arrival: InStep}), l)
	// Users that once waited for each other come back one after the other, so
	// the steps that a prompt waits for are full of others.
	wait := max(own+1, steps-output)
	first = c.k.first() + wait*step + min(wait/chunks, users)*prompt
	return first, step + prompt*users/steps
}

func (c *cost) perRank(concurrency int) float64 {
	return math.Ceil(float64(max(1, concurrency)) / float64(c.Parallel.DP))
}

// Aggregated estimates an engine that does both prefill and decode.
func (e *Estimator) Aggregated(l Load) (Serving, error) {
	if most := e.MaxConcurrency(l.Input, l.Output); l.Concurrency > most {
		return Serving{}, &CapacityError{Concurrency: l.Concurrency, Most: most}
	}
	first, token := e.c.round(e.c.perRank(l.Concurrency), e.c.prompt(l), l)
	return e.serving(first, token, l), nil
}

// PerToken is the mean time between output tokens under a load that fits.
func (e *Estimator) PerToken(l Load) Estimate {
	return estimate(e.Terms(l).Token, e.spread().TokenP90)
}

// Serve is the mean of what a load gets that comes as its Arrival says, by
// formula. A load that does not fit is refused.
func (e *Estimator) Serve(l Load) (Serving, error) {
	if most := e.MaxConcurrency(l.Input, l.Output); l.Concurrency > most {
		return Serving{}, &CapacityError{Concurrency: l.Concurrency, Most: most}
	}
	return e.under(l), nil
}

// First is the mean time to the first token under a load that fits.
func (e *Estimator) First(l Load) Estimate { return e.under(l).FirstToken }

func (e *Estimator) under(l Load) Serving {
	t := e.Terms(l)
	return e.serving(t.First, t.Token, l)
}

// Terms are what the times of a load are made of, in seconds: the prompt alone, the
// step of one rank's batch, how many prompts are computed together and what each of
// them adds to steps, what each takes of those that wait in line, and what comes of them.
// They are for fitting.
type Terms struct{ Batch, Prompt, Step, Company, Added, Line, Token, First float64 }

// Terms of a load that fits.
func (e *Estimator) Terms(l Load) Terms {
	t := Terms{Batch: e.c.perRank(l.Concurrency), Prompt: e.c.prompt(l)}
	t.Step = e.c.step(t.Batch, l)
	t.Company = e.c.company(t.Batch, l)
	t.Added = t.Prompt
	if t.Batch > 1 {
		t.Added = e.c.added(t.Batch, t.Company, l)
	}
	t.Line = e.c.line(t, l)
	t.Token = e.c.token(t, l)
	t.First = e.c.first(t, l)
	return t
}

func (e *Estimator) serving(first, token float64, l Load) Serving {
	s := Serving{FirstToken: estimate(first, e.firstSpread(l.Arrival)), PerToken: estimate(token, e.spread().TokenP90)}
	s.Requests = float64(l.Concurrency) / (first + token*float64(max(0, l.Output-1)))
	s.Tokens = s.Requests * float64(l.Output)
	s.TokensPerGPU = s.Tokens / float64(e.c.Parallel.GPUs())
	return s
}

// PrefillRate is how many prompts per second an engine that only prefills can
// compute, all attention ranks together.
func (e *Estimator) PrefillRate(l Load) float64 { return e.c.prefiller(l).most() }

// PrefillOnly estimates the first token of a prefill engine to which requests
// come at random with rate per second; the decode engine adds the transfer. An
// overloaded engine has no answer.
func (e *Estimator) PrefillOnly(l Load, rate float64) (Estimate, error) {
	p := e.c.prefiller(l)
	if most := p.most(); rate >= most {
		return Estimate{}, &OverloadError{Rate: rate, Most: most}
	}
	return estimate(e.c.k.first()+p.stay(rate, 1), e.firstSpread(Poisson)), nil
}

// OverloadError says that requests come faster than they can be served.
type OverloadError struct {
	Rate, Most float64
}

func (e *OverloadError) Error() string {
	return fmt.Sprintf("%.3g requests per second, at most %.3g can be served", e.Rate, e.Most)
}

// DecodeOnly estimates a decode engine whose prompts are computed elsewhere.
// FirstToken of the result is what this half adds: the transfer of the prompt's
// cache, and the step that gives the token.
func (e *Estimator) DecodeOnly(l Load) (Serving, error) {
	if most := e.MaxConcurrency(l.Input, l.Output); l.Concurrency > most {
		return Serving{}, &CapacityError{Concurrency: l.Concurrency, Most: most}
	}
	batch := e.c.perRank(l.Concurrency)
	token := e.c.step(batch, l)
	s := e.serving(0, token, l)
	s.FirstToken = e.Transfer(l.Input).plus(e.Decode(int(batch), float64(l.Input)))
	return s, nil
}
