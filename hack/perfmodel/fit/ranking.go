package fit

import (
	"cmp"
	"fmt"
	"slices"
)

// A case of ranking is what a user chooses among: the measured deployments of one
// model on one GPU with one engine, at one length of requests, under one target.
// Throughput per GPU is what counts, of those that keep the target.

// targets are the times per output token that users ask for, in milliseconds;
// the last one asks for nothing.
var targets = []float64{10, 20, 35, 60, 1e9}

// nearness is how near to the best a choice must come, and by how much it may miss
// the target.
const nearness = 0.1

// fewest are the deployments that make a choice.
const fewest = 3

func caseOf(j Judged) string {
	return fmt.Sprint(j.Group.Engine, " ", architecture(j.Group.Model), " ", j.Group.GPU, " ", j.Group.Weights, " ", j.Load.Input, "/", j.Load.Output)
}

// Ranking is how often a choice was near the best.
type Ranking struct {
	Cases, Model, Rule int
	// Lost is how much less than the best the model's choices gave, in the middle
	// and in the worst tenth.
	Lost, LostP90 float64
}

// Rank chooses in every case by estimates of constants that have not seen the
// model, and by a simple rule: the fewest GPUs for an engine, and as many requests
// as fit.
func Rank(all []Judged) Ranking {
	cases := map[string][]Judged{}
	for _, j := range all {
		if perGPU.known(j) && !j.Drafted {
			cases[caseOf(j)] = append(cases[caseOf(j)], j)
		}
	}
	var r Ranking
	var lost []float64
	for _, rows := range cases {
		for _, target := range targets {
			best, ok := pick(rows, func(j Judged) (float64, float64) { return j.Row.Rate() / float64(j.GPUs()), j.Row.Token }, target)
			if !ok || len(rows) < fewest {
				continue
			}
			r.Cases++
			most := best.Row.Rate() / float64(best.GPUs())
			near := func(j Judged) bool {
				return j.Row.Token <= target*(1+nearness) && j.Row.Rate()/float64(j.GPUs()) >= most*(1-nearness)
			}
			chosen, ok := pick(rows, func(j Judged) (float64, float64) { return j.Times.Rate / float64(j.GPUs()), j.Times.Token }, target)
			if !ok { // none is thought to keep it: the nearest
				chosen = slices.MinFunc(rows, func(a, b Judged) int { return cmp.Compare(a.Times.Token, b.Times.Token) })
			}
			if near(chosen) {
				r.Model++
			}
			if chosen.Row.Token > target*(1+nearness) {
				lost = append(lost, 1)
			} else {
				lost = append(lost, max(0, 1-chosen.Row.Rate()/float64(chosen.GPUs())/most))
			}
			if near(simple(rows)) {
				r.Rule++
			}
		}
	}
	if len(lost) > 0 {
		r.Lost, r.LostP90 = quantile(lost, 0.5), quantile(lost, 0.9)
	}
	return r
}

// pick is the row with the most of what counts among those that keep a target.
func pick(rows []Judged, of func(Judged) (perGPU, token float64), target float64) (Judged, bool) {
	var best Judged
	most := -1.0
	for _, j := range rows {
		if rate, token := of(j); token <= target && rate > most {
			best, most = j, rate
		}
	}
	return best, most >= 0
}

// simple is the choice without a model.
func simple(rows []Judged) Judged {
	return slices.MinFunc(rows, func(a, b Judged) int {
		return cmp.Or(cmp.Compare(a.GPUs(), b.GPUs()), cmp.Compare(b.Load.Concurrency, a.Load.Concurrency))
	})
}
