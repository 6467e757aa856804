package mocker

import (
	"flag"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/dynamo-operator/dynamo-operator/internal/core/perfmodel"
	"github.com/dynamo-operator/dynamo-operator/internal/mocker/podenv"
	"github.com/dynamo-operator/dynamo-operator/internal/profiler/load"
	"github.com/dynamo-operator/dynamo-operator/internal/profiler/openai"
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
	for _, c := range []struct {
		model         string
		parallel      perfmodel.Parallel
		users         int
		input, output int
		// slow stretches time: a user of a busy engine comes back within a step,
		// which is short for a machine that plays users and engine at once.
		slow float64
	}{
		{"meta-llama/Llama-3.1-8B-Instruct", perfmodel.Parallel{TP: 1}, 1, 3000, 100, 2},
		{"meta-llama/Llama-3.1-8B-Instruct", perfmodel.Parallel{TP: 1}, 8, 3000, 100, 6},
		{"meta-llama/Llama-3.1-8B-Instruct", perfmodel.Parallel{TP: 1}, 32, 3000, 100, 6},
		{"Qwen/Qwen3-32B", perfmodel.Parallel{TP: 2}, 1, 1500, 64, 2},
		{"Qwen/Qwen3-32B", perfmodel.Parallel{TP: 2}, 8, 1500, 100, 6},
		{"Qwen/Qwen3-30B-A3B", perfmodel.Parallel{TP: 2}, 8, 2000, 100, 6},
		{"Qwen/Qwen3-30B-A3B", perfmodel.Parallel{TP: 1, DP: 2, EP: 2}, 32, 1000, 50, 6},
	} {
		g := newGraph(t)
		stop := g.worker(1, podenv.Env{"MOCKER_DRAIN_LINGER": "50ms"}, engineArgs(c.model, c.parallel, c.slow)...)
		g.await("/v1/models", `"id":"m"`)
		client := g.load(c.users)
		got, err := client.Run(t.Context(), load.Shape{ISL: c.input, OSL: c.output, Concurrency: c.users, Requests: requests, Warmups: 1, Seed: 7})
		if err != nil {
			t.Fatal(err)
		}
		stop()
		want, err := estimator(t, c.model, c.parallel).ClosedLoop(perfmodel.Load{Concurrency: c.users, Input: int(math.Round(got.Prompt)), Output: c.output})
		if err != nil {
			t.Fatal(err)
		}
		name := fmt.Sprintf("%s %s, %d users, %.0f+%d tokens", c.model, c.parallel, c.users, got.Prompt, c.output)
		near(t, name+": TTFT", got.TTFT.P50/c.slow, want.FirstToken.Value)
		near(t, name+": ITL", got.ITL.P50/c.slow, want.PerToken.Value)
	}
}

// The same with a prefill and a decode engine, as the profiler measures them.
func TestClosedLoopOfTwoHalves(t *testing.T) {
	if !*measure {
		t.Skip("measures real times: make closed-loop")
	}
	const (
		model         = "meta-llama/Llama-3.1-8B-Instruct"
		users         = 16
		input, output = 2000, 100
		slow          = 4.0
	)
	g := newGraph(t)
	g.worker(1, podenv.Env{"MOCKER_DRAIN_LINGER": "50ms"}, append(engineArgs(model, perfmodel.Parallel{TP: 1}, slow), "--is-prefill-worker")...)
	g.worker(2, podenv.Env{"MOCKER_DRAIN_LINGER": "50ms"}, engineArgs(model, perfmodel.Parallel{TP: 1}, slow)...)
	g.await("/v1/models", `"id":"m"`)
	g.await("/health", fmt.Sprintf(generateAt, "prefill", 1))
	client := g.load(users)
	first, err := client.Run(t.Context(), load.Shape{ISL: input, OSL: 2, Concurrency: 1, Requests: perfmodel.Counted, Warmups: 1, Seed: 2})
	if err != nil {
		t.Fatal(err)
	}
	var rest load.Summary
	for range 2 { // prompts that are cached do not wait for each other
		if rest, err = client.Run(t.Context(), load.Shape{ISL: input, OSL: output, Concurrency: users, Requests: perfmodel.Counted, Seed: 1}); err != nil {
			t.Fatal(err)
		}
	}
	e := estimator(t, model, perfmodel.Parallel{TP: 1})
	alone, err := e.DecodeOnly(perfmodel.Load{Concurrency: 1, Input: input, Output: output})
	if err != nil {
		t.Fatal(err)
	}
	many, err := e.DecodeOnly(perfmodel.Load{Concurrency: users, Input: input, Output: output})
	if err != nil {
		t.Fatal(err)
	}
	near(t, model+", disaggregated, 1 user: TTFT", first.TTFT.P50/slow, e.FirstToken(input, 0).Value+alone.FirstToken.Value)
	near(t, fmt.Sprintf("%s, disaggregated, %d users: ITL", model, users), rest.ITL.P50/slow, many.PerToken.Value)
}

func engineArgs(model string, p perfmodel.Parallel, slow float64) []string {
	args := []string{"--model", model, "--served-model-name", "m", "--tensor-parallel-size", strconv.Itoa(p.TP), "--speedup-ratio", fmt.Sprint(1 / slow)}
	if p.DP > 1 {
		args = append(args, "--data-parallel-size", strconv.Itoa(p.DP), "--enable-expert-parallel")
	}
	return args
}

func (g *graph) load(users int) *load.Client {
	return &load.Client{Client: openai.Client{HTTP: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: users}}, URL: g.url}, Model: "m"}
}

func estimator(t *testing.T, name string, p perfmodel.Parallel) *perfmodel.Estimator {
	t.Helper()
	catalog := perfmodel.Default()
	model, err := catalog.Model(name)
	if err != nil {
		t.Fatal(err)
	}
	gpu, err := catalog.GPU("h200_sxm")
	if err != nil {
		t.Fatal(err)
	}
	e, err := catalog.Estimator(perfmodel.Setup{Model: model, GPU: gpu, Engine: perfmodel.VLLM, Parallel: p})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// near holds a median, in milliseconds, against an estimate: within 5 % or 2 ms.
func near(t *testing.T, what string, measured float64, estimate time.Duration) {
	t.Helper()
	want := float64(estimate) / float64(time.Millisecond)
	t.Logf("%s %.2f ms, median of %d requests, estimated %.2f (%+.1f %%)", what, measured, perfmodel.Counted, want, 100*(measured/want-1))
	if math.Abs(measured-want) > max(2, 0.05*want) {
		t.Errorf("%s is off by %+.1f %%", what, 100*(measured/want-1))
	}
}
