package perfmodel

import (
	"cmp"
	"math"
)

// The functions of this file return seconds. They are the arithmetic of
// docs/spec/performance-model.md, one function per kind of work: each takes the
// longer of computing and of moving bytes, as both overlap on a GPU.

// cost computes with one setup, all of whose fields are filled in.
type cost struct {
	Setup
	k       Constants
	kernels Kernels
	// What the tables say of this setup, looked up once: a search asks for the
	// same setup thousands of times.
	dense, expert, plain format
	project, last        format  // of attention's projections, and of the last of them
	layer, expertLayer   float64 // fixed times
	streaming            float64 // bandwidth while reading weights
	reading              float64 // bandwidth while reading the cache
	grouped              float64 // bandwidth while reading experts
	attention            float64 // speed of attention
	// busy is on how many attention ranks tokens are, who all have as many; zero means on
	// all of them.
	busy float64
	// alone is the same setup of kernels alone, which nothing that was measured to take
	// less than constants say gets below.
	alone *cost
}

// among is the same setup with tokens on so many attention ranks. The others have
// nothing to compute, but their GPUs hold experts.
func (c *cost) among(ranks float64) *cost {
	if c.Parallel.DP == 1 {
		return c
	}
	some := *c
	some.busy = min(ranks, float64(c.Parallel.DP))
	if c.alone != nil {
		some.alone = c.alone.among(ranks)
	}
	return &some
}

// format is how fast an engine computes with a number format, what an element of a
// weight and of an input takes, and for how long inputs are put into it.
type format struct{ speed, weight, input, quantise float64 }

// fallback is which share of their speed products have without the kernels made for them.
const fallback = 0.25

func bind(s Setup, k Constants, kernels Kernels) cost {
	of := func(p Precision, share float64) format {
		f := format{speed: s.GPU.flops(p) * kernels.compute(p) * share, weight: p.Bytes(), input: p.activation()}
		if p == FP4 {
			f.quantise = k.Quantise * 1e-6
		}
		return f
	}
	weights := func(p Precision) format {
		f := of(p, k.compute(p))
		if s.Fallback && p == FP8 {
			f.speed *= fallback
		}
		if p.Bytes() < 1 && k.FourBit > 0 {
			f.weight /= k.FourBit // read more slowly, as if there were more of it
		}
		return f
	}
	projections, last := s.projected()
	read := s.GPU.bandwidth() * kernels.Read
	c := cost{
		Setup: s, k: k, kernels: kernels,
		dense: weights(s.Quantisation.Weights), expert: of(s.Quantisation.Experts, k.ExpertCompute), plain: weights(BF16),
		project: weights(projections), last: weights(last),
		layer: generationOf(k.Layer, s.GPU.Generation), expertLayer: generationOf(k.ExpertLayer, s.GPU.Generation),
		streaming: read * k.Weights,
		grouped:   read * k.ExpertBandwidth,
		reading:   s.GPU.bandwidth() * kernels.Context * k.Cache,
		attention: s.GPU.flops(BF16) * kernels.Prompt * k.Attention,
	}
	if min(cmp.Or(k.Step, 1), cmp.Or(k.Prompt, 1)) < 1 {
		alone := bind(s, kernels.Fastest(k.Engine), kernels)
		c.alone = &alone
	}
	return c
}

// product is a matrix product of m rows with a k by n matrix of weights.
func (c *cost) product(m, n, k float64, f *format) float64 {
	if n <= 0 || k <= 0 {
		return 0
	}
	fixed := c.kernels.Start + c.kernels.Depth*k/1024*(1+c.kernels.Narrow/n)
	busy := overlap((f.weight*n*k+f.input*m*k)/c.streaming, 2*m*n*k/f.speed)
	return fixed*1e-6 + f.quantise + busy + c.kernels.Written*2*m*n/c.streaming
}

// split divides heads among tensor-parallel ranks, each having at least one.
func split(n, ranks int) float64 { return max(1, float64(n)/float64(ranks)) }

// projections are the products around attention, of one layer.
func (c *cost) projections(m float64) float64 {
	s, t, h := &c.Model, c.Parallel.TP, float64(c.Model.Hidden)
	w, last := &c.project, &c.last
	if l := s.Latent; l != nil {
		n := split(s.Heads, t)
		time := c.product(m, float64(l.Query+l.KV+l.RoPE), h, w)
		time += c.product(m, n*float64(l.NoPE+l.RoPE), float64(max(l.Query, 1)), w)
		time += c.product(m, n*float64(l.KV), float64(l.NoPE), &c.plain)
		time += c.product(m, n*float64(l.Value), float64(l.KV), &c.plain)
		return time + c.product(m, h, n*float64(l.Value), last)
	}
	d, query := float64(s.HeadSize), split(s.Heads, t)
	gated := query
	if s.Gated {
		gated *= 2
	}
	return c.product(m, (gated+2*split(s.KVHeads, t))*d, h, w) + c.product(m, h, query*d, last)
}

// linear is a layer of linear attention: its products, and its state read and
// written once per sequence.
func (c *cost) linear(m, sequences float64) float64 {
	l, t, h := c.Model.Linear, c.Parallel.TP, float64(c.Model.Hidden)
	keys, values := split(l.KeyHeads, t)*float64(l.Size), split(l.Heads, t)*float64(l.Size)
	time := c.product(m, 2*keys+2*values, h, &c.project) + c.product(m, h, values, &c.last)
	state := 2 * 4 * values * float64(l.Size) * sequences / c.reading
	compute := 8 * m * values * float64(l.Size) / (c.attention)
	return time + max(state, compute)
}

// network is the dense feed-forward part of a layer.
func (c *cost) network(m float64, width int) float64 {
	if width == 0 {
		return 0
	}
	f, h, w := float64(width)/float64(c.Parallel.TP), float64(c.Model.Hidden), &c.dense
	return c.product(m, 2*f, h, w) + c.product(m, h, f, w)
}

// imbalance is how much more than the mean the busiest GPU gets when whole
// experts live on GPUs.
const imbalance = 1.05

// experts is the mixture part of a layer, for m tokens of each attention rank that has any.
func (c *cost) experts(m float64) float64 {
	e, p := c.Model.Experts, c.Parallel
	group, h, f := float64(p.TP*p.DP), float64(c.Model.Hidden), float64(e.FFN)
	tokens := m * cmp.Or(c.busy, float64(p.DP))
	count, active := float64(e.Count), float64(e.Active)
	touched := count * (1 - math.Pow(1-active/count, max(1, tokens*c.k.Scatter)))
	compute := 6 * tokens * active * h * f / group / c.expert.speed
	bytes := c.expert.weight*3*h*f*touched/group + 4*tokens*active*h/group
	time := overlap(compute, bytes/c.grouped) + 2*(c.kernels.Start*1e-6+c.expert.quantise)
	if p.EP > 1 {
		time *= imbalance * e.uneven(p.EP)
	}
	if p.DP > 1 {
		// Slices of experts are sent all tokens, whole experts those that chose them: then a
		// rank that is alone with its tokens sends as many as each one receives of all.
		handed := tokens
		if p.EP > 1 {
			handed = m * float64(p.DP) * (1 - math.Pow(1-1/float64(p.EP), active))
		}
		time += c.handing(handed*h*c.expert.input, p.TP*p.DP) + c.handing(handed*h*2, p.TP*p.DP)
	}
	return time + c.product(m, count, h, &c.plain) + c.network(m, e.Shared)
}

// expertOverhead is the fixed time of a layer with experts.
func (c *cost) expertOverhead() float64 {
	micros := c.expertLayer + c.k.Route*float64(c.Model.Experts.Count)/100
	switch q := c.Quantisation.Experts; {
	case q == FP8:
		micros += c.k.BlockScales
	case q == MXFP4 && c.GPU.Teraflops[FP4] == 0:
		micros += c.k.Unpack
	}
	return micros * 1e-6
}

// exchange moves bytes among n GPUs once.
func (c *cost) exchange(bytes float64, n int) float64 {
	if n <= 1 {
		return 0
	}
	ranks := float64(n)
	return c.start(n) + (ranks-1)/ranks*bytes/(c.GPU.link(n)*c.k.Reduce)
}

// handing hands tokens of attention ranks to the GPUs that have their experts, or back:
// so many bytes together, of which each of n GPUs gets its part.
func (c *cost) handing(bytes float64, n int) float64 {
	ranks := float64(n)
	return c.k.ExchangeStart*1e-6 + (ranks-1)/ranks*bytes/(c.GPU.link(n)*cmp.Or(c.k.Exchange, 1))
}

// reduce sums m rows of the hidden size over the tensor-parallel ranks.
func (c *cost) reduce(m float64) float64 {
	n := c.Parallel.TP
	if n <= 1 {
		return 0
	}
	// A GPU sends all of its rows to all others at once, or, in two rounds, to each of
	// them its part and then the sum of its own.
	ranks := float64(n)
	each := 2 * m * float64(c.Model.Hidden) / (c.GPU.link(n) * c.k.Reduce)
	return min(c.start(n)+(ranks-1)*each, 2*(c.start(n)+(ranks-1)/ranks*each))
}

// start is what n GPUs take to exchange anything.
func (c *cost) start(n int) float64 {
	return (c.k.ReduceStart + c.k.ReduceHop*math.Log2(float64(n))) * 1e-6
}

// layers is everything of a pass but attention and the output: m tokens of
// sequences sequences through all layers.
func (c *cost) layers(m, sequences float64) float64 {
	s := &c.Model
	attending, mixed := float64(s.attending()), float64(s.expertLayers())
	all := float64(s.Layers)
	time := attending * c.projections(m)
	if s.Linear != nil {
		time += float64(s.Linear.Layers) * (c.linear(m, sequences) + c.k.LinearLayer*1e-6)
	}
	if s.Latent != nil {
		time += attending * c.k.LatentLayer * 1e-6
	}
	if s.Sparse > 0 {
		time += attending * c.k.SparseLayer * 1e-6
	}
	time += (all - mixed) * c.network(m, s.FFN)
	if mixed > 0 {
		time += mixed * (c.experts(m) + c.expertOverhead())
	}
	time += all*2*c.reduce(m) + (all-mixed)*c.layer*1e-6
	if s.Normed {
		time += attending * c.exchange(2*4*m, c.Parallel.TP)
	}
	if pp := float64(c.Parallel.PP); pp > 1 {
		time += (pp - 1) * (2*m*float64(s.Hidden)/c.GPU.link(c.Parallel.GPUs()) + 10e-6)
	}
	return time
}

// output is the product with the vocabulary, for as many rows as sequences.
func (c *cost) output(rows float64) float64 {
	return c.product(rows, float64(c.Model.Vocab)/float64(c.Parallel.TP), float64(c.Model.Hidden), &c.plain)
}

// reach is how far a layer looks back from position s, and in how many layers.
func (c *cost) reach(s float64) (full, window, windowLayers float64) {
	layers := float64(c.Model.attending())
	if c.Model.Sparse > 0 {
		s = min(s, float64(c.Model.Sparse))
	}
	if w := c.Model.Window; w != nil {
		return s, min(s, float64(w.Tokens)), float64(w.Layers) / layers
	}
	return s, 0, 0
}

// indexHeads and indexSize are the shape of the scorer that picks the tokens of
// sparse attention.
const indexHeads, indexSize = 32, 128

// headsAtOnce is how many heads kernels of sparse attention compute, if there are fewer, too.
const headsAtOnce = 64

// lookback is attention of one new token of each of n sequences to a context of
// s tokens, in all layers.
func (c *cost) lookback(n, s float64) float64 {
	layers := float64(c.Model.attending())
	full, window, share := c.reach(s)
	span := full*(1-share) + window*share
	kv := c.Quantisation.Cache.Bytes()
	bandwidth, start := c.reading, c.kernels.ContextStart*1e-6
	var index float64
	if c.Model.Sparse > 0 {
		index = n * s * indexSize / bandwidth
	}
	if l := c.Model.Latent; l != nil {
		width := float64(l.KV + l.RoPE)
		bytes := width * kv * span * n / bandwidth
		compute := 2 * n * span * split(c.Model.Heads, c.Parallel.TP) * (width + float64(l.KV)) / c.attention
		return layers * (start + overlap(bytes, compute) + index)
	}
	head := 2 * float64(c.Model.HeadSize) * kv * span
	read := split(c.Model.KVHeads, c.Parallel.TP) * head * n / bandwidth
	if c.k.Undivided {
		read = max(read, head/(c.kernels.Alone*1e9))
	}
	return layers * (start + read + index)
}

// lookaround is attention of new tokens, of which before are cached, to
// everything up to themselves, in all layers.
func (c *cost) lookaround(fresh, before float64) float64 {
	return c.measured(c.k.Prompt, func(c *cost) float64 { return c.attended(fresh, before) })
}

func (c *cost) attended(fresh, before float64) float64 {
	layers := float64(c.Model.attending())
	s := fresh + before
	pairs := func(limit float64) float64 {
		if s <= limit {
			return (s*s - before*before) / 2
		}
		return fresh * limit
	}
	full, window, share := c.reach(s)
	work := pairs(full)*(1-share) + pairs(window)*share
	if full == s {
		work = (s*s-before*before)/2*(1-share) + pairs(window)*share
	}
	flops := c.attention
	var index float64
	if c.Model.Sparse > 0 {
		index = 2 * indexHeads * indexSize * (s*s - before*before) / 2 / flops
	}
	n := split(c.Model.Heads, c.Parallel.TP)
	start := c.kernels.PromptStart * 1e-6
	work *= 1 + c.kernels.PromptFill/max(1, n*fresh/128)
	if l := c.Model.Latent; l != nil {
		each := n * float64(l.NoPE+l.RoPE+l.Value)
		if sparse := float64(c.Model.Sparse); sparse > 0 && s > sparse {
			// Tokens that pick what they look at have no keys in common, so each looks at
			// the cache as in a step, for as many heads as kernels compute at once.
			each = math.Ceil(n/headsAtOnce) * headsAtOnce * float64(2*l.KV+l.RoPE)
		}
		return layers * (start + 2*each*work/flops + index)
	}
	return layers * (start + 4*n*float64(c.Model.HeadSize)*work/flops + index)
}

// rows bounds how many sequences of a batch share a pass of a pipeline.
func (c *cost) rows(batch float64) float64 {
	return math.Ceil(batch / float64(c.Parallel.PP))
}

// decode is one step of a rank's batch at a mean context, as many times as long as
// was measured.
func (c *cost) decode(batch, context float64) float64 {
	return c.measured(c.k.Step, func(c *cost) float64 {
		b := c.rows(batch)
		return c.layers(b, b) + c.lookback(b, context) + c.output(b) + (c.k.Host+c.k.Sequence*batch)*1e-6
	})
}

// measured is a time that was found to be so many times as long as all other constants
// say; zero means once. It is no less than kernels take.
func (c *cost) measured(times float64, time func(*cost) float64) float64 {
	switch {
	case times == 0:
		return time(c)
	case times < 1:
		return max(times*time(c), time(c.alone))
	}
	return times * time(c)
}

// prefill computes fresh tokens of each of batch prompts after cached ones.
func (c *cost) prefill(batch, fresh, cached float64) float64 {
	if fresh <= 0 {
		return 0
	}
	return c.prompts(batch, batch*fresh, false) + batch*c.lookaround(fresh, cached)
}

// passes are norms and activations of m tokens, in all layers. Engines fuse
// activations with products.
func (c *cost) passes(m float64) float64 {
	bytes := c.kernels.HiddenBytes * float64(c.Model.Hidden)
	if c.k.Unfused {
		bytes += c.kernels.ActivatedBytes * float64(c.Model.FFN) / float64(c.Parallel.TP)
	}
	return m * bytes * float64(c.Model.Layers) / (passBandwidth * c.GPU.bandwidth())
}
