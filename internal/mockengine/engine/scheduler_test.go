package engine

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dynamo-operator/dynamo-operator/internal/mockengine/timing"
	"github.com/dynamo-operator/dynamo-operator/internal/perfmodel"
)

// fixed is a model whose steps take a known time.
type fixed struct{ token, beside, decode time.Duration }

func (f fixed) Prefill(fresh, _, decoding int) time.Duration {
	if decoding > 0 {
		return f.beside * time.Duration(fresh)
	}
	return f.token * time.Duration(fresh)
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

// loop is a closed loop of users, each sending a request when the one before has
// ended, in the model's own time. It returns each request's first-token time and
// mean time per token.
func loop(config Config, users, requests, input, output int) (first, token []float64) {
	s := newScheduler(config)
	type pending struct {
		at, sent time.Duration
		g        *Generation
	}
	var coming []pending
	var running []pending
	seen := map[*Generation]time.Duration{}
	salt := uint32(0)
	send := func(now time.Duration) {
		salt += 1 << 20
		request := Request{Prompt: tokens(input, salt), MaxTokens: output, Seed: uint64(salt)}
		coming = append(coming, pending{now, now, generation(request)})
	}
	for range users {
		send(0)
	}
	var now time.Duration
	for sent := users; len(coming)+len(running) > 0; {
		slices.SortStableFunc(coming, func(a, b pending) int { return int(a.at - b.at) })
		for len(coming) > 0 && (coming[0].at <= now || s.idle()) {
			now = max(now, coming[0].at)
			s.add(coming[0].g)
			running, coming = append(running, coming[0]), coming[1:]
		}
		now += s.plan()
		s.finish(time.Time{})
		running = slices.DeleteFunc(running, func(p pending) bool {
			produced, ended := p.g.state()
			if produced > 0 && seen[p.g] == 0 {
				seen[p.g] = now + config.Model.Delivery()
				first = append(first, float64(seen[p.g]-p.sent)/1e6)
			}
			if ended {
				token = append(token, float64(now-seen[p.g])/1e6/float64(output-1))
				if sent < requests {
					sent++
					send(now)
				}
			}
			return ended
		})
	}
	return first, token
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
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
		{"meta-llama/Llama-3.1-8B-Instruct", "h200_sxm", perfmodel.VLLM, perfmodel.Parallel{TP: 1}, 8, 3000, 150},
		{"meta-llama/Llama-3.1-8B-Instruct", "h200_sxm", perfmodel.VLLM, perfmodel.Parallel{TP: 1}, 32, 3000, 150},
		{"meta-llama/Llama-3.1-70B", "h100_sxm", perfmodel.TRTLLM, perfmodel.Parallel{TP: 8}, 8, 4000, 200},
		{"Qwen/Qwen3-32B", "h100_sxm", perfmodel.SGLang, perfmodel.Parallel{TP: 2}, 16, 2000, 300},
		{"Qwen/Qwen3-32B", "h200_sxm", perfmodel.VLLM, perfmodel.Parallel{TP: 2}, 8, 1500, 150},
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
		config := Config{Blocks: 100000, BlockSize: 16, MaxSequences: 256, MaxBatchedTokens: 8192, Watermark: 0.01, Chunked: true, Sharing: true, Model: timing.Estimate{Estimator: estimator}}
		first, token := loop(config, c.users, max(50, 6*c.users), c.input, c.output)
		l := perfmodel.Load{Concurrency: c.users, Input: c.input, Output: c.output}
		want, err := estimator.Aggregated(l)
		if err != nil {
			t.Fatal(err)
		}
		wantFirst, wantToken := float64(want.FirstToken.Value)/1e6, float64(want.PerToken.Value)/1e6
		t.Logf("%s %s %d users, %d+%d: first %.1f ms, estimated %.1f; token %.2f ms, estimated %.2f", c.model, c.engine, c.users, c.input, c.output, median(first), wantFirst, median(token), wantToken)
		near := func(got, want float64) bool { return math.Abs(got-want) <= max(2, 0.05*want) }
		if !near(median(token), wantToken) {
			t.Errorf("%s, %d users: %.2f ms per token, estimated %.2f", c.model, c.users, median(token), wantToken)
		}
		if c.users == 1 && !near(median(first), wantFirst) {
			t.Errorf("%s: first token after %.1f ms, estimated %.1f", c.model, median(first), wantFirst)
		}
	}
}
