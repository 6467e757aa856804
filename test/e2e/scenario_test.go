package e2e

import (
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/perfmodel"
	"github.com/dynamo-operator/dynamo-operator/internal/core/planner/capacity"
	"github.com/dynamo-operator/dynamo-operator/internal/core/planner/journal"
	"github.com/dynamo-operator/dynamo-operator/internal/core/planner/trace"
	"github.com/dynamo-operator/dynamo-operator/internal/profiler/load"
	"github.com/dynamo-operator/dynamo-operator/internal/profiler/openai"
	"github.com/dynamo-operator/dynamo-operator/internal/testkit/openloop"
	"github.com/dynamo-operator/dynamo-operator/internal/testkit/summary"
	"github.com/dynamo-operator/dynamo-operator/test/corpus"
)

// scaling takes what make scaling-e2e has a machine for, and make test has not.
var scaling = flag.Bool("scaling", false, "hold seconds against their limits, play upstream's scenario on every planner that is published, and a cluster beside its simulation; needs a machine that does nothing else")

// slowed is a model whose replicas take so many times as long.
type slowed struct {
	capacity.Model
	by float64
}

func (s slowed) Prefill(tokens float64) float64 { return s.by * s.Model.Prefill(tokens) }
func (s slowed) Token(sequences, context float64) float64 {
	return s.by * s.Model.Token(sequences, context)
}

// profiled is what a profiler would have measured of a model, as a ConfigMap has it. Lengths
// are as dense as lines between them need to be.
func profiled(t *testing.T, m capacity.Model) (prefill, decode []byte) {
	t.Helper()
	const shortest, longest, step = 128.0, 16384.0, 1.4142135623730951
	var isl, ttft, input, usage, lengths, itl, output []float64
	for length := shortest; length < longest*1.01; length *= step {
		took := m.Prefill(length)
		isl, ttft, input = append(isl, length), append(ttft, 1e3*took), append(input, length/took)
		for _, share := range []float64{0.001, 0.02, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1} {
			sequences := share * m.Cache() / length
			took := m.Token(sequences, length)
			usage, lengths = append(usage, share), append(lengths, length)
			itl, output = append(itl, 1e3*took), append(output, sequences/took)
		}
	}
	marshal := func(fields map[string]any) []byte {
		text, err := json.Marshal(fields)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	return marshal(map[string]any{"prefill_isl": isl, "prefill_ttft": ttft, "prefill_thpt_per_gpu": input}),
		marshal(map[string]any{"x_kv_usage": usage, "y_context_length": lengths, "z_itl": itl, "z_thpt_per_gpu": output, "max_kv_tokens": m.Cache()})
}

// given is an object that somebody makes before a manifest is applied.
func given(t *testing.T, kind, name, field string, values map[string]string) corpus.Document {
	t.Helper()
	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": kind, "metadata": map[string]any{"name": name}}}
	data := map[string]any{}
	for key, value := range values {
		data[key] = value
	}
	object.Object[field] = data
	text, err := object.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	return corpus.Document{File: "given", JSON: text, Object: object}
}

// question is a prompt of so many tokens that no other begins with.
func question(n, tokens int) string {
	const template = 6 // of the user's and the assistant's turn
	return fmt.Sprintf("%04x", n) + strings.Repeat(" word", max(0, tokens-template-1))
}

// answered are the requests of a trace that were sent, and what became of them.
type answered struct {
	openloop.Outcome

	answer load.Answer
}

// first is when the first token came, for who came when it was planned.
func (a answered) first() time.Duration { return a.Sent - a.Planned + a.answer.First }

// token is the mean time between tokens.
func (a answered) token() time.Duration {
	return (a.answer.Last - a.answer.First) / time.Duration(max(1, a.answer.Tokens-1))
}

// played sends the requests of a trace at their times until it is stopped, or in the end.
func (w world) played(url, model string, requests trace.Trace) (stop func() []answered, done <-chan struct{}) {
	w.Helper()
	ctx, cancel := context.WithCancel(w.ctx)
	w.Cleanup(cancel)
	arrivals := make([]time.Duration, len(requests))
	for i, q := range requests {
		arrivals[i] = time.Duration(q.At * float64(time.Second))
	}
	client := &load.Client{Client: openai.Client{HTTP: w.cluster.HTTP, URL: url}, Model: model}
	answers, ended := make([]load.Answer, len(requests)), make(chan struct{})
	var outcomes []openloop.Outcome
	go func() {
		defer close(ended)
		outcomes = openloop.Run(ctx, arrivals, func(n int) (err error) {
			asking, done := context.WithTimeout(context.WithoutCancel(w.ctx), 5*time.Minute)
			defer done()
			q := requests[n]
			answers[n], err = client.Ask(asking, question(n, int(q.Input)), int(q.Output))
			if a := answers[n]; err == nil && (a.Prompt != int(q.Input) || a.Tokens != int(q.Output)) {
				err = fmt.Errorf("request of %d and %d tokens had %d and %d", q.Input, q.Output, a.Prompt, a.Tokens)
			}
			return err
		})
	}()
	return sync.OnceValue(func() []answered {
		cancel()
		<-ended
		all := make([]answered, len(outcomes))
		for i, o := range outcomes {
			all[i] = answered{o, answers[i]}
		}
		return all
	}), ended
}

// even are requests of one size at even distances.
func even(rate float64, length time.Duration, input, output int32) trace.Trace {
	var all trace.Trace
	for at := 0.0; at < length.Seconds(); at += 1 / rate {
		all = append(all, trace.Request{At: at, Input: input, Output: output})
	}
	return all
}

// lost is the first request that failed, and how many did.
func lost(all []answered) (failed int, first error) {
	for _, a := range all {
		if a.Err != nil {
			failed++
			first = cmp.Or(first, a.Err)
		}
	}
	return failed, first
}

// middle is the time within which half of the first tokens came.
func middle(all []answered) time.Duration {
	firsts := make([]time.Duration, len(all))
	for i, a := range all {
		firsts[i] = a.first()
	}
	slices.Sort(firsts)
	return firsts[len(firsts)/2].Round(time.Millisecond)
}

// The scenario that upstream tests its planner by: 8 requests a second of 4000 and 150 tokens
// need one replica of each role, and 18 need two of prefill, within a minute.
const (
	scenarioLow, scenarioHigh     = 8, 18
	scenarioInput, scenarioOutput = 4000, 150
	scenarioWithin                = time.Minute
)

// publishedPlanner is a manifest of a graph with a planner, and what a reader brings for it.
type publishedPlanner struct {
	file, engine, model string
	target              capacity.Target
	// profiled manifests mount a profile that has to be there; the other names a folder of
	// its image, which is not here, and is timed by the performance model.
	profiled bool
	// even manifests have time for the rates at even distances alone, which a planner has to
	// have seen.
	even float64
	// settles is how long a planner takes at the low rate, at most.
	settles time.Duration
	// more is what a forecast may be above what comes.
	more float64
}

var publishedPlanners = []publishedPlanner{
	{"examples/backends/vllm/deploy/disagg_planner.yaml", "vllm", "Qwen/Qwen3-0.6B", capacity.Target{FirstToken: 0.5, Token: 0.05}, true, 0, 30 * time.Second, 1.25},
	{"examples/backends/sglang/deploy/disagg_planner.yaml", "sglang", "Qwen/Qwen3-0.6B", capacity.Target{FirstToken: 0.5, Token: 0.05}, true, 0, 30 * time.Second, 1.25},
	{"examples/backends/trtllm/deploy/disagg_planner.yaml", "trtllm", "Qwen/Qwen3-0.6B", capacity.Target{FirstToken: 0.5, Token: 0.05}, true, 0, 30 * time.Second, 1.25},
	{"tests/planner/perf_test_configs/disagg_8b_planner.yaml", "vllm", "nvidia/Llama-3.1-8B-Instruct-FP8", capacity.Target{FirstToken: 0.2, Token: 0.01}, false, 0.9, 5 * time.Minute, 1.1},
}

// brings is what a reader makes before the manifest: the token's Secret, whose variables
// workers get, and the profile. Engines of a small model would need no second replica, so
// they are slowed to what the profile says of a large one; times are those of the mock
// engines and of the planner alike.
func (p publishedPlanner) brings(t *testing.T) (model capacity.Model, documents []corpus.Document) {
	t.Helper()
	catalog := perfmodel.Default()
	known, err := catalog.Model(p.model)
	if err != nil {
		t.Fatal(err)
	}
	gpu, err := catalog.GPU("h200_sxm")
	if err != nil {
		t.Fatal(err)
	}
	estimator, err := catalog.Estimator(perfmodel.Setup{Model: known, GPU: gpu, Engine: perfmodel.Engine(p.engine), Parallel: perfmodel.Parallel{TP: 1}, Pool: true})
	if err != nil {
		t.Fatal(err)
	}
	if model, err = capacity.FromEstimators(estimator, estimator); err != nil {
		t.Fatal(err)
	}
	by := 1.0
	if p.profiled {
		// One replica computes 18 such prompts a second: 8 leave it time, 18 do not.
		const prompt = 0.055
		by = prompt / model.Prefill(scenarioInput)
		prefill, decode := profiled(t, slowed{model, by})
		documents = append(documents, given(t, "ConfigMap", "planner-profile-data", "data", map[string]string{"prefill_raw_data.json": string(prefill), "decode_raw_data.json": string(decode)}))
		measured, err := capacity.ParseProfile(prefill, decode)
		if err != nil {
			t.Fatal(err)
		}
		if model, err = measured.Model(); err != nil {
			t.Fatal(err)
		}
	}
	secret := map[string]string{"HF_TOKEN": "token", "MOCKER_SLOWDOWN": strconv.FormatFloat(by, 'f', 4, 64)}
	return model, append(documents, given(t, "Secret", "hf-token-secret", "stringData", secret))
}

// need is what the planner's model says that a rate needs.
func (p publishedPlanner) need(m capacity.Model, rate float64) journal.Replicas {
	l := capacity.Load{Rate: rate, Even: p.even, Lengths: capacity.Lengths{Input: scenarioInput, Input95: scenarioInput, Output: scenarioOutput}}
	return journal.Replicas{
		Prefill: capacity.Prefill(m, l, p.target, 1, capacity.DefaultMargins()).Replicas,
		Decode:  capacity.Decode(m, l, p.target, 1, capacity.DefaultMargins()).Replicas,
	}
}

// engines are the replicas of each role that a graph asks for, and whether all are ready.
func engines(dgd *v1alpha1.DynamoGraphDeployment) (wanted journal.Replicas, ready bool) {
	ready = true
	for name, service := range dgd.Spec.Services {
		n := 1
		if service.Replicas != nil {
			n = int(*service.Replicas)
		}
		switch service.SubComponentType {
		case "prefill":
			wanted.Prefill = n
		case "decode":
			wanted.Decode = n
		default:
			continue
		}
		if has := dgd.Status.Services[name].ReadyReplicas; has == nil || int(*has) != n {
			ready = false
		}
	}
	return wanted, ready
}

// TestPublishedPlannersFollowUpstreamsScenario applies published manifests as they are. Not
// parallel: planners see what requests get, and other tests would take time from them.
func TestPublishedPlannersFollowUpstreamsScenario(t *testing.T) {
	if !*scaling {
		t.Skip("counts seconds, on a machine of its own: run make scaling-e2e")
	}
	documents := corpus.All(t)
	for _, p := range publishedPlanners {
		t.Run(strings.ReplaceAll(path.Base(path.Dir(path.Dir(p.file)))+"/"+path.Base(p.file), "/", "-"), func(t *testing.T) {
			w := newWorld(t)
			model, brought := p.brings(t)
			one, two := journal.Replicas{Prefill: 1, Decode: 1}, journal.Replicas{Prefill: 2, Decode: 1}
			for _, c := range []struct {
				rate float64
				want journal.Replicas
			}{{scenarioLow, one}, {p.more * scenarioLow, one}, {scenarioHigh, two}, {p.more * scenarioHigh, two}} {
				if need := p.need(model, c.rate); need != c.want {
					t.Fatalf("by the planner's model %.1f requests a second need %+v, want %+v", c.rate, need, c.want)
				}
			}
			manifests := manifestsOf(t, slices.DeleteFunc(slices.Clone(documents), func(d corpus.Document) bool { return d.File != p.file }))
			if len(manifests) != 1 || len(manifests[0].graphs) != 1 {
				t.Fatalf("%s is %d manifests", p.file, len(manifests))
			}
			m := manifests[0]
			m.documents = append(brought, m.documents...)
			deploy(w, m)
			name := m.graphs[0].Name
			url := w.frontendURL(w.graph(name))
			has := func(want journal.Replicas) func(context.Context) error {
				return func(ctx context.Context) error {
					if got, ready := engines(w.graph(name)); got != want || !ready {
						all, err := w.decisions(ctx, name)
						return fmt.Errorf("%+v, ready %v; decisions %v, %w", got, ready, all, err)
					}
					return nil
				}
			}

			begin := time.Now()
			low, _ := w.played(url, p.model, even(scenarioLow, 10*time.Minute, scenarioInput, scenarioOutput))
			w.eventually("one replica of each at the low rate", has(one))
			w.wait(p.settles - time.Since(begin))
			if err := has(one)(w.ctx); err != nil {
				t.Errorf("at %d requests a second: %v", scenarioLow, err)
			}
			step := time.Now()
			high, _ := w.played(url, p.model, even(scenarioHigh, 10*time.Minute, scenarioInput, scenarioOutput))
			before := low()
			w.eventually("two replicas of prefill at the high rate", has(two))
			took := time.Since(step)
			w.wait(30*time.Second - took) // nor more of them
			if err := has(two)(w.ctx); err != nil {
				t.Errorf("at %d requests a second: %v", scenarioHigh, err)
			}
			after := high()
			all, err := w.decisions(w.ctx, name)
			if err != nil {
				t.Fatal(err)
			}
			var asked time.Duration
			for _, r := range all {
				if r.At.After(step) && r.To == two && asked == 0 {
					asked = r.At.Sub(step)
				}
				t.Log(r.At.Format(time.TimeOnly), strings.Join(r.Words, "\n         "))
			}
			if took > scenarioWithin {
				t.Errorf("two replicas of prefill were ready %s after the step, at most %s are to pass", took, scenarioWithin)
			}
			failed, why := lost(append(before, after...))
			if failed > 0 {
				t.Errorf("%d of %d requests failed, the first: %v", failed, len(before)+len(after), why)
			}
			summary.Line(t, "%s: %d to %d requests a second of %d and %d tokens: 2P1D asked for after %.0f s, ready after %.0f s; %d requests, %d failed; half of the first tokens within %s at the low rate",
				p.file, scenarioLow, scenarioHigh, scenarioInput, scenarioOutput, asked.Seconds(), took.Seconds(), len(before)+len(after), failed, middle(before))
		})
	}
}
