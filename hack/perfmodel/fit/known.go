package fit

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/dynamo-operator/dynamo-operator/internal/core/perfmodel"
)

// What no other model tells is measured: by how much decode steps and prompts of one
// model, on one GPU, in one format take longer than the engine's constants say, and
// what its requests take beside the work of GPUs.

// fewestTelling are the rows that it takes to tell.
const fewestTelling = 5

// role names what is measured together: an engine with a model on a GPU in a format,
// that does all of the work or is in a pool.
func (r Row) role() string {
	return fmt.Sprint(r.Group.Engine, " ", architecture(r.Group.Model), " ", r.Group.GPU, " ", r.Estimator.Setup().Format(), " ", r.Group.Apart)
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

// tell is what rows of one role say beside constants, or nothing if they are too few.
func tell(rows []Row, k perfmodel.Constants) perfmodel.Measured {
	rows = slices.DeleteFunc(slices.Clone(rows), func(r Row) bool { return r.Drafted })
	if len(rows) < fewestTelling {
		return perfmodel.Measured{}
	}
	setup := rows[0].Estimator.Setup()
	known := perfmodel.Measured{Engine: setup.Engine, Model: setup.Model.Name, GPU: setup.GPU.Name, Weights: setup.Format(), Pool: setup.Pool, Rows: len(rows)}
	const middle = 0.5
	at := func(x []float64) perfmodel.Measured {
		m := known
		m.Step, m.Prompt, m.Request = times(x[0], perfmodel.Most.Step), times(x[1], perfmodel.Most.Prompt), times(x[2], perfmodel.Most.Request)
		return m
	}
	x, _ := minimise(func(x []float64) float64 {
		m := at(x)
		var sum float64
		for i, e := range errors(rows, m.Apply(k)) {
			sum += telling[i%len(shares)] * math.Log1p(e*e/(noise*noise))
		}
		for _, far := range []float64{math.Log(m.Step) / usual.Step, math.Log(m.Prompt) / usual.Prompt, math.Log(m.Request) / usual.Request} {
			sum += far * far
		}
		return sum
	}, []float64{middle, middle, middle}, 0.2, 200)
	return at(x)
}

// times turns a number between nought and one into a factor between as many times as
// short and as long.
func times(x, most float64) float64 { return math.Pow(most, 2*x-1) }

// telling is what errors of a row count here, as shares are in a fit of constants: of
// one model first tokens vary less than among models.
var telling = [len(shares)]float64{1, 0.25, 0.4}

// usual is how far from constants a model usually is, as a logarithm; few rows that
// tell of more are not believed.
var usual = perfmodel.Measured{Step: 0.3, Prompt: 0.5, Request: 0.7}

// Measure is what all rows tell beside constants that were fitted on them.
func Measure(rows []Row, constants []perfmodel.Constants) []perfmodel.Measured {
	var out []perfmodel.Measured
	for _, same := range alike(rows, Row.role) {
		if m := tell(same, constantsOf(constants, same[0].Group)); m.Rows > 0 {
			m.Step, m.Prompt, m.Request = threeDigits(m.Step), threeDigits(m.Prompt), threeDigits(m.Request)
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
// there is no other, by what the same tells at other lengths. Of pools aggregated ones
// tell where there is no other. Rows of which nothing tells are left out.
func JudgeKnown(judged []Judged) []Judged {
	roles := map[string][]Row{}
	for _, j := range judged {
		roles[j.role()] = append(roles[j.role()], j.Row)
	}
	told := map[string]perfmodel.Measured{}
	without := func(j Judged, role string, of func(Row) string) perfmodel.Measured {
		name := role + " without " + of(j.Row)
		m, ok := told[name]
		if !ok {
			m = tell(slices.DeleteFunc(slices.Clone(roles[role]), func(r Row) bool { return of(r) == of(j.Row) }), j.By)
			told[name] = m
		}
		return m
	}
	var out []Judged
	for _, j := range judged {
		m := without(j, j.role(), Row.deployment)
		if m.Rows == 0 && j.Group.Apart {
			together := j.Row
			together.Group.Apart = false
			m = without(j, together.role(), Row.deployment).InPool()
		}
		if m.Rows == 0 {
			m = without(j, j.role(), Row.lengths)
		}
		if m.Rows > 0 {
			out = append(out, j.judge(m.Apply(j.By), j.Without))
		}
	}
	return out
}
