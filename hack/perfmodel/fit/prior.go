package fit

import "github.com/dynamo-operator/dynamo-operator/internal/core/perfmodel"

// Prior is where a fit starts and what decides where measurements say nothing:
// values that are common on such hardware, the same for every engine but for two
// things. SGLang computes prompts before steps, so that those who wait for a prompt
// begin to decode together: equal ones come back together, and so do those at a pool of
// prompts; how many equal ones share a pass is counted, so that what it takes for one of
// them stays as it is. And vLLM compiles what is between kernels, so that kinds of layers
// that have many differ less.
func Prior() []perfmodel.Constants {
	var out []perfmodel.Constants
	for _, engine := range []perfmodel.Engine{perfmodel.VLLM, perfmodel.SGLang, perfmodel.TRTLLM} {
		for _, mixture := range []bool{false, true} {
			meeting, equal, own, latent := 0.12, 0.15, 2.0, 1200.0
			switch engine {
			case perfmodel.SGLang:
				meeting, equal, own = 0.3, 0.9, 1
			case perfmodel.VLLM:
				latent = 300
			}
			out = append(out, perfmodel.Constants{
				Engine: engine, Mixture: mixture,
				Weights: 0.9, FourBit: 0.85, Cache: 0.85, Attention: 0.85, ExpertBandwidth: 0.6, ExpertCompute: 0.5, Reduce: 0.8, Exchange: 0.5, ExchangeStart: 15, Scatter: 0.7,
				Compute:     map[perfmodel.Precision]float64{perfmodel.BF16: 0.85, perfmodel.FP8: 0.8, perfmodel.FP4: 0.7},
				ReduceStart: 4, ReduceHop: 2,
				Layer:       map[perfmodel.Generation]float64{perfmodel.Hopper: 10, perfmodel.Blackwell: 10},
				ExpertLayer: map[perfmodel.Generation]float64{perfmodel.Hopper: 30, perfmodel.Blackwell: 30},
				Route:       5, LatentLayer: 10, LinearLayer: 10, SparseLayer: 50, BlockScales: 5, Unpack: 30, Quantise: 2,
				Host: 400, Sequence: 10, First: 18000, Busy: 10000, BusyLayer: 400, BusyExpert: 300, BusyLatent: latent, BusyLinear: 3000,
				Interference: 0.9, Own: 1, Wait: 2, Queue: 0.12, Equal: own, EqualQueue: equal,
				Prefilling: 0.7, Handover: 50000, Meeting: meeting, Full: 0.02,
			})
		}
	}
	return out
}
