package perfmodel

import "math"

const gibibyte = 1 << 30

// Memory is what an engine's GPUs hold, in bytes of one GPU where not said
// otherwise.
type Memory struct {
	Usable      float64 // what the engine may fill
	Weights     float64
	Activations float64
	// CachePerToken is what one token keeps on one GPU.
	CachePerToken float64
	// Tokens is the capacity of the cache of the whole engine, all attention
	// ranks together. 0 means the weights do not fit.
	Tokens int
}

// Fits reports whether the engine could start at all.
func (m Memory) Fits() bool { return m.Tokens > 0 }

// weights is the room of the weights on the fullest GPU.
func (c *cost) weights() float64 {
	m, p, q := &c.Model, c.Parallel, c.Quantisation
	h, t, pp := float64(m.Hidden), float64(p.TP), float64(p.PP)
	projections, last := c.projected()
	attention := projections.Bytes() * (m.attentionWeights() - m.lastProjection())
	attention += last.Bytes() * m.lastProjection()
	dense := float64(m.attending())*attention + float64(m.Layers-m.attending())*projections.Bytes()*m.linearWeights()
	dense += q.Weights.Bytes() * 3 * h * float64(m.FFN) * float64(m.Layers-m.expertLayers())
	total := dense / t / pp
	if e := m.Experts; e != nil {
		layers := float64(m.expertLayers()) / pp
		total += layers * (q.Weights.Bytes()*3*h*float64(e.Shared)/t + 2*h*float64(e.Count))
		total += layers * q.Experts.Bytes() * 3 * h * float64(e.FFN) * float64(e.Count) * e.uneven(p.EP) / float64(p.TP*p.DP)
	}
	embedding := 2 * h * float64(m.Vocab) / t
	if !m.Tied && p.PP == 1 {
		embedding *= 2
	}
	return total + embedding
}

// Memory is the layout of one GPU.
func (e *Estimator) Memory() Memory { return e.memory }

func (c *cost) memory() Memory {
	p := c.Parallel
	kv := c.Quantisation.Cache.Bytes()
	perToken := c.Model.cachePerToken() * kv / float64(p.PP)
	if c.Model.Latent == nil {
		perToken *= split(c.Model.KVHeads, p.TP) / float64(c.Model.KVHeads)
	}
	out := Memory{
		Weights:       c.weights(),
		Activations:   2*gibibyte + 2*float64(c.MaxBatchedTokens*c.Model.Hidden)*(4+6/float64(p.TP)),
		CachePerToken: perToken,
	}
	total := c.GPU.Memory * gibibyte
	var cache float64
	switch c.Engine {
	case SGLang: // the fraction is for weights and cache, the rest for activations
		out.Usable = min(total*c.MemoryFraction, total-out.Activations)
		cache = out.Usable - out.Weights
	case TRTLLM: // the fraction is of what is left after loading
		cache = (total - out.Weights - out.Activations) * c.MemoryFraction
		out.Usable = out.Weights + out.Activations + cache
	default:
		out.Usable = total * c.MemoryFraction
		cache = out.Usable - out.Weights - out.Activations
	}
	out.Tokens = max(0, int(math.Floor(cache/perToken))) * p.DP
	return out
}

// MaxConcurrency is how many requests of isl prompt and osl output tokens the
// whole engine can run at once.
func (e *Estimator) MaxConcurrency(isl, osl int) int {
	perRank := e.memory.Tokens / e.c.Parallel.DP / max(1, isl+osl)
	if e.c.MaxSequences > 0 {
		perRank = min(perRank, e.c.MaxSequences)
	}
	return perRank * e.c.Parallel.DP
}
