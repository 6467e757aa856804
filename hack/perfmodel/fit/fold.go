package fit

import (
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/dynamo-operator/dynamo-operator/internal/core/perfmodel"
)

// Fold is a way to divide rows: all of a value are kept away together.
type Fold struct {
	Name string
	Of   func(Group) string
}

// Folds are those by which constants must hold for what they have not seen.
var Folds = []Fold{
	{"model", func(g Group) string { return architecture(g.Model) }},
	{"GPU", func(g Group) string { return g.GPU }},
	{"model on one GPU", func(g Group) string { return architecture(g.Model) + " " + g.GPU }},
}

// architecture is a model without its publisher and number format: a checkpoint
// in another format is no other model.
func architecture(model string) string {
	name := model[strings.LastIndexByte(model, '/')+1:]
	for _, format := range []string{"-FP8", "-NVFP4", "-FP4", "-0528", "-Instruct"} {
		name = strings.ReplaceAll(name, format, "")
	}
	if name == "DeepSeek-R1" {
		return "DeepSeek-V3"
	}
	return name
}

// Judged is a row and what constants say of it that were fitted without it.
type Judged struct {
	Row
	Times
	Without string // what was left out with it
	By      perfmodel.Constants
}

// Judge estimates rows by constants; what was left out to fit them is the
// caller's to know.
func Judge(rows []Row, constants []perfmodel.Constants, without string) []Judged {
	out := make([]Judged, len(rows))
	for i, r := range rows {
		out[i] = r.judge(constantsOf(constants, r.Group), without)
	}
	return out
}

// JudgeShipped estimates rows as users do.
func JudgeShipped(rows []Row) []Judged {
	out := make([]Judged, len(rows))
	for i, r := range rows {
		out[i] = r.judge(r.Estimator.Constants(), "")
	}
	return out
}

func (r Row) judge(k perfmodel.Constants, without string) Judged {
	return Judged{Row: r, Times: r.Predict(k), Without: without, By: k}
}

// CrossValidate fits as often as a fold has values, each time without the rows of
// one, and judges the rows left out. They keep their order.
func CrossValidate(rows []Row, prior []perfmodel.Constants, fold Fold) []Judged {
	var values []string
	for _, r := range rows {
		if v := fold.Of(r.Group); !slices.Contains(values, v) {
			values = append(values, v)
		}
	}
	out := make([]Judged, len(rows))
	work := make(chan string)
	var group sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		group.Go(func() {
			for v := range work {
				rest := slices.DeleteFunc(slices.Clone(rows), func(r Row) bool { return fold.Of(r.Group) == v })
				constants := Fit(rest, prior)
				for i, r := range rows {
					if fold.Of(r.Group) == v {
						out[i] = Judge([]Row{r}, constants, v)[0]
					}
				}
			}
		})
	}
	for _, v := range values {
		work <- v
	}
	close(work)
	group.Wait()
	return out
}

// measure is one thing that is estimated: its ratio to what was measured, and
// whether it is known.
type measure struct {
	name  string
	ratio func(Judged) float64
	known func(Judged) bool
}

var (
	perToken = measure{"TPOT", func(j Judged) float64 { return j.Times.Token / j.Row.Token }, func(Judged) bool { return true }}
	perGPU   = measure{"rate", func(j Judged) float64 { return j.Times.Rate / j.Row.Rate() },
		func(j Judged) bool { return j.Row.First > 0 && !j.Crowded }}
	toFirst = measure{"TTFT", func(j Judged) float64 { return j.Times.First / j.Row.First },
		func(j Judged) bool { return j.Row.First > 0 && !j.Crowded && j.Told }}
	toFirstUntold = measure{"TTFT, arrivals not known", toFirst.ratio,
		func(j Judged) bool { return j.Row.First > 0 && !j.Crowded && !j.Told }}
	toFirstIdle = measure{"TTFT, idle", toFirst.ratio,
		func(j Judged) bool { return toFirst.known(j) && j.Load.Concurrency <= idle && !j.Group.Apart }}
)

// idle is how many requests at a time leave an engine mostly idle.
const idle = 4

// offs are the logarithms of the ratios.
func (m measure) offs(rows []Judged) []float64 {
	var out []float64
	for _, j := range rows {
		if m.known(j) {
			out = append(out, math.Log(m.ratio(j)))
		}
	}
	return out
}

func (m measure) summary(rows []Judged) Summary {
	offs := m.offs(rows)
	for i, o := range offs {
		offs[i] = math.Expm1(o)
	}
	return summary(offs)
}

// covered is the share of what was measured that a band is made for. It is more
// than nine in ten, so that nine in ten of the next model's lie within, too.
const covered = 0.95

// band is so much more or as many times less: a third is as far off as three
// times.
func band(offs []float64) float64 {
	if len(offs) == 0 {
		return 0
	}
	far := make([]float64, len(offs))
	for i, o := range offs {
		far[i] = math.Abs(o)
	}
	return math.Expm1(quantile(far, covered))
}

// enough is how many rows it takes to speak of their spread.
const enough = 20

// kin is which rows are off together, so that a band has to hold for more than the
// ones that it is made of.
type kin struct {
	of func(Judged) string
	// several is how many kin it takes to tell how far the next one is off, and doubt
	// how much wider bands are where there are fewer; first is that of first tokens.
	several      int
	doubt, first float64
}

// Of models that were never measured two do not tell how far a third is off, and
// first tokens differ more among models than within one. Of models that were, other
// deployments tell.
var (
	models      = kin{of: func(j Judged) string { return architecture(j.Group.Model) }, several: 4, doubt: 1.3, first: 1.6}
	deployments = kin{of: func(j Judged) string { return j.role() + j.deployment() }, several: 4, doubt: 1, first: 1}
)

// bandFor is the band of a measure for one engine and part, from rows of other kin
// than one. Where there are too few of them, or of kin at all, those of other engines
// count, too.
func (m measure) bandFor(all []Judged, k kin, g Group, except string) float64 {
	var own, others []float64
	related := map[string]bool{}
	for _, j := range all {
		if j.Drafted || !m.known(j) || j.Group.Part() != g.Part() {
			continue
		}
		if j.Group.Engine == g.Engine {
			related[k.of(j)] = true
		}
		if except != "" && k.of(j) == except {
			continue
		}
		off := math.Log(m.ratio(j))
		others = append(others, off)
		if j.Group.Engine == g.Engine {
			own = append(own, off)
		}
	}
	if len(own) >= enough && len(related) >= k.several {
		return band(own)
	}
	wide := max(band(own), band(others))
	doubt := k.first
	if m.name == perToken.name || m.name == perGPU.name {
		doubt = k.doubt
	}
	return math.Expm1(doubt * math.Log1p(wide))
}

// inside is the share of rows within bands that were made without their kin.
func (m measure) inside(all []Judged, k kin, rows []Judged) float64 {
	bands := map[string]float64{}
	var n, in int
	for _, j := range rows {
		if !m.known(j) {
			continue
		}
		key := string(j.Group.Engine) + j.Group.Part() + k.of(j)
		if _, ok := bands[key]; !ok {
			bands[key] = m.bandFor(all, k, j.Group, k.of(j))
			if j.Group.Apart { // as perfmodel.Pools does
				together := j.Group
				together.Apart = false
				bands[key] = max(bands[key], m.bandFor(all, k, together, k.of(j)))
			}
		}
		n++
		if math.Abs(math.Log(m.ratio(j))) <= math.Log1p(bands[key]) {
			in++
		}
	}
	if n == 0 {
		return math.NaN()
	}
	return float64(in) / float64(n)
}

// Calibrate gives constants their bands: within them lie nine of ten rows of
// models that a fit has not seen, and for GPUs that an engine was not measured on,
// of GPUs that a fit has not seen; and for models of which something is known, of
// deployments of theirs that did not tell it.
func Calibrate(constants []perfmodel.Constants, unseen, gpus []Judged) []perfmodel.Constants {
	out := slices.Clone(constants)
	known := JudgeKnown(unseen)
	for i, k := range out {
		g := Group{Engine: k.Engine, Mixture: k.Mixture}
		e := spread(unseen, models, g)
		wide, usual := math.Log1p(perToken.bandFor(gpus, models, g, "")), math.Log1p(perToken.bandFor(unseen, models, g, ""))
		e.Elsewhere = 1.25
		if usual > 0 {
			e.Elsewhere = thousandths(max(1.25, wide/usual))
		}
		out[i].Error, out[i].KnownError = e, spread(known, deployments, g)
	}
	return out
}

func thousandths(f float64) float64 { return math.Round(f*1000) / 1000 }

// spread is how far off rows of an engine and kind were.
func spread(judged []Judged, k kin, g Group) perfmodel.ErrorSpread {
	apart := g
	apart.Apart = true
	own := part(judged, g)
	band := func(m measure, g Group) float64 { return thousandths(m.bandFor(judged, k, g, "")) }
	e := perfmodel.ErrorSpread{
		TokenMedian: thousandths(perToken.summary(own).Median), TokenP90: band(perToken, g),
		FirstMedian: thousandths(toFirst.summary(own).Median), FirstP90: band(toFirst, g),
		IdleP90:  max(0.2, band(toFirstIdle, g)),
		ApartP90: band(perToken, apart), ApartFirstP90: band(toFirst, apart),
		RateP90: band(perGPU, g), AmongP90: thousandths(among(judged, k, g)),
		Rows: len(own),
	}
	// Nothing tells how these came; twice as far either way is as much as is known.
	e.UnknownP90 = max(2*e.FirstP90, band(toFirstUntold, g))
	return e
}

// among is the band of rates among the deployments of one model on one GPU, at one
// length, once what they have in common is taken away: it decides how sure a
// ranking is.
func among(all []Judged, k kin, g Group) float64 {
	cases := map[string][]Judged{}
	for _, j := range part(all, g) {
		if perGPU.known(j) {
			cases[caseOf(j)] = append(cases[caseOf(j)], j)
		}
	}
	var offs []float64
	for _, rows := range cases {
		of := perGPU.offs(rows)
		if len(of) < 3 {
			continue
		}
		middle := quantile(of, 0.5)
		for _, o := range of {
			offs = append(offs, o-middle)
		}
	}
	if len(offs) < enough {
		return perGPU.bandFor(all, k, g, "")
	}
	far := make([]float64, len(offs))
	for i, o := range offs {
		far[i] = math.Abs(o)
	}
	return math.Expm1(quantile(far, 0.9))
}

// part are the rows of an engine and part that are known to decode plainly.
func part(rows []Judged, g Group) []Judged {
	return slices.DeleteFunc(slices.Clone(rows), func(j Judged) bool {
		return j.Drafted || j.Group.Engine != g.Engine || j.Group.Part() != g.Part()
	})
}

func constantsOf(constants []perfmodel.Constants, g Group) perfmodel.Constants {
	for _, k := range constants {
		if k.Engine == g.Engine && k.Mixture == g.Mixture {
			return k
		}
	}
	return perfmodel.Constants{}
}
