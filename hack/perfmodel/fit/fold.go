package fit

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

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

// Held is the error of estimates of rows that were left out of a fit.
type Held struct {
	Engine  perfmodel.Engine
	Kind    string
	Without string // the value left out; empty for all of them together
	Summary
	// Inside is the share of rows within the band that the prior came with, Band
	// the one that holds nine of ten.
	Inside, Band float64
}

// CrossValidate fits as often as a fold has values, each time without the rows
// of one, and sums up the errors on the rows left out.
func CrossValidate(rows []Row, prior []perfmodel.Constants, fold Fold) []Held {
	var values []string
	for _, r := range rows {
		if v := fold.Of(r.Group); !slices.Contains(values, v) {
			values = append(values, v)
		}
	}
	slices.Sort(values)
	errs, inside := map[Held][]float64{}, map[Held]int{}
	for _, v := range values {
		var rest, kept []Row
		for _, r := range rows {
			if fold.Of(r.Group) == v {
				kept = append(kept, r)
			} else {
				rest = append(rest, r)
			}
		}
		constants := fitTokens(rest, prior)
		for _, r := range kept {
			k := constantsOf(constants, r.Group)
			e := r.PredictToken(k)/r.Token - 1
			near := math.Abs(math.Log1p(e)) <= math.Log1p(k.Error.TokenP90)
			for _, without := range []string{"", v} {
				h := Held{Engine: r.Group.Engine, Kind: r.Group.Kind(), Without: without}
				errs[h] = append(errs[h], e)
				if near {
					inside[h]++
				}
			}
		}
	}
	var out []Held
	for h, signed := range errs {
		n := inside[h]
		h.Summary, h.Inside = summary(signed), float64(n)/float64(len(signed))
		far := make([]float64, len(signed))
		for i, e := range signed {
			far[i] = math.Abs(math.Log1p(e))
		}
		h.Band = math.Expm1(quantile(far, 0.9))
		out = append(out, h)
	}
	slices.SortFunc(out, func(a, b Held) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Engine, b.Engine), cmp.Compare(a.Without, b.Without))
	})
	return out
}

// Widen makes bands hold for models that a fit has not seen, too: those of the
// checked groups may be narrower by luck.
func Widen(constants []perfmodel.Constants, held []Held) []perfmodel.Constants {
	out := slices.Clone(constants)
	for i, k := range out {
		for _, h := range held {
			if h.Without == "" && h.Engine == k.Engine && h.Kind == (Group{Mixture: k.Mixture}).Kind() {
				out[i].Error.TokenP90 = max(k.Error.TokenP90, math.Round(h.Band*1000)/1000)
			}
		}
	}
	return out
}

// FoldReport is cross-validation in words and numbers. It holds what was left out
// against the bands that shipped constants give, too.
func FoldReport(rows []Row, prior, shipped []perfmodel.Constants) string {
	var b strings.Builder
	prior = slices.Clone(prior)
	for i, k := range prior {
		prior[i].Error = constantsOf(shipped, Group{Engine: k.Engine, Mixture: k.Mixture}).Error
	}
	for _, fold := range Folds {
		fmt.Fprintf(&b, "Time per output token of what was left out of the fit, one %s at a time, percent:\n%-48s %5s %8s %6s %6s %6s %8s\n", fold.Name, "", "rows", "median", "mean", "p90", "bias", "in band")
		for _, h := range CrossValidate(rows, prior, fold) {
			title := fmt.Sprintf("%s %s, all", h.Engine, h.Kind)
			if h.Without != "" {
				title = "  without " + h.Without
			}
			fmt.Fprintf(&b, "%-48s %5d %8.1f %6.1f %6.1f %+6.1f %8.0f\n", title, h.Rows, 100*h.Median, 100*h.Mean, 100*h.P90, 100*h.Bias, 100*h.Inside)
		}
		b.WriteByte('\n')
	}
	return b.String()
}
