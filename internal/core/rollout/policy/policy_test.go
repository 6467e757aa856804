package policy

import (
	"maps"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
)

func TestParse(t *testing.T) {
	defaults := Policy{Analysis: AnalysisGuard, OnFailure: OnFailureAbort, Isolation: IsolationAuto}
	for rule, c := range map[string]struct {
		annotation, value string
		want              func(*Policy)
	}{
		"without annotations a rollout goes straight through": {want: func(*Policy) {}},
		"an empty value is none":                              {v1alpha1.AnnotationRolloutSteps, " ", func(*Policy) {}},
		"a step is a share and a time, or hold": {v1alpha1.AnnotationRolloutSteps, "1 5m, 25% 10m,50%  hold", func(p *Policy) {
			p.Steps = []Step{{Share{1, false}, 5 * time.Minute}, {Share{25, true}, 10 * time.Minute}, {Share: Share{50, true}}}
		}},
		"an SLO bounds what it names": {v1alpha1.AnnotationRolloutSLO, "errors<0.5%, ttft-p95 < 2s, itl-p95<60ms", func(p *Policy) {
			p.SLO = SLO{Errors: 0.005, TTFT: 2 * time.Second, ITL: 60 * time.Millisecond}
		}},
		"an analysis can be required":    {v1alpha1.AnnotationRolloutAnalysis, "required", func(p *Policy) { p.Analysis = AnalysisRequired }},
		"an analysis can be off":         {v1alpha1.AnnotationRolloutAnalysis, "off", func(p *Policy) { p.Analysis = AnalysisOff }},
		"a failure can hold":             {v1alpha1.AnnotationRolloutOnFailure, "hold", func(p *Policy) { p.OnFailure = OnFailureHold }},
		"generations can be paired":      {v1alpha1.AnnotationRolloutIsolation, "paired", func(p *Policy) { p.Isolation = IsolationPaired }},
		"true pauses":                    {v1alpha1.AnnotationRolloutPaused, "true", func(p *Policy) { p.Paused = true }},
		"false does not":                 {v1alpha1.AnnotationRolloutPaused, "false", func(*Policy) {}},
		"drains can leave the floor":     {v1alpha1.AnnotationDisruptionBudget, "true", func(p *Policy) { p.DisruptionBudgets = new(true) }},
		"or have no regard for it":       {v1alpha1.AnnotationDisruptionBudget, "false", func(p *Policy) { p.DisruptionBudgets = new(false) }},
		"a step is promoted by number":   {v1alpha1.AnnotationRolloutPromote, "3fa91c02/2", func(p *Policy) { p.Promote = &Promotion{Generation: "3fa91c02", Step: 2} }},
		"or all of them are":             {v1alpha1.AnnotationRolloutPromote, "3fa91c02/all", func(p *Policy) { p.Promote = &Promotion{Generation: "3fa91c02", All: true} }},
		"an abort names a generation":    {v1alpha1.AnnotationRolloutAbort, "3fa91c02", func(p *Policy) { p.Abort = "3fa91c02" }},
		"so does a retry, an opaque one": {v1alpha1.AnnotationRolloutRetry, "legacy", func(p *Policy) { p.Retry = "legacy" }},
	} {
		t.Run(rule, func(t *testing.T) {
			want := defaults
			c.want(&want)
			got, problems := Parse(map[string]string{c.annotation: c.value})
			if diff := cmp.Diff(want, got); diff != "" || len(problems) > 0 {
				t.Errorf("problems %v (-want +got):\n%s", problems, diff)
			}
			if got.Promote != nil && got.Promote.String() != c.value {
				t.Errorf("a promotion of %q is written as %q", c.value, got.Promote)
			}
		})
	}
}

func TestParseRefuses(t *testing.T) {
	defaults, _ := Parse(nil)
	for rule, c := range map[string]struct{ annotation, value, message string }{
		"a step without a time":          {v1alpha1.AnnotationRolloutSteps, "25%", `has "25%", which is no step such as 25% 10m or 1 hold`},
		"a step that is empty":           {v1alpha1.AnnotationRolloutSteps, "25% 1m,", `has "", which is no step such as 25% 10m or 1 hold`},
		"a step of none":                 {v1alpha1.AnnotationRolloutSteps, "0 1m", `has "0", which is neither a number of replicas such as 1 nor a share such as 25%`},
		"a share that is not whole":      {v1alpha1.AnnotationRolloutSteps, "2.5% 1m", `has "2.5%", which is neither a number of replicas such as 1 nor a share such as 25%`},
		"a step of all":                  {v1alpha1.AnnotationRolloutSteps, "100% 1m", `has a step of all replicas: nothing is left to go back to, so it is no step; what follows the last step is all of them`},
		"a time without a unit":          {v1alpha1.AnnotationRolloutSteps, "25% 10", `has "10", which is neither hold nor a time such as 10m`},
		"a time of nothing":              {v1alpha1.AnnotationRolloutSteps, "25% 0s", `has "0s", which is neither hold nor a time such as 10m`},
		"steps that go back":             {v1alpha1.AnnotationRolloutSteps, "50% 1m, 25% 1m", `goes from 50% to 25%: each step is larger than those before it`},
		"an SLO without a bound":         {v1alpha1.AnnotationRolloutSLO, "ttft-p95", `has "ttft-p95", which is no bound such as ttft-p95<2s`},
		"an SLO of something else":       {v1alpha1.AnnotationRolloutSLO, "ttft-p99<1s", `bounds ttft-p99: is none of errors, ttft-p95, itl-p95`},
		"an SLO given twice":             {v1alpha1.AnnotationRolloutSLO, "errors<1%,errors<2%", `bounds errors twice`},
		"errors that are no share":       {v1alpha1.AnnotationRolloutSLO, "errors<0.01", `bounds errors: "0.01" is no share such as 1%`},
		"errors that are no number":      {v1alpha1.AnnotationRolloutSLO, "errors<NaN%", `bounds errors: "NaN%" is no share such as 1%`},
		"a bound below nothing":          {v1alpha1.AnnotationRolloutSLO, "itl-p95<-1s", `bounds itl-p95: "-1s" is no time such as 60ms or 2s`},
		"another word":                   {v1alpha1.AnnotationRolloutAnalysis, "on", `is none of guard, required, off`},
		"another failure":                {v1alpha1.AnnotationRolloutOnFailure, "rollback", `is none of abort, hold`},
		"another isolation":              {v1alpha1.AnnotationRolloutIsolation, "full", `is none of auto, shared, paired, none`},
		"a budget that is no truth":      {v1alpha1.AnnotationDisruptionBudget, "2", `is neither true nor false`},
		"a pause that is no truth":       {v1alpha1.AnnotationRolloutPaused, "yes", `is neither true nor false`},
		"a promotion of no generation":   {v1alpha1.AnnotationRolloutPromote, "/1", `is not <generation>/<step> or <generation>/all, such as 3fa91c02/2`},
		"a promotion of no step":         {v1alpha1.AnnotationRolloutPromote, "3fa91c02/0", `is not <generation>/<step> or <generation>/all, such as 3fa91c02/2`},
		"an abort of several":            {v1alpha1.AnnotationRolloutAbort, "a,b", `is no generation such as 3fa91c02`},
		"a retry of a step":              {v1alpha1.AnnotationRolloutRetry, "a/1", `is no generation such as 3fa91c02`},
		"a promotion of what is no name": {v1alpha1.AnnotationRolloutPromote, "a b/1", `is not <generation>/<step> or <generation>/all, such as 3fa91c02/2`},
	} {
		t.Run(rule, func(t *testing.T) {
			got, problems := Parse(map[string]string{c.annotation: c.value})
			if diff := cmp.Diff([]Problem{{c.annotation, c.value, c.message}}, problems); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(defaults, got); diff != "" {
				t.Errorf("what cannot be read keeps its default (-want +got):\n%s", diff)
			}
		})
	}
}

func TestShareIsRoundedUp(t *testing.T) {
	for _, c := range []struct {
		share         Share
		entries, want int
	}{
		{Share{1, false}, 8, 1},
		{Share{25, true}, 8, 2},
		{Share{25, true}, 5, 2},
		{Share{1, true}, 3, 1},
		{Share{99, true}, 3, 3},
		{Share{4, false}, 3, 3},
		{Share{50, true}, 0, 0},
	} {
		if got := c.share.Of(c.entries); got != c.want {
			t.Errorf("%s of %d is %d, want %d", c.share, c.entries, got, c.want)
		}
	}
}

func TestAt(t *testing.T) {
	now := time.Date(2026, 11, 16, 12, 0, 0, 0, time.UTC)
	minutes := func(n int) time.Time { return now.Add(-time.Duration(n) * time.Minute) }
	for rule, c := range map[string]struct {
		annotations map[string]string
		standing    Standing
		want        Position
		told        string
	}{
		"without steps all replicas may be replaced": {
			map[string]string{v1alpha1.AnnotationRolloutSteps: ""},
			Standing{}, Position{Step: 1}, "",
		},
		"a rollout begins with the first step": {
			nil, Standing{}, Position{Step: 1, Steps: 3, Level: 1}, "1/3",
		},
		"its time begins when all of it serves": {
			nil, Standing{Step: 1, Wanted: 1, Reached: minutes(4)},
			Position{Step: 1, Steps: 3, Level: 1, Until: minutes(-1), Waits: WaitsForTime}, "1/3",
		},
		"when its time is over the next one follows": {
			nil, Standing{Step: 1, Wanted: 1, Reached: minutes(5), Verdict: VerdictInconclusive},
			Position{Step: 2, Steps: 3, Level: 2}, "2/3",
		},
		"with a required analysis it waits for a verdict": {
			map[string]string{v1alpha1.AnnotationRolloutAnalysis: "required"},
			Standing{Step: 1, Wanted: 1, Reached: minutes(5), Verdict: VerdictInconclusive},
			Position{Step: 1, Steps: 3, Level: 1, Waits: WaitsForAnalysis}, "1/3",
		},
		"and goes on with a good one": {
			map[string]string{v1alpha1.AnnotationRolloutAnalysis: "required"},
			Standing{Step: 1, Wanted: 1, Reached: minutes(5), Verdict: VerdictPass},
			Position{Step: 2, Steps: 3, Level: 2}, "2/3",
		},
		"a bad verdict stops it": {
			map[string]string{v1alpha1.AnnotationRolloutOnFailure: "hold"},
			Standing{Step: 1, Wanted: 1, Reached: minutes(5), Verdict: VerdictFail},
			Position{Step: 1, Steps: 3, Level: 1, Waits: WaitsAfterFailure}, "1/3",
		},
		"a verdict that nobody asked for does not": {
			map[string]string{v1alpha1.AnnotationRolloutAnalysis: "off"},
			Standing{Step: 1, Wanted: 1, Reached: minutes(5), Verdict: VerdictFail},
			Position{Step: 2, Steps: 3, Level: 2}, "2/3",
		},
		"a user can promote what failed": {
			map[string]string{v1alpha1.AnnotationRolloutPromote: "new/1"},
			Standing{Step: 1, Wanted: 1, Reached: minutes(5), Verdict: VerdictFail},
			Position{Step: 2, Steps: 3, Level: 2}, "2/3",
		},
		"a step without a time waits for a user": {
			nil, Standing{Step: 3, Wanted: 4, Reached: minutes(500)},
			Position{Step: 3, Steps: 3, Level: 4, Waits: WaitsForPromotion}, "3/3",
		},
		"who promotes it": {
			map[string]string{v1alpha1.AnnotationRolloutPromote: "new/3"},
			Standing{Step: 3, Wanted: 4, Reached: minutes(500)},
			Position{Step: 4, Steps: 3}, "all",
		},
		"a promotion of another generation does nothing": {
			map[string]string{v1alpha1.AnnotationRolloutPromote: "old/all"},
			Standing{Step: 3, Wanted: 4, Reached: minutes(500)},
			Position{Step: 3, Steps: 3, Level: 4, Waits: WaitsForPromotion}, "3/3",
		},
		"a promotion of an earlier step does nothing": {
			map[string]string{v1alpha1.AnnotationRolloutPromote: "new/2"},
			Standing{Step: 3, Wanted: 4, Reached: minutes(500)},
			Position{Step: 3, Steps: 3, Level: 4, Waits: WaitsForPromotion}, "3/3",
		},
		"all steps can be promoted at once": {
			map[string]string{v1alpha1.AnnotationRolloutPromote: "new/all"},
			Standing{}, Position{Step: 4, Steps: 3}, "all",
		},
		"past the steps it stays so": {
			nil, Standing{Step: 4, Wanted: 4}, Position{Step: 4, Steps: 3}, "all",
		},
		"where the record is lost, what it is at is approved again": {
			nil, Standing{Wanted: 4}, Position{Step: 3, Steps: 3, Level: 4}, "3/3",
		},
		"and what it has passed is not taken back": {
			nil, Standing{Wanted: 5}, Position{Step: 4, Steps: 3}, "all",
		},
		"a step of all replicas is none": {
			map[string]string{v1alpha1.AnnotationRolloutSteps: "1 hold"},
			Standing{Entries: 1}, Position{Step: 2, Steps: 1}, "all",
		},
		"a scaled graph has other levels, and no step is skipped for it": {
			nil, Standing{Step: 2, Entries: 4, Wanted: 2, Reached: minutes(1)},
			Position{Step: 2, Steps: 3, Level: 1, Until: minutes(-9), Waits: WaitsForTime}, "2/3",
		},
	} {
		t.Run(rule, func(t *testing.T) {
			annotations := map[string]string{v1alpha1.AnnotationRolloutSteps: "1 5m, 25% 10m, 50% hold"}
			maps.Copy(annotations, c.annotations)
			p, problems := Parse(annotations)
			if len(problems) > 0 {
				t.Fatal(problems)
			}
			s := c.standing
			s.Generation, s.Now = "new", now
			if s.Entries == 0 {
				s.Entries = 8
			}
			got := p.At(s)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if got.String() != c.told {
				t.Errorf("it is told as %q, want %q", got, c.told)
			}
			if told := p.Recorded(got.String()); got.Steps > 0 && told != got.Step {
				t.Errorf("%q is read back as step %d, want %d", got, told, got.Step)
			}
		})
	}
}

func TestRecordedOfOtherStepsIsLost(t *testing.T) {
	p, _ := Parse(map[string]string{v1alpha1.AnnotationRolloutSteps: "1 5m, 50% hold"})
	for told, want := range map[string]int{"1/2": 1, "2/2": 2, "all": 3, "2/4": 0, "": 0, "x/2": 0, "-1/2": 0} {
		if got := p.Recorded(told); got != want {
			t.Errorf("%q is step %d, want %d", told, got, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("1 5m, 25% 10m, 50% hold", "errors<1%, ttft-p95<2s", "3fa91c02/2")
	f.Fuzz(func(t *testing.T, steps, slo, promote string) {
		p, _ := Parse(map[string]string{v1alpha1.AnnotationRolloutSteps: steps, v1alpha1.AnnotationRolloutSLO: slo, v1alpha1.AnnotationRolloutPromote: promote})
		for _, s := range p.Steps {
			for entries := 1; entries < 5; entries++ {
				if n := s.Share.Of(entries); n < 1 || n > entries {
					t.Errorf("%s of %d is %d", s.Share, entries, n)
				}
			}
		}
		if p.SLO.Errors < 0 || p.SLO.Errors > 1 || p.SLO.TTFT < 0 || p.SLO.ITL < 0 {
			t.Errorf("%q bounds %+v", slo, p.SLO)
		}
	})
}

// TestNoStepIsPassedBecauseNothingIsWanted: a graph that sleeps wants no entry, and a
// share of none is all of them.
func TestNoStepIsPassedBecauseNothingIsWanted(t *testing.T) {
	p, problems := Parse(map[string]string{v1alpha1.AnnotationRolloutSteps: "1 hold, 50% 10m"})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	for rule, c := range map[string]struct {
		standing Standing
		want     string
	}{
		"the first is not":                {Standing{Step: 1}, "1/2"},
		"nor where it was reached":        {Standing{Step: 1, Reached: time.Unix(1, 0), Now: time.Unix(1000, 0)}, "1/2"},
		"nor where the record is lost":    {Standing{Wanted: 1}, "1/2"},
		"what was passed before stays so": {Standing{Step: 3}, "all"},
	} {
		t.Run(rule, func(t *testing.T) {
			if at := p.At(c.standing); at.String() != c.want || at.Waits != WaitsForNothing {
				t.Errorf("%+v", at)
			}
		})
	}
}

// TestAStepIsOneWhereTheRolloutCanStop: several services are entries, and each generation
// has one of each.
func TestAStepIsOneWhereTheRolloutCanStop(t *testing.T) {
	p, _ := Parse(map[string]string{v1alpha1.AnnotationRolloutSteps: "1 hold, 2 hold"})
	stop := func(level int) (int, bool) { return level + 1, level > 1 }
	if at := p.At(Standing{Entries: 4, Stop: stop}); at.Step != 2 || at.Level != 2 {
		t.Errorf("the first cannot be stopped at: %+v", at)
	}
	if at := p.At(Standing{Entries: 4, Wanted: 3, Stop: stop}); at.Step != 2 {
		t.Errorf("the record is lost at the second, which has 3: %+v", at)
	}
}
