package mockengine

import (
	"flag"
	"fmt"
	"math"
	"net/http"
	"strconv"
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
	const requests = perfmodel.Counted
	catalog := perfmodel.Default()
	for _, c := range []struct {
		model         string
		tp            int
		users         int
		input, output int
		// slow stretches time: a user of a busy engine comes back within a step,
		// which is short for a machine that plays users and engine at once.
		slow float64
	}{
		{"meta-llama/Llama-3.1-8B-Instruct", 1, 1, 3000, 64, 1},
		{"meta-llama/Llama-3.1-8B-Instruct", 1, 8, 3000, 150, 4},
		{"meta-llama/Llama-3.1-8B-Instruct", 1, 32, 3000, 150, 4},
		{"Qwen/Qwen3-32B", 2, 1, 1500, 48, 1},
		{"Qwen/Qwen3-32B", 2, 8, 1500, 150, 4},
		{"Qwen/Qwen3-30B-A3B", 2, 8, 2000, 150, 4},
	} {
		g := newGraph(t)
		stop := g.worker(1, setting.Env{"MOCKER_DRAIN_LINGER": "50ms"}, "--model", c.model, "--served-model-name", "m",
			"--tensor-parallel-size", strconv.Itoa(c.tp), "--speedup-ratio", fmt.Sprint(1/c.slow))
		g.await("/v1/models", `"id":"m"`)
		client := &load.Client{HTTP: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: c.users}}, URL: g.url, Model: "m"}
		got, err := client.Run(t.Context(), load.Shape{ISL: c.input, OSL: c.output, Concurrency: c.users, Requests: requests, Warmups: 1, Seed: 7})
		if err != nil {
			t.Fatal(err)
		}
		stop()
		model, err := catalog.Model(c.model)
		if err != nil {
			t.Fatal(err)
		}
		gpu, err := catalog.GPU("h200_sxm")
		if err != nil {
			t.Fatal(err)
		}
		estimator, err := catalog.Estimator(perfmodel.Setup{Model: model, GPU: gpu, Engine: perfmodel.VLLM, Parallel: perfmodel.Parallel{TP: c.tp}})
		if err != nil {
			t.Fatal(err)
		}
		want, err := estimator.ClosedLoop(perfmodel.Load{Concurrency: c.users, Input: int(math.Round(got.Prompt)), Output: c.output})
		if err != nil {
			t.Fatal(err)
		}
		check := func(what string, measured float64, estimated time.Duration) {
			measured /= c.slow
			wanted := float64(estimated) / float64(time.Millisecond)
			t.Logf("%s TP%d, %d users, %.0f+%d tokens: median %s of %d requests %.2f ms, estimated %.2f (%+.1f %%)",
				c.model, c.tp, c.users, got.Prompt, c.output, what, got.Requests, measured, wanted, 100*(measured/wanted-1))
			if math.Abs(measured-wanted) > max(2, 0.05*wanted) {
				t.Errorf("%s, %d users: %s is off by %+.1f %%", c.model, c.users, what, 100*(measured/wanted-1))
			}
		}
		check("TTFT", got.TTFT.P50, want.FirstToken.Value)
		check("ITL", got.ITL.P50, want.PerToken.Value)
	}
}
