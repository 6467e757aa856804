package engine

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dynamo-operator/dynamo-operator/internal/core/perfmodel"
	"github.com/dynamo-operator/dynamo-operator/internal/mocker/timing"
)

// fixed is a model whose steps take a known time.
type fixed struct{ token, beside, decode time.Duration }

func (f fixed) Prefill(parts []timing.Part, decode time.Duration) time.Duration {
	tokens := 0
	for _, p := range parts {
		tokens += p.Fresh
	}
	if decode > 0 {
		return f.beside * time.Duration(tokens)
	}
	return f.token * time.Duration(tokens)
}
func (f fixed) Decode(int, int, float64) time.Duration { return f.decode }
func (f fixed) Transfer(int) time.Duration             { return 0 }
func (f fixed) Delivery() time.Duration                { return 0 }
func (f fixed) config(config Config) Config            { config.Model = f; return config }
func generation(request Request) *Generation {
	return &Generation{news: make(chan struct{}, 1), request: request}
}
func (g *Generation) state() (produced int, ended bool) { return g.produced, g.finished }

// script plays requests on a clock of its own: each arrives at its time, and
// the moments of its tokens are noted.
func script(s *scheduler, at []time.Duration, requests []Request) [][]time.Duration {
	moments := make([][]time.Duration, len(requests))
	generations := make([]*Generation, len(requests))
	var now time.Duration
	for arrived := 0; ; {
		for arrived < len(requests) && (at[arrived] <= now || s.idle()) {
			now = max(now, at[arrived])
			generations[arrived] = generation(requests[arrived])
			s.add(generations[arrived])
			arrived++
		}
		if s.idle() {
			return moments
		}
		now += s.plan()
		s.finish(time.Time{})
		for i, g := range generations[:arrived] {
			if produced, _ := g.state(); produced > len(moments[i]) {
				moments[i] = append(moments[i], now)
			}
		}
	}
}

func millis(n ...int) []time.Duration {
	var out []time.Duration
	for _, m := range n {
		out = append(out, time.Duration(m)*time.Millisecond)
	}
	return out
}

func TestStepsTakeTheTimeOfTheModel(t *testing.T) {
	model := fixed{token: 2 * time.Millisecond, beside: time.Millisecond, decode: 5 * time.Millisecond}
	for name, c := range map[string]struct {
		at       []time.Duration
		requests []Request
		want     [][]time.Duration
	}{
		"the last chunk of a prompt gives the first token": {
			millis(0), []Request{{Prompt: tokens(10, 0), MaxTokens: 3}},
			[][]time.Duration{millis(20, 25, 30)},
		},
		"a prompt computed elsewhere costs steps only": {
			millis(0), []Request{{Prompt: tokens(10, 0), MaxTokens: 3, Prefilled: true}},
			[][]time.Duration{millis(5, 10, 15)},
		},
		"a prompt longer than the budget takes several steps": {
			millis(0), []Request{{Prompt: tokens(70, 0), MaxTokens: 2}},
			[][]time.Duration{millis(140, 145)},
		},
		"a chunk beside decoding sequences lengthens their step": {
			millis(0, 21), []Request{{Prompt: tokens(10, 0), MaxTokens: 4}, {Prompt: tokens(6, 50), MaxTokens: 2}},
			[][]time.Duration{millis(20, 25, 36, 41), millis(36, 41)},
		},
		"beside decoding sequences the budget is smaller": {
			millis(0, 21), []Request{{Prompt: tokens(10, 0), MaxTokens: 5}, {Prompt: tokens(12, 50), MaxTokens: 2}},
			[][]time.Duration{millis(20, 25, 38, 47, 52), millis(47, 52)},
		},
		"prompts share the budget of a step": {
			millis(0, 0), []Request{{Prompt: tokens(20, 0), MaxTokens: 2}, {Prompt: tokens(20, 50), MaxTokens: 1}},
			[][]time.Duration{millis(64, 64+5+8), millis(64 + 5 + 8)},
		},
		"what is cached is not computed again": {
			millis(0, 100), []Request{{Prompt: tokens(10, 0), MaxTokens: 1}, {Prompt: tokens(10, 0), MaxTokens: 1}},
			[][]time.Duration{millis(20), millis(104)},
		},
	} {
		got := script(newScheduler(model.config(small())), c.at, c.requests)
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestTheYoungestIsPreemptedAndFinishesLater(t *testing.T) {
	config := fixed{token: time.Millisecond, beside: time.Millisecond, decode: time.Millisecond}.config(small())
	config.Blocks, config.Watermark, config.Sharing = 5, 0, false
	got := script(newScheduler(config), millis(0, 0), []Request{{Prompt: tokens(6, 0), MaxTokens: 8}, {Prompt: tokens(6, 50), MaxTokens: 8}})
	if len(got[0]) != 8 || len(got[1]) != 8 {
		t.Fatalf("got %d and %d tokens, want 8 each", len(got[0]), len(got[1]))
	}
	// Both start together; the third blocks of both do not fit.
	if got[0][0] != got[1][0] || got[1][7] <= got[0][7] {
		t.Errorf("first tokens at %v and %v, last at %v and %v", got[0][0], got[1][0], got[0][7], got[1][7])
	}
}

// loop is a closed loop of users in the model's own time, each asking again as
// soon as it is answered: a moment too late for the step that begins then. It
// returns the first-token time and the mean time per token of the requests that
// count, those after the first round, in milliseconds.
func loop(config Config, users, input, output int) (first, token []float64) {
	type asked struct {
		g                 *Generation
		sent, first, last time.Duration
	}
	const moment = time.Nanosecond
	s := newScheduler(config)
	var all []*asked
	arrived, counted := 0, users+perfmodel.Counted
	send := func(at time.Duration) {
		salt := uint32(len(all)+1) << 20
		all = append(all, &asked{g: generation(Request{Prompt: tokens(input, salt), MaxTokens: output, Seed: uint64(salt)}), sent: at})
	}
	send(0)
	for range users - 1 {
		send(moment)
	}
	var now time.Duration
	for left := counted; left > 0; {
		for arrived < len(all) && (all[arrived].sent <= now || s.idle()) {
			now = max(now, all[arrived].sent)
			s.add(all[arrived].g)
			arrived++
		}
		now += s.plan()
		s.finish(time.Time{})
		for i, r := range all[:arrived] {
			produced, ended := r.g.state()
			if produced > 0 && r.first == 0 {
				r.first = now
			}
			if ended && r.last == 0 {
				r.last = now
				send(now + moment)
				if i < counted {
					left--
				}
			}
		}
	}
	for _, r := range all[users:counted] {
		first = append(first, float64(r.first-r.sent+config.Model.Delivery())/1e6)
		token = append(token, float64(r.last-r.first)/1e6/float64(output-1))
	}
	return first, token
}

func median(values []float64) float64 {
	slices.Sort(values)
	return (values[(len(values)-1)/2] + values[len(values)/2]) / 2
}

// The estimate of a load and the scheduler on the same model agree: what the
// offline profiler promises is what the mock engine does.
func TestAClosedLoopReproducesTheEstimate(t *testing.T) {
	catalog := perfmodel.Default()
	for _, c := range []struct {
		model, gpu           string
		engine               perfmodel.Engine
		parallel             perfmodel.Parallel
		users, input, output int
	}{
		{"meta-llama/Llama-3.1-8B-Instruct", "h200_sxm", perfmodel.VLLM, perfmodel.Parallel{TP: 1}, 1, 3000, 150},
		{"meta-llama/Llama-3.1-8B-Instruct", "h200_sxm", perfmodel.VLLM, perfmodel.Parallel{TP: 1}, 2, 3000, 150},
		{"meta-llama/Llama-3.1-8B-Instruct", "h200_sxm", perfmodel.VLLM, perfmodel.Parallel{TP: 1}, 8, 3000, 150},
		{"meta-llama/Llama-3.1-8B-Instruct", "h200_sxm", perfmodel.VLLM, perfmodel.Parallel{TP: 1}, 32, 3000, 150},
		{"meta-llama/Llama-3.1-8B-Instruct", "h200_sxm", perfmodel.VLLM, perfmodel.Parallel{TP: 1}, 64, 3000, 20},
		{"meta-llama/Llama-3.1-70B", "h100_sxm", perfmodel.TRTLLM, perfmodel.Parallel{TP: 8}, 8, 4000, 200},
		{"Qwen/Qwen3-32B", "h100_sxm", perfmodel.SGLang, perfmodel.Parallel{TP: 2}, 16, 2000, 300},
		{"Qwen/Qwen3-32B", "h200_sxm", perfmodel.VLLM, perfmodel.Parallel{TP: 2}, 8, 1500, 150},
		{"Qwen/Qwen3-32B", "h200_sxm", perfmodel.VLLM, perfmodel.Parallel{TP: 2}, 4, 9000, 100},
		{"Qwen/Qwen3-30B-A3B", "h200_sxm", perfmodel.VLLM, perfmodel.Parallel{TP: 2}, 16, 1000, 300},
		{"Qwen/Qwen3-0.6B", "h200_sxm", perfmodel.VLLM, perfmodel.Parallel{TP: 1}, 8, 512, 64},
	} {
		model, err := catalog.Model(c.model)
		if err != nil {
			t.Fatal(err)
		}
		gpu, err := catalog.GPU(c.gpu)
		if err != nil {
			t.Fatal(err)
		}
		estimator, err := catalog.Estimator(perfmodel.Setup{Model: model, GPU: gpu, Engine: c.engine, Parallel: c.parallel})
		if err != nil {
			t.Fatal(err)
		}
		config := Config{Blocks: 100000, BlockSize: 16, MaxSequences: 256, MaxBatchedTokens: 8192, BesideDecode: c.engine.BesideDecode(8192), Watermark: 0.01, Chunked: true, Sharing: true, Model: timing.Estimate{Estimator: estimator}}
		first, token := loop(config, c.users, c.input, c.output)
		want, err := estimator.ClosedLoop(perfmodel.Load{Concurrency: c.users, Input: c.input, Output: c.output})
		if err != nil {
			t.Fatal(err)
		}
		check := func(what string, got float64, estimate perfmodel.Estimate) {
			want := float64(estimate.Value) / 1e6
			t.Logf("%s %s, %d users, %d+%d tokens: %s %.2f ms, estimated %.2f", c.model, c.engine, c.users, c.input, c.output, what, got, want)
			if math.Abs(got/want-1) > 0.01 {
				t.Errorf("%s %s, %d users, %d+%d tokens: %s %.2f ms, estimated %.2f", c.model, c.engine, c.users, c.input, c.output, what, got, want)
			}
		}
		check("first token", median(first), want.FirstToken)
		check("time per token", median(token), want.PerToken)
	}
}
