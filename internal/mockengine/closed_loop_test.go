package mockengine

import (
	"flag"
	"math"
	"net/http"
	"testing"
	"time"

	"github.com/dynamo-operator/dynamo-operator/internal/mockengine/setting"
	"github.com/dynamo-operator/dynamo-operator/internal/perfmodel"
	"github.com/dynamo-operator/dynamo-operator/internal/profile/load"
)

var measure = flag.Bool("measure", false, "measure real times; wants an idle machine")

// The whole loop without a GPU: the profiler's load generator asks a frontend,
// which asks an engine timed by the model; what comes out is held against what
// the model said. Exact times of the scheduler are tested beside it, on a clock
// of their own.
func TestClosedLoop(t *testing.T) {
	if !*measure {
		t.Skip("measures real times: make closed-loop")
	}
	const requests = 50
	catalog := perfmodel.Default()
	for _, c := range []struct {
		model         string
		tp            string
		users         int
		input, output int
	}{
		{"meta-llama/Llama-3.1-8B-Instruct", "1", 1, 3000, 64},
		{"meta-llama/Llama-3.1-8B-Instruct", "1", 8, 3000, 150},
		{"Qwen/Qwen3-32B", "2", 1, 1500, 48},
		{"Qwen/Qwen3-32B", "2", 8, 1500, 150},
		{"Qwen/Qwen3-30B-A3B", "2", 8, 2000, 150},
	} {
		g := newGraph(t)
		g.worker(1, setting.Env{"MOCKER_DRAIN_LINGER": "50ms"}, "--model", c.model, "--served-model-name", "m", "--tensor-parallel-size", c.tp)
		g.await("/v1/models", `"id":"m"`)
		client := &load.Client{HTTP: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: c.users}}, URL: g.url, Model: "m"}
		got, err := client.Run(t.Context(), load.Shape{ISL: c.input, OSL: c.output, Concurrency: c.users, Requests: requests, Warmups: 2, Seed: 7})
		if err != nil {
			t.Fatal(err)
		}
		model, err := catalog.Model(c.model)
		if err != nil {
			t.Fatal(err)
		}
		gpu, err := catalog.GPU("h200_sxm")
		if err != nil {
			t.Fatal(err)
		}
		estimator, err := catalog.Estimator(perfmodel.Setup{Model: model, GPU: gpu, Engine: perfmodel.VLLM, Parallel: perfmodel.Parallel{TP: int(c.tp[0] - '0')}})
		if err != nil {
			t.Fatal(err)
		}
		want, err := estimator.Aggregated(perfmodel.Load{Concurrency: c.users, Input: int(math.Round(got.Prompt)), Output: c.output})
		if err != nil {
			t.Fatal(err)
		}
		millis := func(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
		check := func(what string, measured, estimated float64, must bool) {
			off := measured/estimated - 1
			t.Logf("%s TP%s, %d at once, %.0f+%d: %s measured %.2f ms, estimated %.2f (%+.1f %%)", c.model, c.tp, c.users, got.Prompt, c.output, what, measured, estimated, 100*off)
			if must && math.Abs(measured-estimated) > max(2, 0.05*estimated) {
				t.Errorf("%s: %s is off by %+.1f %%", c.model, what, 100*off)
			}
		}
		check("ITL", got.ITL.P50, millis(want.PerToken.Value), true)
		// Under load the first token depends on who comes when; the estimate is
		// what closed loops were measured to have.
		check("TTFT", got.TTFT.P50, millis(want.FirstToken.Value), c.users == 1)
	}
}
