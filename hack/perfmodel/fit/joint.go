package fit

import (
	"math"
	"slices"

	"github.com/dynamo-operator/dynamo-operator/internal/core/perfmodel"
)

// What its own rows do not determine, an engine is taken to have in common with
// the others. So all engines and kinds of models are fitted at once, and each
// constant is drawn towards the one to its left:
//
//	prior <- common <- dense models of an engine <- its mixtures
//	prior <- common <--- constants of experts ------'
//
// An engine for which the prior has a value of its own is drawn towards that.

// block is the constants of one engine and kind, or those that engines have in
// common. In the vector of unknowns, which holds logarithms, it begins at at.
type block struct {
	start  perfmodel.Constants
	params []parameter
	at     int
	parent []int     // of each constant, its place in the vector; none for the prior
	width  []float64 // how far each may lie from its parent
	rows   []Row
	weight []float64 // of rows
}

const none = -1

// joint is all that is fitted at once. The first block is what is common.
type joint struct {
	blocks []block
	origin []float64 // the prior
}

// noise is how far off rows are for reasons that no constant explains.
const noise = 0.1

// A row has three errors. The time per token counts fully. The whole time of a
// request counts beside it: prompts either delay their own first token or others'
// next ones, the sum does not depend on which, so it tells the cost of prompts from
// who bears it. The first token counts least, as it varies most.
var shares = [...]float64{1, 0.25, 0.15}

func newJoint(rows []Row, prior []perfmodel.Constants) *joint {
	j := &joint{}
	add := func(k perfmodel.Constants, params []parameter, parent func(parameter) (int, float64)) map[string]int {
		b := block{start: clone(k), params: params, at: len(j.origin)}
		places := map[string]int{}
		for _, p := range params {
			at, width := parent(p)
			b.parent, b.width = append(b.parent, at), append(b.width, width)
			places[p.name] = len(j.origin)
			j.origin = append(j.origin, math.Log(p.get(&k)))
		}
		j.blocks = append(j.blocks, b)
		return places
	}
	shared := sharedPrior(prior)
	common := add(shared, mixture, func(p parameter) (int, float64) { return none, p.reach().common })
	own := map[perfmodel.Engine]map[string]int{}
	for _, kind := range []bool{false, true} {
		for _, k := range prior {
			switch {
			case k.Mixture != kind:
				continue
			case kind:
				add(k, mixture, func(p parameter) (int, float64) {
					if at, ok := own[k.Engine][p.name]; ok {
						return at, p.reach().mixture
					}
					if p.get(&k) != p.get(&shared) {
						return none, p.reach().mixture
					}
					return common[p.name], p.reach().mixture
				})
			default:
				own[k.Engine] = add(k, dense, func(p parameter) (int, float64) {
					if p.get(&k) != p.get(&shared) {
						return none, p.reach().engine
					}
					return common[p.name], p.reach().engine
				})
			}
			j.blocks[len(j.blocks)-1].take(Of(rows, k.Engine, kind))
		}
	}
	return j
}

// sharedPrior is, of each constant, what most engines have.
func sharedPrior(prior []perfmodel.Constants) perfmodel.Constants {
	out := clone(prior[0])
	for _, p := range mixture {
		values := make([]float64, len(prior))
		for i := range prior {
			values[i] = p.get(&prior[i])
		}
		slices.Sort(values)
		p.set(&out, values[len(values)/2])
	}
	return out
}

func (b *block) take(rows []Row) {
	weight := weights(rows)
	b.rows = rows
	for _, r := range rows {
		b.weight = append(b.weight, weight[r.Group])
	}
}

func (b *block) constants(x []float64) perfmodel.Constants {
	k := clone(b.start)
	for i, p := range b.params {
		p.set(&k, math.Exp(x[b.at+i]))
	}
	return k
}

func (b *block) errors(x []float64) []float64 { return errors(b.rows, b.constants(x)) }

// errors are three for each row: of the time per token, of the whole request and
// of the first token, as far as they are known.
func errors(rows []Row, k perfmodel.Constants) []float64 {
	out := make([]float64, 0, len(shares)*len(rows))
	for _, r := range rows {
		t := r.Predict(k)
		var whole, first float64
		if r.First > 0 && !r.Crowded {
			whole = deviation(t.Whole, r.First+float64(r.Load.Output-1)*r.Token)
			if r.Told {
				first = deviation(t.First, r.First)
			}
		}
		out = append(out, deviation(t.Token, r.Token), whole, first)
	}
	return out
}

// counts is what the i-th error counts.
func (b *block) counts(i int) float64 {
	return b.weight[i/len(shares)] * shares[i%len(shares)]
}

// astray is how far the i-th constant lies from its parent, in widths.
func (j *joint) astray(b *block, i int, x []float64) float64 {
	towards := j.origin[b.at+i]
	if at := b.parent[i]; at != none {
		towards = x[at]
	}
	return (x[b.at+i] - towards) / b.width[i]
}

// objective counts errors as a Cauchy distribution does, so that a run that went
// wrong hardly pulls, and how far constants went astray.
func (j *joint) objective(x []float64) float64 {
	var sum float64
	for n := range j.blocks {
		b := &j.blocks[n]
		for i, e := range b.errors(x) {
			sum += b.counts(i) * math.Log1p(e*e/(noise*noise))
		}
		for i := range b.params {
			far := j.astray(b, i, x)
			sum += far * far
		}
	}
	return sum
}

// bound keeps constants where they make sense.
func (j *joint) bound(x []float64) {
	for _, b := range j.blocks {
		for i, p := range b.params {
			x[b.at+i] = min(math.Log(p.high), max(math.Log(p.low), x[b.at+i]))
		}
	}
}
