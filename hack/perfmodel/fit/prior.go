package fit

import "github.com/dynamo-operator/dynamo-operator/internal/core/perfmodel"

// Prior is where a fit starts and what decides where measurements say nothing:
// values that are common on such hardware, the same for every engine but for how
// prompts hold up others. SGLang computes prompts before steps: of requests that
// come together all wait for each other's prompts before they decode, so half of
// that time is spent before the first token. When they come apart it is as with
// the others, so the prior lies in between.
func Prior() []perfmodel.Constants {
	var out []perfmodel.Constants
	for _, engine := range []perfmodel.Engine{perfmodel.VLLM, perfmodel.SGLang, perfmodel.TRTLLM} {
		for _, mixture := range []bool{false, true} {
			interference := 0.7
			if engine == perfmodel.SGLang {
				interference = 0.6
			}
			out = append(out, perfmodel.Constants{
				Engine: engine, Mixture: mixture,
				Weights: 0.85, FourBit: 0.85, Cache: 0.8, Attention: 0.6, ExpertBandwidth: 0.6, ExpertCompute: 0.35, Reduce: 0.6, Scatter: 0.7,
				Compute:     map[perfmodel.Precision]float64{perfmodel.BF16: 0.65, perfmodel.FP8: 0.55, perfmodel.FP4: 0.45},
				ReduceStart: 4, ReduceHop: 2,
				Layer:       map[perfmodel.Generation]float64{perfmodel.Hopper: 26, perfmodel.Blackwell: 26},
				ExpertLayer: map[perfmodel.Generation]float64{perfmodel.Hopper: 50, perfmodel.Blackwell: 50},
				Route:       5, LatentLayer: 10, LinearLayer: 10, SparseLayer: 20,
				Host: 1500, Sequence: 30, First: 15000,
				Interference: interference, Queue: 0.3, QueueGrowth: 0.6,
			})
		}
	}
	return out
}
