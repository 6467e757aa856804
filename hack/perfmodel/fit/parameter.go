package fit

import (
	"slices"

	"github.com/dynamo-operator/dynamo-operator/internal/core/perfmodel"
)

// parameter is one constant and the bounds within which it makes sense.
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
// that are left, mixture both. Shares of what kernels reach end at all of it
// or, where the numbers of kernels are too short for some, by so much before.
var (
	dense = []parameter{
		field("weights", 0.4, 1, func(k *constants) *float64 { return &k.Weights }),
		field("fourBit", 0.4, 1, func(k *constants) *float64 { return &k.FourBit }),
		field("cache", 0.4, 0.95, func(k *constants) *float64 { return &k.Cache }),
		entry("compute.bf16", 0.3, 0.95, compute, perfmodel.BF16),
		entry("compute.fp8", 0.3, 0.9, compute, perfmodel.FP8),
		entry("compute.fp4", 0.2, 0.9, compute, perfmodel.FP4),
		field("attention", 0.4, 0.9, func(k *constants) *float64 { return &k.Attention }),
		field("reduce", 0.2, 1, func(k *constants) *float64 { return &k.Reduce }),
		field("reduceStart", 1, 20, func(k *constants) *float64 { return &k.ReduceStart }),
		field("reduceHop", 0.2, 10, func(k *constants) *float64 { return &k.ReduceHop }),
		entry("layer.hopper", 2, 100, layer, perfmodel.Hopper),
		entry("layer.blackwell", 2, 100, layer, perfmodel.Blackwell),
		field("quantise", 0.02, 20, func(k *constants) *float64 { return &k.Quantise }),
		field("host", 50, 4000, func(k *constants) *float64 { return &k.Host }),
		field("sequence", 1, 200, func(k *constants) *float64 { return &k.Sequence }),
		field("interference", 0.5, 1.3, func(k *constants) *float64 { return &k.Interference }),
		field("busy", 1000, 400000, func(k *constants) *float64 { return &k.Busy }),
		field("busyLayer", 10, 10000, func(k *constants) *float64 { return &k.BusyLayer }),
		field("own", 0.4, 4, func(k *constants) *float64 { return &k.Own }),
		field("wait", 0.1, 20, func(k *constants) *float64 { return &k.Wait }),
		field("queue", 0.03, 1, func(k *constants) *float64 { return &k.Queue }),
		field("equal", 0.4, 6, func(k *constants) *float64 { return &k.Equal }),
		field("equalQueue", 0.03, 1, func(k *constants) *float64 { return &k.EqualQueue }),
		field("prefilling", 0.1, 1.3, func(k *constants) *float64 { return &k.Prefilling }),
		field("meeting", 0.03, 1, func(k *constants) *float64 { return &k.Meeting }),
		field("full", 0.001, 0.3, func(k *constants) *float64 { return &k.Full }),
		field("handover", 1000, 1000000, func(k *constants) *float64 { return &k.Handover }),
	}
	experts = []parameter{
		field("expertBandwidth", 0.15, 1, func(k *constants) *float64 { return &k.ExpertBandwidth }),
		field("expertCompute", 0.03, 0.9, func(k *constants) *float64 { return &k.ExpertCompute }),
		entry("expertLayer.hopper", 3, 200, expertLayer, perfmodel.Hopper),
		entry("expertLayer.blackwell", 3, 200, expertLayer, perfmodel.Blackwell),
		field("route", 0.5, 60, func(k *constants) *float64 { return &k.Route }),
		field("scatter", 0.2, 1, func(k *constants) *float64 { return &k.Scatter }),
		field("exchange", 0.05, 1, func(k *constants) *float64 { return &k.Exchange }),
		field("exchangeStart", 1, 200, func(k *constants) *float64 { return &k.ExchangeStart }),
		field("latentLayer", 0.5, 80, func(k *constants) *float64 { return &k.LatentLayer }),
		field("linearLayer", 0.5, 80, func(k *constants) *float64 { return &k.LinearLayer }),
		field("sparseLayer", 0.5, 150, func(k *constants) *float64 { return &k.SparseLayer }),
		field("busyExpert", 10, 10000, func(k *constants) *float64 { return &k.BusyExpert }),
		field("busyLatent", 10, 10000, func(k *constants) *float64 { return &k.BusyLatent }),
		field("busyLinear", 10, 10000, func(k *constants) *float64 { return &k.BusyLinear }),
		field("blockScales", 0.1, 200, func(k *constants) *float64 { return &k.BlockScales }),
		field("unpack", 0.1, 200, func(k *constants) *float64 { return &k.Unpack }),
	}
	mixture = append(slices.Clone(dense), experts...)
)

// scheduling are the constants that depend on an engine's scheduler and on what
// is around it, more than on kernels: what a host does for a step and a sequence
// differs among engines as their languages and processes do.
var scheduling = []string{"host", "sequence", "busy", "busyLayer", "own", "wait", "queue", "equal", "equalQueue", "prefilling", "handover", "meeting", "full"}

// reach is how far a constant may lie from what it is drawn towards, as a
// logarithm: what engines have in common from the prior, an engine's from that,
// and that of its mixtures from that of its dense models.
type reach struct{ common, engine, mixture float64 }

// Experts are computed by kernels that differ most among engines, but for those that put
// inputs or weights into another format; how schedulers
// mix prompts with steps differs little but for what the prior says. Of what a request takes
// at two pools beside the work of GPUs, rows tell the sum alone, so that a handover stays
// near its prior.
func (p parameter) reach() reach {
	switch {
	case slices.Contains([]string{"busyExpert", "busyLatent", "busyLinear"}, p.name):
		return reach{common: 0.8, mixture: 0.5}
	case slices.Contains([]string{"blockScales", "unpack"}, p.name):
		return reach{common: 0.6, mixture: 0.2}
	case slices.ContainsFunc(experts, func(e parameter) bool { return e.name == p.name }):
		return reach{common: 0.6, mixture: 0.5}
	case p.name == "handover":
		return reach{common: 0.1, engine: 0.1, mixture: 0.1}
	case p.name == "interference":
		return reach{common: 0.2, engine: 0.1, mixture: 0.1}
	case slices.Contains(scheduling, p.name):
		return reach{common: 0.8, engine: 0.5, mixture: 0.4}
	}
	return reach{common: 0.4, engine: 0.2, mixture: 0.15}
}
