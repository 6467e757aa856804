package fit

import (
	"maps"
	"math"
	"slices"

	"github.com/dynamo-operator/dynamo-operator/internal/core/perfmodel"
)

func clone(k perfmodel.Constants) perfmodel.Constants {
	k.Compute, k.Layer, k.ExpertLayer = maps.Clone(k.Compute), maps.Clone(k.Layer), maps.Clone(k.ExpertLayer)
	return k
}

// deviation is the error of an estimate on a logarithmic scale: half and double
// are equally wrong.
func deviation(estimate, measured float64) float64 { return math.Log(estimate / measured) }

// Times are what a deployment does under the load of a row: milliseconds per
// output token, to the first token and for a whole request, and requests a second.
type Times struct{ Token, First, Whole, Rate float64 }

// Predict estimates a row.
func (r Row) Predict(k perfmodel.Constants) Times {
	tokens := float64(r.Load.Output - 1)
	if r.Pools != nil {
		s, err := r.Pools.With(k).Serve(r.Load)
		if err != nil {
			return Times{Token: 1, First: 1, Whole: 1, Rate: 1} // does not fit; far off
		}
		t := Times{Token: float64(s.PerToken.Value) / 1e6, First: max(1, float64(s.FirstToken.Value)/1e6), Rate: s.Requests}
		t.First += r.Gathering.idle() * t.Token * (1 - 1/float64(r.Load.Concurrency))
		t.Whole = t.First + tokens*t.Token
		return t
	}
	e := r.Estimator.With(k)
	t := e.Terms(r.Load)
	out := Times{Token: 1e3 * t.Token, First: 1e3 * t.First}
	out.Rate = float64(r.Load.Concurrency) / (t.First + tokens*t.Token)
	// In a loop that keeps the engine busy every request beside it is computed
	// once, whoever waits for it.
	out.Whole = 1e3 * (e.Overhead().Seconds() + t.Prompt + (t.Batch-1)*t.Added + tokens*t.Step)
	late := r.gathered(e, t)
	out.First += late
	out.Whole += late
	// Whoever finds no place waits for one of those that there are.
	wait := float64(r.Waiting) / float64(r.Load.Concurrency) * (out.First + tokens*out.Token)
	out.First += wait
	out.Whole += wait
	return out
}

// PredictToken is the estimated time per output token, in milliseconds.
func (r Row) PredictToken(k perfmodel.Constants) float64 { return r.Predict(k).Token }

// PredictFirst is the estimated time to the first token, in milliseconds.
func (r Row) PredictFirst(k perfmodel.Constants) float64 { return r.Predict(k).First }

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

// steps is how many a fit takes: more of them move medians by a tenth of a point.
const steps = 12

// Fit finds the constants of all engines and kinds of models from a prior. It
// takes no row that may have used speculative decoding.
func Fit(rows []Row, prior []perfmodel.Constants) []perfmodel.Constants {
	rows = slices.DeleteFunc(slices.Clone(rows), func(r Row) bool { return r.Drafted })
	j := newJoint(rows, prior)
	x := j.solve(steps)
	var out []perfmodel.Constants
	for _, b := range j.blocks[1:] {
		k := rounded(b.constants(x), b.params)
		k.GPUs = nil
		for _, r := range b.rows {
			if !slices.Contains(k.GPUs, r.Group.GPU) {
				k.GPUs = append(k.GPUs, r.Group.GPU)
			}
		}
		slices.Sort(k.GPUs)
		out = append(out, k)
	}
	return out
}

// rounded keeps three digits: more would claim knowledge that is not there.
func rounded(k perfmodel.Constants, params []parameter) perfmodel.Constants {
	k = clone(k)
	for _, p := range params {
		p.set(&k, threeDigits(p.get(&k)))
	}
	return k
}

func threeDigits(v float64) float64 {
	scale := math.Pow(10, 2-math.Floor(math.Log10(v)))
	return math.Round(v*scale) / scale
}
