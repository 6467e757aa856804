package fit

import (
	"maps"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/dynamo-operator/dynamo-operator/internal/perfmodel"
)

func clone(k perfmodel.Constants) perfmodel.Constants {
	k.Compute, k.Layer, k.ExpertLayer = maps.Clone(k.Compute), maps.Clone(k.Layer), maps.Clone(k.ExpertLayer)
	return k
}

// deviation is the error of an estimate on a logarithmic scale: half and double
// are equally wrong.
func deviation(estimate, measured float64) float64 { return math.Log(estimate / measured) }

// PredictToken is the estimated time per output token, in milliseconds.
func (r Row) PredictToken(k perfmodel.Constants) float64 {
	return float64(r.Estimator.With(k).PerToken(r.Load).Value) / 1e6
}

// PlayFirst is the time to the first token that users are promised, in
// milliseconds: of a closed loop, played.
func (r Row) PlayFirst(k perfmodel.Constants) float64 {
	s, err := r.Estimator.With(k).ClosedLoop(r.Load)
	if err != nil {
		return r.PredictFirst(k) // more than fit; they wait outside
	}
	return float64(s.FirstToken.Value) / 1e6
}

// PredictFirst is a formula for the time to the first token, in milliseconds,
// that tells what is fixed of it from what grows with the load.
func (r Row) PredictFirst(k perfmodel.Constants) float64 {
	return float64(r.Estimator.With(k).First(r.Load).Value) / 1e6
}

// loss is robust: small errors count fully, gross ones by their logarithm, so
// that a run that went wrong does not pull the constants.
func loss(rows []Row, weight map[Group]float64, k perfmodel.Constants, of func(Row, perfmodel.Constants) float64) float64 {
	var sum float64
	for _, r := range rows {
		d := math.Abs(of(r, k))
		sum += weight[r.Group] * math.Log1p(d/0.1)
	}
	return sum
}

// weights lie half-way between every row and every group counting the same.
func weights(rows []Row) map[Group]float64 {
	w := map[Group]float64{}
	for _, r := range rows {
		w[r.Group]++
	}
	for g, n := range w {
		w[g] = 1 / math.Sqrt(n)
	}
	var sum float64
	for _, r := range rows {
		sum += w[r.Group]
	}
	for g := range w {
		w[g] /= sum
	}
	return w
}

func tokenError(r Row, k perfmodel.Constants) float64 { return deviation(r.PredictToken(k), r.Token) }
func firstError(r Row, k perfmodel.Constants) float64 { return deviation(r.PredictFirst(k), r.First) }

// pull is what a constant at the other end of its range than the prior must gain.
// Ten times as much makes estimates of models and GPUs left out hardly better, and
// those of the split worse.
const pull = 0.01

// search fits parameters on rows from a prior, with several starts around it.
// A weak pull towards the prior decides where the rows say nothing.
func search(rows []Row, prior perfmodel.Constants, params []parameter, of func(Row, perfmodel.Constants) float64, starts, steps int) perfmodel.Constants {
	if len(rows) == 0 {
		return prior
	}
	weight := weights(rows)
	random := rand.New(rand.NewPCG(1, uint64(len(rows))))
	origin := make([]float64, len(params))
	for i, p := range params {
		origin[i] = p.unit(p.get(&prior))
	}
	with := func(x []float64) perfmodel.Constants {
		k := clone(prior)
		for i, p := range params {
			p.set(&k, p.value(x[i]))
		}
		return k
	}
	objective := func(x []float64) float64 {
		var far float64
		for i := range x {
			far += (x[i] - origin[i]) * (x[i] - origin[i])
		}
		return loss(rows, weight, with(x), of) + pull*far
	}
	best, low := origin, math.Inf(1)
	for s := range starts {
		start := make([]float64, len(origin))
		for i := range start {
			start[i] = origin[i]
			if s > 0 {
				start[i] = min(1, max(0, origin[i]+0.3*random.NormFloat64()))
			}
		}
		x, _ := minimise(objective, start, 0.15, steps)
		x, y := minimise(objective, x, 0.05, steps)
		if y < low {
			best, low = x, y
		}
	}
	return with(best)
}

// Fit finds the constants of all engines and kinds of models that rows exist
// for, starting from prior ones. Constants of a kind without rows stay as they are.
func Fit(rows []Row, prior []perfmodel.Constants) []perfmodel.Constants {
	return fit(rows, prior, 3, true)
}

// fit tries so many starts for the time per token, and fits that to the first
// token only where it is asked for.
func fit(rows []Row, prior []perfmodel.Constants, starts int, firsts bool) []perfmodel.Constants {
	var out []perfmodel.Constants
	dense0 := map[perfmodel.Engine]perfmodel.Constants{}
	for _, kind := range []bool{false, true} {
		for _, k := range prior {
			if k.Mixture != kind {
				continue
			}
			own := slices.DeleteFunc(slices.Clone(rows), func(r Row) bool { return r.Group.Engine != k.Engine || r.Group.Mixture != kind })
			params, start := dense, k
			if others, ok := dense0[perfmodel.VLLM]; ok && !kind {
				// Engines resemble each other more than they do a guess.
				start = clone(others)
				start.Engine = k.Engine
			}
			if kind {
				// What experts do not touch is known from dense models.
				params, start = mixture, clone(dense0[k.Engine])
				start.Mixture = true
				start.ExpertBandwidth, start.ExpertCompute, start.Scatter = k.ExpertBandwidth, k.ExpertCompute, k.Scatter
				start.ExpertLayer = maps.Clone(k.ExpertLayer)
				start.Route, start.LatentLayer, start.LinearLayer, start.SparseLayer = k.Route, k.LatentLayer, k.LinearLayer, k.SparseLayer
			}
			k = search(own, start, params, tokenError, starts, 700)
			if firsts {
				timed := slices.DeleteFunc(slices.Clone(own), func(r Row) bool { return r.First <= 0 })
				k = search(timed, k, first, firstError, 2, 200)
			}
			if !kind {
				dense0[k.Engine] = k
			}
			out = append(out, rounded(k, params))
		}
	}
	return out
}

// rounded keeps three digits: more would claim knowledge that is not there.
func rounded(k perfmodel.Constants, params []parameter) perfmodel.Constants {
	k = clone(k)
	for _, p := range append(slices.Clone(params), first...) {
		v := p.get(&k)
		scale := math.Pow(10, 2-math.Floor(math.Log10(v)))
		p.set(&k, math.Round(v*scale)/scale)
	}
	return k
}
