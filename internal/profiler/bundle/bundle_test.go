package bundle

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dynamo-operator/dynamo-operator/internal/core/perfmodel"
	"github.com/dynamo-operator/dynamo-operator/internal/core/profileoutput"
	"github.com/dynamo-operator/dynamo-operator/internal/profiler/config"
	"github.com/dynamo-operator/dynamo-operator/internal/profiler/search"
)

var names = Names{Graph: "goal", ProfileData: "goal-profile-data"}

func compose(t *testing.T, text string) (*Bundle, error) {
	t.Helper()
	c, err := config.Parse(text)
	if err != nil {
		return nil, err
	}
	p, o, err := Problem(c, perfmodel.Default(), nil, names)
	if err != nil {
		return nil, err
	}
	found, err := search.Solve(p)
	if err != nil {
		return nil, err
	}
	return Compose(c, o, found)
}

const easy = "deployment: {model: Qwen/Qwen3-32B}\nsweep: {aicSystem: h200_sxm}\nsla: {isl: 3000, osl: 150, ttft: 2000, itl: 60}"

func TestABundleHasEverything(t *testing.T) {
	b, err := compose(t, easy)
	if err != nil {
		t.Fatal(err)
	}
	if !b.Result.SLAMet || b.Result.State != profileoutput.Succeeded || b.Result.Reason != profileoutput.ReasonTargetsMet || b.Result.ModelFingerprint == "" {
		t.Errorf("got %+v", b.Result)
	}
	files, err := b.Files()
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"config_with_planner.yaml", "decode_raw_data.json", "figures/latency.svg", "figures/throughput-itl.svg", "figures/throughput-ttft.svg",
		"mocker_config_with_planner.yaml", "prefill_raw_data.json", "report.html", "report.txt", "result.json",
		"selected_decode_interpolation/raw_data.npz", "selected_prefill_interpolation/raw_data.npz",
	}
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(files))); diff != "" {
		t.Error(diff)
	}
	// A ConfigMap holds one mebibyte.
	if size := len(b.HTML) + len(b.Text) + len(b.Result.Text()); size > 800_000 {
		t.Errorf("%d bytes do not fit into a ConfigMap", size)
	}
	for _, outside := range []string{"<script", "http://", "https://"} {
		if strings.Contains(strings.ReplaceAll(b.HTML, "http://www.w3.org/2000/svg", ""), outside) {
			t.Errorf("the report contains %q", outside)
		}
	}
}

func TestAMissedGoalIsToldAndStrictlyAFailure(t *testing.T) {
	hard := strings.Replace(easy, "itl: 60", "itl: 0.5", 1)
	b, err := compose(t, hard)
	if err != nil {
		t.Fatal(err)
	}
	if b.Result.State != profileoutput.Succeeded || b.Result.SLAMet || b.Result.Reason != profileoutput.ReasonTargetsMissed || b.Result.Remedy == "" {
		t.Errorf("got %+v", b.Result)
	}
	if !strings.Contains(b.Result.Message, "missed by") || !strings.Contains(b.Text, "What would meet the goal") {
		t.Errorf("message: %s", b.Result.Message)
	}
	if b, err = compose(t, strings.Replace(hard, "itl: 0.5", "itl: 0.5, strict: true", 1)); err != nil || b.Result.State != profileoutput.Failed {
		t.Errorf("got %+v, %v", b, err)
	}
}

func TestFailure(t *testing.T) {
	for name, test := range map[string]struct {
		text string
		want profileoutput.Reason
	}{
		"a configuration that cannot be read": {"sla: {isl: -1}", profileoutput.ReasonInvalidConfig},
		"a model without a table":             {strings.Replace(easy, "Qwen/Qwen3-32B", "acme/secret-1", 1), profileoutput.ReasonUnknownModel},
		"a GPU without a table":               {strings.Replace(easy, "h200_sxm", "abacus", 1), profileoutput.ReasonUnknownGPU},
		"no GPU named at all":                 {"deployment: {model: Qwen/Qwen3-32B}", profileoutput.ReasonUnknownGPU},
		"a model larger than the GPUs":        {"deployment: {model: deepseek-ai/DeepSeek-V3}\nsweep: {aicSystem: h100_sxm}", profileoutput.ReasonNoConfiguration},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := compose(t, test.text)
			if err == nil {
				t.Fatal("no error")
			}
			got := Failure(err)
			if got.Reason != test.want || got.Message == "" || !got.Reason.Permanent() {
				t.Errorf("got %+v", got)
			}
		})
	}
}
