package fit

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/dynamo-operator/dynamo-operator/internal/core/perfmodel"
)

// What no other model tells is measured: by how much decode steps of one model, on
// one GPU, in one format take longer than the engine's constants say, and what its
// requests take beside the work of GPUs.

// fewestTelling are the rows that it takes to tell.
const fewestTelling = 3

// sameKernels names what is measured together: an engine's kernels for a model on a
// GPU in a format.
func (r Row) sameKernels() string {
	return fmt.Sprint(r.Group.Engine, " ", architecture(r.Group.Model), " ", r.Group.GPU, " ", r.Estimator.Setup().Format())
}

// deployment is what runs, whatever comes.
func (r Row) deployment() string {
	if p := r.Pools; p != nil {
		return fmt.Sprint(p.Prefills, p.Prefill.Setup().Parallel, p.Decodes, p.Decode.Setup().Parallel)
	}
	return r.Estimator.Setup().Parallel.String()
}

// lengths are those of a row's requests.
func (r Row) lengths() string { return fmt.Sprint(r.Load.Input, "/", r.Load.Output) }

// tell is what rows of the same kernels say beside constants. Aggregated ones
// count, if there are any: in others pools wait for each other.
func tell(rows []Row, k perfmodel.Constants) (perfmodel.Measured, bool) {
	rows = slices.DeleteFunc(slices.Clone(rows), func(r Row) bool { return r.Drafted })
	together := slices.DeleteFunc(slices.Clone(rows), func(r Row) bool { return r.Pools != nil })
	if len(together) >= fewestTelling {
		rows = together
	}
	if len(rows) < fewestTelling {
		return perfmodel.Measured{}, false
	}
	setup := rows[0].Estimator.Setup()
	m := perfmodel.Measured{Engine: setup.Engine, Model: setup.Model.Name, GPU: setup.GPU.Name, Weights: setup.Format(), Step: 1, Request: 1, Rows: len(rows)}
	// Steps are but a part of what is timed, so that each turn comes nearer.
	for range 40 {
		judged := make([]Judged, len(rows))
		for i, r := range rows {
			judged[i] = r.judge(m.Apply(k), "")
		}
		was := m
		m.Step = nearer(m.Step, perToken.offs(judged), perfmodel.MostStep)
		m.Request = nearer(m.Request, toFirst.offs(judged), perfmodel.MostRequest)
		if math.Abs(m.Step/was.Step-1) < 1e-3 && math.Abs(m.Request/was.Request-1) < 1e-3 {
			break
		}
	}
	return m, true
}

// nearer moves a factor by the middle of the errors that it leaves.
func nearer(factor float64, offs []float64, most float64) float64 {
	if len(offs) < fewestTelling {
		return factor
	}
	return min(most, max(1/most, factor*math.Exp(-quantile(offs, 0.5))))
}

// Measure is what all rows tell beside constants that were fitted on them.
func Measure(rows []Row, constants []perfmodel.Constants) []perfmodel.Measured {
	var out []perfmodel.Measured
	for _, same := range alike(rows, Row.sameKernels) {
		if m, ok := tell(same, constantsOf(constants, same[0].Group)); ok {
			m.Step, m.Request = threeDigits(m.Step), threeDigits(m.Request)
			out = append(out, m)
		}
	}
	return out
}

// alike are the rows that share a name, by name.
func alike(rows []Row, name func(Row) string) [][]Row {
	rows = slices.Clone(rows)
	slices.SortStableFunc(rows, func(a, b Row) int { return cmp.Compare(name(a), name(b)) })
	var out [][]Row
	for i, r := range rows {
		if i == 0 || name(r) != name(rows[i-1]) {
			out = append(out, nil)
		}
		out[len(out)-1] = append(out[len(out)-1], r)
	}
	return out
}

// JudgeKnown judges rows by the constants that judged them without their model, and
// by what other deployments of it tell, on the same GPU and in the same format; where
// there is no other, by what the same tells at other lengths. Rows of which nothing
// tells are left out.
func JudgeKnown(judged []Judged) []Judged {
	all := map[string][]Row{}
	for _, j := range judged {
		all[j.sameKernels()] = append(all[j.sameKernels()], j.Row)
	}
	var out []Judged
	told := map[string]perfmodel.Measured{}
	for _, j := range judged {
		for _, of := range []func(Row) string{Row.deployment, Row.lengths} {
			own := j.sameKernels() + " without " + of(j.Row)
			m, ok := told[own]
			if !ok {
				m, _ = tell(slices.DeleteFunc(slices.Clone(all[j.sameKernels()]), func(r Row) bool { return of(r) == of(j.Row) }), j.By)
				told[own] = m
			}
			if m.Rows > 0 {
				out = append(out, j.judge(m.Apply(j.By), j.Without))
				break
			}
		}
	}
	return out
}
