package fit

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/dynamo-operator/dynamo-operator/internal/core/perfmodel"
)

// Summary describes the errors of estimates of some rows, as shares.
type Summary struct {
	Rows              int
	Median, Mean, P90 float64
	Bias              float64 // median with sign: estimates too high are positive
}

func summary(signed []float64) Summary {
	if len(signed) == 0 {
		return Summary{}
	}
	absolute := make([]float64, len(signed))
	var sum float64
	for i, e := range signed {
		absolute[i] = math.Abs(e)
		sum += absolute[i]
	}
	return Summary{Rows: len(signed), Median: quantile(absolute, 0.5), Mean: sum / float64(len(signed)), P90: quantile(absolute, 0.9), Bias: quantile(signed, 0.5)}
}

func quantile(values []float64, q float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	at := q * float64(len(sorted)-1)
	low := int(at)
	high := min(low+1, len(sorted)-1)
	return sorted[low] + (sorted[high]-sorted[low])*(at-float64(low))
}

// Of returns the rows of an engine and kind.
func Of(rows []Row, engine perfmodel.Engine, mixture bool) []Row {
	return slices.DeleteFunc(slices.Clone(rows), func(r Row) bool { return r.Group.Engine != engine || r.Group.Mixture != mixture })
}

// Tokens summarises the error of the time per output token.
func Tokens(rows []Row, constants []perfmodel.Constants) Summary {
	return perToken.summary(Judge(rows, constants, ""))
}

// goals are the medians that estimates of unseen models should have, by part.
var goals = map[string][3]float64{ // TPOT, rate, TTFT
	"dense": {0.08, 0.15, 0.25}, "mixture": {0.15, 0.15, 0.25},
	"dense, disaggregated": {0.20, 0.20, 0.25}, "mixture, disaggregated": {0.20, 0.20, 0.25},
}

// inBand is the share of rows that bands should hold.
const inBand = 0.9

func verdict(met bool) string {
	if met {
		return "met"
	}
	return "NOT met"
}

// Report is what estimates of rows are worth that were judged by constants which
// had not seen their models: by engine and part, with the goals, and how often a
// choice among deployments is near the best.
func Report(title string, judged []Judged) string { return report(title, judged, models) }

// ReportKnown is the same of rows judged also by what other deployments tell.
func ReportKnown(title string, judged []Judged) string { return report(title, judged, deployments) }

func report(title string, judged []Judged, k kin) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\nError of the estimate, percent: time per output token (TPOT), requests a second and GPU (rate), time to the first token (TTFT) where it is known how requests came; and the share of rows within bands made without them and what is off as they are.\n\n", title)
	fmt.Fprintf(&b, "%-34s %5s | %6s %6s %6s %7s | %6s %6s %7s | %6s %6s %7s\n", "", "rows", "TPOT", "p90", "bias", "in band", "rate", "bias", "in band", "TTFT", "bias", "in band")
	var said []string
	for _, g := range parts(judged) {
		rows := part(judged, g)
		if len(rows) == 0 {
			continue
		}
		name := string(g.Engine) + " " + g.Part()
		token, rate, first := perToken.summary(rows), perGPU.summary(rows), toFirst.summary(rows)
		ti, ri, fi := perToken.inside(judged, k, rows), perGPU.inside(judged, k, rows), toFirst.inside(judged, k, rows)
		fmt.Fprintf(&b, "%-34s %5d | %6.1f %6.1f %+6.1f %7.0f | %6.1f %+6.1f %7.0f | %6.1f %+6.1f %7.0f\n", name, token.Rows,
			100*token.Median, 100*token.P90, 100*token.Bias, 100*ti, 100*rate.Median, 100*rate.Bias, 100*ri, 100*first.Median, 100*first.Bias, 100*fi)
		goal := goals[g.Part()]
		for i, s := range []Summary{token, rate, first} {
			if s.Rows == 0 {
				continue
			}
			said = append(said, fmt.Sprintf("%-34s %-5s median %5.1f, goal %2.0f: %s", name, []string{"TPOT", "rate", "TTFT"}[i], 100*s.Median, 100*goal[i], verdict(s.Median <= goal[i])))
		}
		for i, in := range []float64{ti, ri, fi} {
			if !math.IsNaN(in) {
				said = append(said, fmt.Sprintf("%-34s %-5s in band %4.0f, goal %2.0f: %s", name, []string{"TPOT", "rate", "TTFT"}[i], 100*in, 100*inBand, verdict(in >= inBand)))
			}
		}
	}
	for _, all := range []string{"dense", "mixture", "dense, disaggregated", "mixture, disaggregated"} {
		rows := slices.DeleteFunc(slices.Clone(judged), func(j Judged) bool { return j.Drafted || j.Group.Part() != all })
		if len(rows) > 0 {
			token, rate, first := perToken.summary(rows), perGPU.summary(rows), toFirst.summary(rows)
			fmt.Fprintf(&b, "%-34s %5d | %6.1f %6.1f %+6.1f %7s | %6.1f %+6.1f %7s | %6.1f %+6.1f\n", "all engines, "+all, token.Rows,
				100*token.Median, 100*token.P90, 100*token.Bias, "", 100*rate.Median, 100*rate.Bias, "", 100*first.Median, 100*first.Bias)
		}
	}
	b.WriteString("\nGoals:\n  " + strings.Join(said, "\n  ") + "\n")
	r := Rank(judged)
	if r.Cases > 0 {
		fmt.Fprintf(&b, "\nRanking: of %d cases (model, GPU, engine, lengths, target), the choice is within 10 %% of the best measured throughput per GPU under the target in %.0f %%; by the simple rule (fewest GPUs, most requests) in %.0f %%. In the middle %.1f %% of the best is lost, in the worst tenth %.0f %%.\n",
			r.Cases, 100*float64(r.Model)/float64(r.Cases), 100*float64(r.Rule)/float64(r.Cases), 100*r.Lost, 100*r.LostP90)
	}
	return b.String()
}

// Details is what explains a report: by group, and what it does not count.
func Details(judged []Judged, left []LeftOut) string {
	var b strings.Builder
	drafts := slices.DeleteFunc(slices.Clone(judged), func(j Judged) bool { return !j.Drafted })
	if len(drafts) > 0 {
		s := perToken.summary(drafts)
		fmt.Fprintf(&b, "\nNot counted: %d rows whose table lists runs with and without speculative decoding alike (TPOT median %.1f, bias %+.1f, as if without).\n", s.Rows, 100*s.Median, 100*s.Bias)
	}
	b.WriteString("\nBy group:\n")
	for _, g := range groups(judged) {
		rows := slices.DeleteFunc(slices.Clone(judged), func(j Judged) bool { return j.Group != g || j.Drafted })
		if len(rows) == 0 {
			continue
		}
		token, rate, first := perToken.summary(rows), perGPU.summary(rows), toFirst.summary(rows)
		fmt.Fprintf(&b, "  %-72s %5d | %6.1f %6.1f %+6.1f | %6.1f %+6.1f | %6.1f %+6.1f\n", g, token.Rows,
			100*token.Median, 100*token.P90, 100*token.Bias, 100*rate.Median, 100*rate.Bias, 100*first.Median, 100*first.Bias)
	}
	b.WriteString("\nRows left out:\n")
	for _, l := range left {
		fmt.Fprintf(&b, "%6d  %s\n", l.Rows, l.Reason)
	}
	return b.String()
}

// parts are the engines and parts that rows have, aggregated ones first.
func parts(judged []Judged) []Group {
	var out []Group
	for _, j := range judged {
		g := Group{Engine: j.Group.Engine, Mixture: j.Group.Mixture, Apart: j.Group.Apart}
		if !slices.Contains(out, g) {
			out = append(out, g)
		}
	}
	slices.SortFunc(out, func(a, b Group) int {
		return cmp.Or(cmp.Compare(len(a.Part()), len(b.Part())), cmp.Compare(a.Engine, b.Engine))
	})
	return out
}

func groups(judged []Judged) []Group {
	var out []Group
	for _, j := range judged {
		if !slices.Contains(out, j.Group) {
			out = append(out, j.Group)
		}
	}
	slices.SortFunc(out, func(a, b Group) int { return cmp.Compare(a.String(), b.String()) })
	return out
}

// List shows estimate and measurement of every row of the groups that contain
// part in their name.
func List(judged []Judged, part string) string {
	var b strings.Builder
	for _, j := range judged {
		if !strings.Contains(j.Group.String(), part) {
			continue
		}
		deployment := j.Estimator.Setup().Parallel.String()
		if p := j.Pools; p != nil {
			deployment = fmt.Sprintf("%d x %s -> %d x %s", p.Prefills, p.Prefill.Setup().Parallel, p.Decodes, deployment)
		}
		fmt.Fprintf(&b, "%s %s, %d requests of %d/%d: TPOT %.2f of %.2f ms (%+.0f %%), TTFT %.0f of %.0f ms (%+.0f %%)%s\n", j.Group, deployment, j.Load.Concurrency, j.Load.Input, j.Load.Output,
			j.Times.Token, j.Row.Token, 100*(j.Times.Token/j.Row.Token-1), j.Times.First, j.Row.First, 100*(j.Times.First/j.Row.First-1), map[bool]string{true: " drafted?"}[j.Drafted])
	}
	return b.String()
}
