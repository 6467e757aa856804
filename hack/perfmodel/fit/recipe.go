package fit

import "github.com/dynamo-operator/dynamo-operator/internal/core/perfmodel"

// The recipes that the public benchmark publishes for SGLang's pools, of February and March
// 2026, and its scripts for aggregated engines say how engines were started; the table does
// not. See docs/design/0022.

// prefillRecipe is the setup of a prefill worker by its recipe.
func prefillRecipe(c columns, s perfmodel.Setup) perfmodel.Setup {
	if s.Engine != perfmodel.SGLang || !s.Model.Mixture() {
		return s
	}
	four, ranks, whole := s.Quantisation.Experts == perfmodel.FP4, s.Parallel.DP > 1, s.Parallel.EP > 1
	b200, gb300 := s.GPU.Name == "b200_sxm", s.GPU.Name == "gb300"
	switch { // --chunked-prefill-size, of each rank
	case ranks && (gb300 || four && c.int("prefill_num_workers") > 1):
		s.MaxBatchedTokens = 16384
	case ranks || c.int("isl") < 8192:
	case four && gb300:
		s.MaxBatchedTokens = 24576
	case four || b200 || gb300:
		s.MaxBatchedTokens = 32768
	}
	if b200 && !four && ranks && !whole { // --max-running-requests, of all eight ranks
		s.MaxSequences = 1
	}
	s.Fallback = fallsBack(s) && (gb300 && !ranks || b200 && whole)
	return s
}

// fallsBack reports whether an engine was started with SGLANG_ENABLE_JIT_DEEPGEMM=false: all
// aggregated ones of DeepSeek in 8 bits on Blackwell were, and some of its prefill workers.
func fallsBack(s perfmodel.Setup) bool {
	return s.Engine == perfmodel.SGLang && architecture(s.Model.Name) == "DeepSeek-V3" &&
		s.GPU.Generation == perfmodel.Blackwell && s.Quantisation.Weights == perfmodel.FP8
}

// decodeGathering is for how many steps a decode worker does not look at what came. A
// prefill worker begins with a prompt when its decode worker has made room.
func decodeGathering(s perfmodel.Setup) gathering {
	if s.Engine == perfmodel.SGLang && s.GPU.Name == "gb300" && s.Quantisation.Experts == perfmodel.FP4 && s.Parallel.DP == 1 {
		return gathering{Every: 10}
	}
	return gathering{}
}
