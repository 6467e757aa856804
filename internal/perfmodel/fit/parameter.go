package fit

import (
	"math"
	"slices"

	"github.com/dynamo-operator/dynamo-operator/internal/perfmodel"
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

// dense are the constants that models without experts determine, mixture those
// that are left, first those of the time to the first token.
var (
	dense = []parameter{
		field("weights", 0.75, 0.97, func(k *constants) *float64 { return &k.Weights }),
		field("cache", 0.75, 1, func(k *constants) *float64 { return &k.Cache }),
		entry("compute.bf16", 0.4, 0.85, compute, perfmodel.BF16),
		entry("compute.fp8", 0.35, 0.8, compute, perfmodel.FP8),
		entry("compute.fp4", 0.25, 0.7, compute, perfmodel.FP4),
		field("attention", 0.3, 0.9, func(k *constants) *float64 { return &k.Attention }),
		field("reduce", 0.2, 1, func(k *constants) *float64 { return &k.Reduce }),
		field("reduceStart", 1, 20, func(k *constants) *float64 { return &k.ReduceStart }),
		field("reduceHop", 0.2, 10, func(k *constants) *float64 { return &k.ReduceHop }),
		entry("layer.hopper", 8, 60, layer, perfmodel.Hopper),
		entry("layer.blackwell", 8, 60, layer, perfmodel.Blackwell),
		field("host", 100, 2000, func(k *constants) *float64 { return &k.Host }),
		field("sequence", 1, 33, func(k *constants) *float64 { return &k.Sequence }),
		field("interference", 0.7, 1.1, func(k *constants) *float64 { return &k.Interference }),
	}
	mixture = append(slices.DeleteFunc(slices.Clone(dense), func(p parameter) bool {
		return slices.Contains([]string{"weights", "reduce", "reduceHop", "layer.hopper", "layer.blackwell"}, p.name)
	}), []parameter{
		field("expertBandwidth", 0.15, 1, func(k *constants) *float64 { return &k.ExpertBandwidth }),
		field("expertCompute", 0.03, 0.9, func(k *constants) *float64 { return &k.ExpertCompute }),
		entry("expertLayer.hopper", 3, 200, expertLayer, perfmodel.Hopper),
		entry("expertLayer.blackwell", 3, 200, expertLayer, perfmodel.Blackwell),
		field("route", 0.5, 60, func(k *constants) *float64 { return &k.Route }),
		field("scatter", 0.2, 1, func(k *constants) *float64 { return &k.Scatter }),
		field("latentLayer", 0.5, 80, func(k *constants) *float64 { return &k.LatentLayer }),
		field("linearLayer", 0.5, 80, func(k *constants) *float64 { return &k.LinearLayer }),
		field("sparseLayer", 0.5, 150, func(k *constants) *float64 { return &k.SparseLayer }),
	}...)
	first = []parameter{
		field("first", 2000, 20000, func(k *constants) *float64 { return &k.First }),
		field("queue", 0.01, 3, func(k *constants) *float64 { return &k.Queue }),
		field("queueGrowth", 0.2, 1, func(k *constants) *float64 { return &k.QueueGrowth }),
	}
)

func (p parameter) unit(v float64) float64 {
	return min(1, max(0, math.Log(v/p.low)/math.Log(p.high/p.low)))
}

func (p parameter) value(u float64) float64 { return p.low * math.Pow(p.high/p.low, u) }
