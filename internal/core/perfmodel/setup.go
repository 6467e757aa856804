package perfmodel

import "fmt"

// Engine is an inference engine.
type Engine string

// The engines.
const (
	VLLM   Engine = "vllm"
	SGLang Engine = "sglang"
	TRTLLM Engine = "trtllm"
)

// Parallel is how one engine is spread over GPUs. Zero means one.
type Parallel struct {
	// TP is the tensor-parallel size of attention and dense layers.
	TP int `json:"tp"`
	// PP is the number of pipeline stages.
	PP int `json:"pp,omitempty"`
	// DP is the number of attention ranks, each with requests and a cache of its
	// own. Experts are shared among them; dense models are merely repeated.
	DP int `json:"dp,omitempty"`
	// EP is over how many GPUs whole experts are spread; the rest of TP·DP slices
	// each expert.
	EP int `json:"ep,omitempty"`
}

func (p Parallel) filled() Parallel {
	return Parallel{TP: max(1, p.TP), PP: max(1, p.PP), DP: max(1, p.DP), EP: max(1, p.EP)}
}

// GPUs is how many GPUs the engine takes.
func (p Parallel) GPUs() int {
	p = p.filled()
	return p.TP * p.PP * p.DP
}

func (p Parallel) String() string {
	p = p.filled()
	return fmt.Sprintf("TP%d PP%d DP%d EP%d", p.TP, p.PP, p.DP, p.EP)
}

// Setup is one engine on its GPUs. Zero fields mean the engine's defaults.
type Setup struct {
	Model        Model
	GPU          GPU
	Engine       Engine
	Quantisation Quantisation
	Parallel     Parallel
	// Pool means that prompts and answers have engines of their own, and this is one of
	// them.
	Pool bool
	// MemoryFraction is the share of GPU memory that the engine may fill.
	MemoryFraction float64
	// MaxBatchedTokens bounds the tokens of one step, of one attention rank.
	MaxBatchedTokens int
	// MaxSequences bounds the running requests of one attention rank; 0 leaves
	// that to memory.
	MaxSequences int
	// Fallback means that the engine was told to leave the kernels that it has for products
	// of 8 bits with scales of blocks.
	Fallback bool
}

// DefaultBatchedTokens is the step size of an engine that is not told one.
const DefaultBatchedTokens = 8192

// BesideDecode is how many tokens of prompts a step takes in while sequences
// decode, of those that a step has room for. First tokens of vLLM were measured
// to come as if decoding sequences were spared long steps; the others fill steps.
func (e Engine) BesideDecode(batched int) int {
	if e == SGLang || e == TRTLLM {
		return max(1, batched)
	}
	return max(1, batched/3)
}

func (s Setup) filled() Setup {
	s.Parallel = s.Parallel.filled()
	s.Quantisation = s.Quantisation.or(s.Model.Published)
	if s.MemoryFraction == 0 {
		s.MemoryFraction = 0.9
		if s.Engine == SGLang {
			s.MemoryFraction = 0.88
		}
	}
	if s.MaxBatchedTokens == 0 {
		s.MaxBatchedTokens = DefaultBatchedTokens
	}
	return s
}

// projected is the format of attention's projections, and of the last of them, of a setup
// that is filled in. Checkpoints of mixtures in 4 bits keep attention in 16, but for the last
// projection of latent attention, which is the largest.
func (s *Setup) projected() (projections, last Precision) {
	weights := s.Quantisation.Weights
	switch {
	case !s.Model.Mixture() || weights.Bytes() >= 1:
		return weights, weights
	case s.Model.Latent != nil:
		return BF16, weights
	}
	return BF16, BF16
}

// LayoutError says why a parallel layout cannot run a model.
type LayoutError struct {
	Parallel Parallel
	Reason   string
}

func (e *LayoutError) Error() string { return fmt.Sprintf("layout %s: %s", e.Parallel, e.Reason) }

// Validate reports a layout that no engine would start: sizes that do not
// divide, or a format the GPU lacks.
func (s Setup) Validate() error {
	p := s.Parallel
	refuse := func(format string, args ...any) error {
		return &LayoutError{Parallel: p, Reason: fmt.Sprintf(format, args...)}
	}
	if p.TP < 0 || p.PP < 0 || p.DP < 0 || p.EP < 0 {
		return refuse("a size is negative")
	}
	p = p.filled()
	m := s.Model
	switch {
	case m.Heads%p.TP != 0:
		return refuse("%d attention heads are not divisible by TP %d", m.Heads, p.TP)
	case m.Latent == nil && m.KVHeads%p.TP != 0 && p.TP%m.KVHeads != 0:
		return refuse("%d key-value heads neither divide nor are divisible by TP %d", m.KVHeads, p.TP)
	case p.PP > m.Layers:
		return refuse("%d layers cannot form %d pipeline stages", m.Layers, p.PP)
	case m.expertLayers() < m.Layers && m.FFN%p.TP != 0:
		return refuse("network width %d is not divisible by TP %d", m.FFN, p.TP)
	case m.Linear != nil && m.Linear.KeyHeads%p.TP != 0:
		return refuse("%d linear-attention heads are not divisible by TP %d", m.Linear.KeyHeads, p.TP)
	}
	e := m.Experts
	if e == nil {
		if p.EP > 1 {
			return refuse("EP %d, but the model has no experts", p.EP)
		}
		return nil
	}
	group := p.TP * p.DP
	switch {
	case group%p.EP != 0:
		return refuse("EP %d does not divide TP·DP = %d", p.EP, group)
	case p.EP > e.Count:
		return refuse("%d experts cannot be spread over EP %d", e.Count, p.EP)
	case e.FFN%(group/p.EP) != 0:
		return refuse("expert width %d is not divisible by %d slices", e.FFN, group/p.EP)
	}
	return nil
}
