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

func constantsOf(constants []perfmodel.Constants, g Group) perfmodel.Constants {
	for _, k := range constants {
		if k.Engine == g.Engine && k.Mixture == g.Mixture {
			return k
		}
	}
	return perfmodel.Constants{}
}

// Tokens summarises the error of the time per output token.
func Tokens(rows []Row, constants []perfmodel.Constants) Summary {
	var errs []float64
	for _, r := range rows {
		errs = append(errs, r.PredictToken(constantsOf(constants, r.Group))/r.Token-1)
	}
	return summary(errs)
}

// Firsts summarises the error of the time to the first token.
func Firsts(rows []Row, constants []perfmodel.Constants) Summary {
	var errs []float64
	for _, r := range rows {
		if r.First > 0 {
			errs = append(errs, r.PlayFirst(constantsOf(constants, r.Group))/r.First-1)
		}
	}
	return summary(errs)
}

// Of returns the rows of an engine and kind.
func Of(rows []Row, engine perfmodel.Engine, mixture bool) []Row {
	return slices.DeleteFunc(slices.Clone(rows), func(r Row) bool { return r.Group.Engine != engine || r.Group.Mixture != mixture })
}

// idle is how many requests at a time leave an engine mostly idle.
const idle = 4

// idleRows is how many rows it takes to speak of their spread.
const idleRows = 5

// WithErrors records in the constants how far off they are on the checked rows;
// of the first token on an idle engine there are too few, so all rows count.
func WithErrors(constants []perfmodel.Constants, rows, all []Row) []perfmodel.Constants {
	out := slices.Clone(constants)
	for i, k := range out {
		own := Of(rows, k.Engine, k.Mixture)
		token, first := Tokens(own, constants), Firsts(own, constants)
		timed := slices.DeleteFunc(slices.Clone(own), func(r Row) bool { return r.First <= 0 })
		// Without such rows, half of the estimate either way is as much as is known.
		unloaded := 0.5
		quiet := slices.DeleteFunc(Of(all, k.Engine, k.Mixture), func(r Row) bool { return r.Load.Concurrency > idle || r.First <= 0 })
		round := func(f float64) float64 { return math.Round(f*1000) / 1000 }
		if len(quiet) >= idleRows {
			unloaded = spread(quiet, func(r Row) float64 { return r.PlayFirst(k) / r.First })
		}
		out[i].Error = perfmodel.Spread{
			TokenMedian: round(token.Median), TokenP90: round(spread(own, func(r Row) float64 { return r.PredictToken(k) / r.Token })),
			FirstMedian: round(first.Median), FirstP90: round(spread(timed, func(r Row) float64 { return r.PlayFirst(k) / r.First })),
			IdleP90: round(unloaded), Rows: len(own),
		}
	}
	return out
}

// spread is the band of estimates in which nine of ten measurements lie: so much
// more, or as many times less. A third is as far off as three times.
func spread(rows []Row, ratio func(Row) float64) float64 {
	if len(rows) == 0 {
		return 0
	}
	var off []float64
	for _, r := range rows {
		off = append(off, math.Exp(math.Abs(math.Log(ratio(r))))-1)
	}
	return quantile(off, 0.9)
}

// Report is the fit in words and numbers: per engine and group, fitted and
// checked, with the worst rows by name and the reasons for rows left out.
func Report(fitted, check []Row, left []LeftOut, constants []perfmodel.Constants) string {
	var b strings.Builder
	checked := "checked on, never fitted on"
	if len(fitted) == 0 {
		checked = "of the table"
	}
	fmt.Fprintf(&b, "Time per output token (TPOT) and to the first token (TTFT): error of the estimate, percent.\n")
	for _, part := range []struct {
		title string
		rows  []Row
	}{{checked, check}, {"fitted on", fitted}} {
		if len(part.rows) == 0 {
			continue
		}
		fmt.Fprintf(&b, "\nGroups %s:\n%-64s %5s %8s %6s %6s %6s | %8s %6s\n", part.title, "", "rows", "TPOT med", "mean", "p90", "bias", "TTFT med", "p90")
		for _, k := range constants {
			own := Of(part.rows, k.Engine, k.Mixture)
			if len(own) == 0 {
				continue
			}
			for _, g := range groups(own) {
				line(&b, "  "+g.String(), slices.DeleteFunc(slices.Clone(own), func(r Row) bool { return r.Group != g }), constants)
			}
			line(&b, string(k.Engine)+" "+Group{Mixture: k.Mixture}.Kind()+", all", own, constants)
		}
	}
	outliers(&b, check, constants)
	b.WriteString("\nRows left out:\n")
	for _, l := range left {
		fmt.Fprintf(&b, "%6d  %s\n", l.Rows, l.Reason)
	}
	return b.String()
}

func line(b *strings.Builder, title string, rows []Row, constants []perfmodel.Constants) {
	t, f := Tokens(rows, constants), Firsts(rows, constants)
	fmt.Fprintf(b, "%-64s %5d %8.1f %6.1f %6.1f %+6.1f | %8.1f %6.1f\n", title, t.Rows, 100*t.Median, 100*t.Mean, 100*t.P90, 100*t.Bias, 100*f.Median, 100*f.P90)
}

func groups(rows []Row) []Group {
	var out []Group
	for _, r := range rows {
		if !slices.Contains(out, r.Group) {
			out = append(out, r.Group)
		}
	}
	slices.SortFunc(out, func(a, b Group) int { return cmp.Compare(a.String(), b.String()) })
	return out
}

// outliers names the rows that are furthest off, and groups that are as a whole.
func outliers(b *strings.Builder, rows []Row, constants []perfmodel.Constants) {
	b.WriteString("\nGroups that the model misses as a whole (median above 40 %):\n")
	for _, g := range groups(rows) {
		own := slices.DeleteFunc(slices.Clone(rows), func(r Row) bool { return r.Group != g })
		if s := Tokens(own, constants); s.Median > 0.4 {
			fmt.Fprintf(b, "  %s: %.0f %%\n", g, 100*s.Median)
		}
	}
	type far struct {
		row Row
		off float64
	}
	var list []far
	for _, r := range rows {
		list = append(list, far{r, r.PredictToken(constantsOf(constants, r.Group))/r.Token - 1})
	}
	slices.SortFunc(list, func(a, b far) int { return cmp.Compare(math.Abs(b.off), math.Abs(a.off)) })
	b.WriteString("\nRows furthest off:\n")
	for _, f := range list[:min(12, len(list))] {
		fmt.Fprintf(b, "  %+6.0f %%  measured %7.2f ms  %s\n", 100*f.off, f.row.Token, f.row.ID)
	}
}

// List shows estimate and measurement of every row of the groups that contain
// part in their name.
func List(rows []Row, part string, constants []perfmodel.Constants) string {
	var b strings.Builder
	for _, r := range rows {
		if !strings.Contains(r.Group.String(), part) {
			continue
		}
		k := constantsOf(constants, r.Group)
		token, first := r.PredictToken(k), r.PlayFirst(k)
		fmt.Fprintf(&b, "%+5.0f %% of %8.2f ms, %+5.0f %% of %8.0f ms  %s  %d at once, %d+%d  %s\n",
			100*(token/r.Token-1), r.Token, 100*(first/r.First-1), r.First, r.Estimator.Setup().Parallel, r.Load.Concurrency, r.Load.Input, r.Load.Output, r.ID)
	}
	return b.String()
}
