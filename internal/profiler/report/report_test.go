package report

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dynamo-operator/dynamo-operator/internal/core/perfmodel"
	"github.com/dynamo-operator/dynamo-operator/internal/profiler/config"
	"github.com/dynamo-operator/dynamo-operator/internal/profiler/search"
)

// sample is a report about a mixture of experts.
func sample(t *testing.T, itl float64) Report {
	t.Helper()
	catalog := perfmodel.Default()
	model, err := catalog.Model("Qwen/Qwen3-235B-A22B-FP8")
	if err != nil {
		t.Fatal(err)
	}
	gpu, err := catalog.GPU("h200_sxm")
	if err != nil {
		t.Fatal(err)
	}
	goal := config.SLA{ISL: 3000, OSL: 500, TTFT: 2500, ITL: itl}
	found, err := search.Solve(search.Problem{
		Catalog: catalog, Model: model, GPU: gpu, Engine: perfmodel.VLLM, Goal: goal, MinGPUs: 1, MaxGPUs: 8, PerNode: 8, PricePerHour: 5,
	})
	if err != nil {
		t.Fatal(err)
	}
	return Report{
		Title: "SLA profile of " + model.Name, Model: model.Name, GPU: gpu.Name, Engine: "vllm", Goal: goal, Outcome: found,
		Source: "estimates", Price: "at $5.00 for a GPU and hour", Warnings: []string{"a <note> & more"},
	}
}

func TestTheReportSaysWhatWasFoundAndWhy(t *testing.T) {
	r := sample(t, 60)
	page, err := r.HTML()
	if err != nil {
		t.Fatal(err)
	}
	for medium, got := range map[string]string{"HTML": page, "text": r.Text()} {
		for _, want := range []string{
			r.Outcome.Best().String(), "All targets are met", "chosen", "cost", "leave no room", // the last: a layout that does not fit
			"$", "most tokens per GPU",
		} {
			if !strings.Contains(strings.ToLower(got), strings.ToLower(want)) {
				t.Errorf("%s: no %q", medium, want)
			}
		}
	}
	if !strings.Contains(page, "Pareto front") || strings.Count(page, "<svg") != 3 {
		t.Errorf("%d figures", strings.Count(page, "<svg"))
	}
	if strings.Contains(page, "a <note>") {
		t.Error("a note is not escaped")
	}
	for _, outside := range []string{"<script", "<link", "src=", "url(", "@import"} {
		if strings.Contains(page, outside) {
			t.Errorf("the page reaches out by %q", outside)
		}
	}
}

func TestAMissedGoalLeadsTheReport(t *testing.T) {
	text := sample(t, 0.5).Text()
	for _, want := range []string{"No configuration meets the goal", "missed by", "What would meet the goal", "would be met by"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

func TestFiguresAreDrawnWithinTheirFrame(t *testing.T) {
	for _, f := range sample(t, 60).Figures() {
		for _, bad := range []string{"NaN", "Inf", "=\"-"} {
			if strings.Contains(f.SVG, bad) {
				t.Errorf("%s contains %q", f.Name, bad)
			}
		}
		for _, colour := range []string{colourDisaggregated, colourChosen, colourTarget} {
			if !strings.Contains(f.SVG, colour) {
				t.Errorf("%s has nothing in %s", f.Name, colour)
			}
		}
	}
}

func TestTicksAreRoundAndWithin(t *testing.T) {
	for name, a := range map[string]axis{
		"logarithmic":          {min: 3, max: 700, logarithms: true},
		"linear":               {min: 0, max: 43},
		"a narrow logarithmic": {min: 8, max: 12, logarithms: true},
	} {
		t.Run(name, func(t *testing.T) {
			ticks := a.ticks()
			if len(ticks) == 0 || len(ticks) > 12 {
				t.Fatalf("%d ticks", len(ticks))
			}
			for _, v := range ticks {
				if v < a.min || v > a.max*1.0001 {
					t.Errorf("%g is outside", v)
				}
			}
		})
	}
}

func TestWhatTheFrontGoesThroughIsDrawn(t *testing.T) {
	var ranked []search.Candidate
	for i := range drawn + 2 {
		ranked = append(ranked, search.Candidate{Name: fmt.Sprint(i)})
	}
	all := shown(ranked, []search.Candidate{ranked[0], ranked[drawn+1]})
	if len(all) != drawn+1 || all[drawn].Name != ranked[drawn+1].Name {
		t.Errorf("%d marks, the last of %s", len(all), all[len(all)-1].Name)
	}
}
