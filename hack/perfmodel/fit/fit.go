package fit

import (
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/dynamo-operator/dynamo-operator/internal/core/perfmodel"
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
	return w
}

// PredictWhole is the estimated time of a whole request in a loop that keeps the
// engine busy, in milliseconds: every request beside it is computed once.
func (r Row) PredictWhole(k perfmodel.Constants) float64 {
	e, l := r.Estimator.With(k), r.Load
	ranks := e.Setup().Parallel.DP
	batch := (l.Concurrency + ranks - 1) / ranks
	prompts := time.Duration(batch) * e.Prefill(l.Input, 1, 0).Value
	steps := time.Duration(l.Output-1) * e.Decode(batch, float64(l.Input)+float64(l.Output)/2).Value
	return float64(e.Overhead()+prompts+steps) / 1e6
}

func tokenError(r Row, k perfmodel.Constants) float64 { return deviation(r.PredictToken(k), r.Token) }
func firstError(r Row, k perfmodel.Constants) float64 { return deviation(r.PredictFirst(k), r.First) }

// pull is what a constant at the other end of its range than the prior must gain.
const pull = 0.01

// search fits the few parameters of the time to the first token from a prior,
// with several starts around it. A weak pull towards the prior decides where the
// rows say nothing.
func search(rows []Row, prior perfmodel.Constants, params []parameter, of func(Row, perfmodel.Constants) float64, starts, steps int) perfmodel.Constants {
	if len(rows) == 0 {
		return prior
	}
	weight := weights(rows)
	var all float64
	for _, r := range rows {
		all += weight[r.Group]
	}
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
		return loss(rows, weight, with(x), of)/all + pull*far
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

// steps is how many a fit takes: more of them move medians by a tenth of a point.
const steps = 12

// Fit finds the constants of all engines and kinds of models from a prior.
func Fit(rows []Row, prior []perfmodel.Constants) []perfmodel.Constants {
	var out []perfmodel.Constants
	for _, k := range fitTokens(rows, prior) {
		timed := slices.DeleteFunc(Of(rows, k.Engine, k.Mixture), func(r Row) bool { return r.First <= 0 })
		out = append(out, rounded(search(timed, k, first, firstError, 2, 200), append(slices.Clone(mixture), first...)))
	}
	return out
}

// fitTokens leaves out what only the time to the first token depends on.
func fitTokens(rows []Row, prior []perfmodel.Constants) []perfmodel.Constants {
	j := newJoint(rows, prior)
	x := j.solve(steps)
	var out []perfmodel.Constants
	for _, b := range j.blocks[1:] {
		out = append(out, rounded(b.constants(x), b.params))
	}
	return out
}

// rounded keeps three digits: more would claim knowledge that is not there.
func rounded(k perfmodel.Constants, params []parameter) perfmodel.Constants {
	k = clone(k)
	for _, p := range params {
		v := p.get(&k)
		scale := math.Pow(10, 2-math.Floor(math.Log10(v)))
		p.set(&k, math.Round(v*scale)/scale)
	}
	return k
}
