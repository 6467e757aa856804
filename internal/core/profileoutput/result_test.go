package profileoutput

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestResultIsReadBack(t *testing.T) {
	want := Result{
		State: Succeeded, Reason: ReasonTargetsMissed, Message: "m", GeneratedDeployment: "kind: X\n", SLAMet: false,
		TTFTMs: 120.5, Targets: []Target{{Name: "ttft", Unit: " ms", Want: 100, Got: 120.5, Low: 110, High: 130}},
	}
	got, err := ParseResult(want.Text())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestParseResultRefuses(t *testing.T) {
	for name, text := range map[string]string{
		"text that is no JSON":         "oops",
		"a state that nobody defined":  `{"state":"Fine"}`,
		"an object that has no state":  `{}`,
		"a list in place of an object": `[]`,
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := ParseResult(text); err == nil {
				t.Errorf("read %+v", got)
			}
		})
	}
}

func TestTargetSaysByHowMuch(t *testing.T) {
	for name, test := range map[string]struct {
		target Target
		want   string
	}{
		"a target that is met": {Target{Name: "itl", Unit: " ms", Want: 20, Got: 10, Low: 9, High: 11, Met: true}, "itl 10 ms of 20 ms, met"},
		"a band that crosses the target": {
			Target{Name: "itl", Unit: " ms", Want: 20, Got: 19, Low: 17, High: 21, Met: true},
			"itl 19 ms of 20 ms, met by the estimate but not by its whole band",
		},
		"a target that is missed": {Target{Name: "ttft", Unit: " ms", Want: 50, Got: 75, Low: 70, High: 80}, "ttft 75 ms of 50 ms, missed by 50%"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := test.target.String(); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestProgressIsOneLine(t *testing.T) {
	got := Progress{Done: 3, Total: 8, Stage: "Measuring", Best: "TP2"}.String()
	if want := "measuring: 3/8 candidates, best so far TP2"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
