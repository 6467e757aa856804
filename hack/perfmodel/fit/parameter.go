package fit

import (
	"math"
	"slices"

	"github.com/dynamo-operator/dynamo-operator/internal/core/perfmodel"
)

// parameter is one constant and the bounds within which it makes sense. It is
// searched on a logarithmic scale mapped to 0..1.
type parameter struct {
	name      string
	low, high float64
	get       func(*perfmodel.Constants) float64
	set       func(*perfmodel.Constants, float64)
}

func field(name string, low, high float64, at func(*perfmodel.Constants) *float64) parameter {
	return parameter{name, low, high,
		func(k *perfmodel.Constants) float64 { return *at(k) },
		func(k *perfmodel.Constants, v float64) { *at(k) = v }}
}

func entry[K comparable](name string, low, high float64, at func(*perfmodel.Constants) map[K]float64, key K) parameter {
	return parameter{name, low, high,
		func(k *perfmodel.Constants) float64 { return at(k)[key] },
		func(k *perfmodel.Constants, v float64) { at(k)[key] = v }}
}

type constants = perfmodel.Constants

func compute(k *constants) map[perfmodel.Precision]float64      { return k.Compute }
func layer(k *constants) map[perfmodel.Generation]float64       { return k.Layer }
func expertLayer(k *constants) map[perfmodel.Generation]float64 { return k.ExpertLayer }

// dense are the constants that models without experts determine, experts those
// that are left, mixture both, first those of the time to the first token.
var (
	dense = []parameter{
		field("weights", 0.6, 1, func(k *constants) *float64 { return &k.Weights }),
		field("fourBit", 0.4, 1, func(k *constants) *float64 { return &k.FourBit }),
		field("cache", 0.5, 1, func(k *constants) *float64 { return &k.Cache }),
		entry("compute.bf16", 0.3, 0.9, compute, perfmodel.BF16),
		entry("compute.fp8", 0.25, 0.8, compute, perfmodel.FP8),
		entry("compute.fp4", 0.15, 0.7, compute, perfmodel.FP4),
		field("attention", 0.3, 0.9, func(k *constants) *float64 { return &k.Attention }),
		field("reduce", 0.2, 1, func(k *constants) *float64 { return &k.Reduce }),
		field("reduceStart", 1, 20, func(k *constants) *float64 { return &k.ReduceStart }),
		field("reduceHop", 0.2, 10, func(k *constants) *float64 { return &k.ReduceHop }),
		entry("layer.hopper", 4, 100, layer, perfmodel.Hopper),
		entry("layer.blackwell", 4, 100, layer, perfmodel.Blackwell),
		field("host", 100, 4000, func(k *constants) *float64 { return &k.Host }),
		field("sequence", 1, 200, func(k *constants) *float64 { return &k.Sequence }),
		field("interference", 0.3, 1.2, func(k *constants) *float64 { return &k.Interference }),
	}
	experts = []parameter{
		field("expertBandwidth", 0.15, 1, func(k *constants) *float64 { return &k.ExpertBandwidth }),
		field("expertCompute", 0.03, 0.9, func(k *constants) *float64 { return &k.ExpertCompute }),
		entry("expertLayer.hopper", 3, 200, expertLayer, perfmodel.Hopper),
		entry("expertLayer.blackwell", 3, 200, expertLayer, perfmodel.Blackwell),
		field("route", 0.5, 60, func(k *constants) *float64 { return &k.Route }),
		field("scatter", 0.2, 1, func(k *constants) *float64 { return &k.Scatter }),
		field("latentLayer", 0.5, 80, func(k *constants) *float64 { return &k.LatentLayer }),
		field("linearLayer", 0.5, 80, func(k *constants) *float64 { return &k.LinearLayer }),
		field("sparseLayer", 0.5, 150, func(k *constants) *float64 { return &k.SparseLayer }),
	}
	mixture = append(slices.Clone(dense), experts...)
	first   = []parameter{
		field("first", 2000, 20000, func(k *constants) *float64 { return &k.First }),
		field("queue", 0.01, 3, func(k *constants) *float64 { return &k.Queue }),
		field("queueGrowth", 0.2, 1, func(k *constants) *float64 { return &k.QueueGrowth }),
	}
)

// reach is how far a constant may lie from what it is drawn towards, as a
// logarithm: what engines have in common from the prior, an engine's from that,
// and that of its mixtures from that of its dense models.
type reach struct{ common, engine, mixture float64 }

// Experts are computed by kernels that differ most among engines; how schedulers
// mix prompts with steps differs little but for what the prior says.
func (p parameter) reach() reach {
	switch {
	case slices.ContainsFunc(experts, func(e parameter) bool { return e.name == p.name }):
		return reach{common: 0.6, mixture: 0.5}
	case p.name == "interference":
		return reach{common: 0.4, engine: 0.1, mixture: 0.15}
	}
	return reach{common: 0.4, engine: 0.2, mixture: 0.15}
}

func (p parameter) unit(v float64) float64 {
	return min(1, max(0, math.Log(v/p.low)/math.Log(p.high/p.low)))
}

func (p parameter) value(u float64) float64 { return p.low * math.Pow(p.high/p.low, u) }
