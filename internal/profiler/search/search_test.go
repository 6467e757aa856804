package search

import (
	"errors"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dynamo-operator/dynamo-operator/internal/core/perfmodel"
	"github.com/dynamo-operator/dynamo-operator/internal/profiler/config"
)

var requests = flag.Int("requests", 2000, "random requests to try")

var catalog = perfmodel.Default()

// problem is a model on a GPU, with everything else as a request gets it.
func problem(t testing.TB, model, gpu string, change func(*Problem)) Problem {
	t.Helper()
	m, err := catalog.Model(model)
	if err != nil {
		t.Fatal(err)
	}
	g, err := catalog.GPU(gpu)
	if err != nil {
		t.Fatal(err)
	}
	p := Problem{
		Catalog: catalog, Model: m, GPU: g, Engine: perfmodel.VLLM, MinGPUs: 1, MaxGPUs: 8, PerNode: 8, PricePerHour: 4,
		Goal: config.SLA{ISL: 3000, OSL: 500, TTFT: 2000, ITL: 30},
	}
	if change != nil {
		change(&p)
	}
	return p
}

func TestSolveMeetsCommonGoals(t *testing.T) {
	for name, p := range map[string]Problem{
		"a small dense model":  problem(t, "Qwen/Qwen3-0.6B", "h200_sxm", nil),
		"a large dense model":  problem(t, "meta-llama/Llama-3.1-70B", "h100_sxm", nil),
		"a mixture":            problem(t, "Qwen/Qwen3-30B-A3B", "h100_sxm", nil),
		"a large mixture":      problem(t, "deepseek-ai/DeepSeek-V3", "h200_sxm", func(p *Problem) { p.Goal.ITL = 60; p.MaxGPUs = 16 }),
		"disaggregated alone":  problem(t, "Qwen/Qwen3-32B", "h200_sxm", func(p *Problem) { p.Modes = []config.Mode{config.Disaggregated} }),
		"aggregated alone":     problem(t, "Qwen/Qwen3-32B", "h200_sxm", func(p *Problem) { p.Modes = []config.Mode{config.Aggregated} }),
		"TensorRT-LLM":         problem(t, "Qwen/Qwen3-32B", "h200_sxm", func(p *Problem) { p.Engine = perfmodel.TRTLLM }),
		"SGLang":               problem(t, "Qwen/Qwen3-235B-A22B-FP8", "h200_sxm", func(p *Problem) { p.Engine = perfmodel.SGLang }),
		"a rate":               problem(t, "Qwen/Qwen3-32B", "h200_sxm", func(p *Problem) { p.Goal.RequestRate = 20 }),
		"answers of one token": problem(t, "Qwen/Qwen3-32B", "h200_sxm", func(p *Problem) { p.Goal.OSL = 1 }),
		"a budget":             problem(t, "Qwen/Qwen3-32B", "h200_sxm", func(p *Problem) { p.Budget = 16 }),
	} {
		t.Run(name, func(t *testing.T) {
			o, err := Solve(p)
			if err != nil {
				t.Fatal(err)
			}
			best := o.Best()
			t.Logf("%s: ttft %.0f, itl %.1f ms, %.0f tokens/s/GPU, %.3g $/M, %d GPUs, %.3g/s, concurrency %d; %d candidates, %d contenders",
				best, best.TTFT.Value, best.ITL.Value, best.TokensPerGPU, best.CostPerMillion, best.GPUs, best.Rate, best.Decode.Concurrency, len(o.Candidates), len(o.Contenders(1000)))
			if !best.Met() {
				t.Errorf("missed: %v; %v", best.Misses, o.Remedies)
			}
			for _, c := range o.Candidates {
				if math.IsInf(c.Rate, 0) || math.IsNaN(c.Rate) || c.Rate <= 0 || c.TokensPerGPU <= 0 {
					t.Errorf("%s: rate %g", c, c.Rate)
				}
			}
			if got := o.Contenders(3); len(got) == 0 || got[0].Name != best.Name {
				t.Errorf("the chosen one does not lead the contenders: %v", got)
			}
			if len(p.Modes) == 1 && best.Mode != p.Modes[0] {
				t.Errorf("chose %s", best.Mode)
			}
		})
	}
}

func TestAGoalThatCannotBeMetSaysByHowMuchAndWhatWould(t *testing.T) {
	for name, test := range map[string]struct {
		problem Problem
		miss    string
		remedy  string
	}{
		"a first token faster than the prompt can be read": {
			problem(t, "meta-llama/Llama-3.1-70B", "h100_sxm", func(p *Problem) { p.Goal.TTFT = 40 }), "ttft", "prompts of up to",
		},
		"tokens faster than memory can be read": {
			problem(t, "meta-llama/Llama-3.1-70B", "a100_sxm", func(p *Problem) { p.Goal.ITL = 15; p.MaxGPUs = 4 }), "itl", "engines of up to ",
		},
		"a GPU too slow": {
			problem(t, "Qwen/Qwen3-32B", "l40s", func(p *Problem) { p.Goal.ITL = 15; p.MaxGPUs = 4 }), "itl", "h200_sxm GPUs would meet it",
		},
		"a rate beyond the budget": {
			problem(t, "Qwen/Qwen3-32B", "h100_sxm", func(p *Problem) { p.Goal.RequestRate = 100; p.Budget = 8 }), "requestRate", "a budget of ",
		},
	} {
		t.Run(name, func(t *testing.T) {
			o, err := Solve(test.problem)
			if err != nil {
				t.Fatal(err)
			}
			misses, remedies := o.Best().Missed(), strings.Join(o.Remedies, "; ")
			t.Log(misses, "|", remedies)
			if !strings.Contains(misses, test.miss+" ") || !strings.Contains(misses, "missed by") {
				t.Errorf("misses: %s", misses)
			}
			if !strings.Contains(remedies, test.remedy) {
				t.Errorf("remedies: %s", remedies)
			}
		})
	}
}

func TestWhatCannotRunSaysWhy(t *testing.T) {
	for name, test := range map[string]struct {
		problem Problem
		reason  string
	}{
		"weights larger than the GPUs": {problem(t, "deepseek-ai/DeepSeek-V3", "h100_sxm", func(p *Problem) { p.MaxGPUs = 4 }), "leave no room"},
		"a request beyond the context": {problem(t, "Qwen/Qwen3-32B", "h100_sxm", func(p *Problem) { p.Goal.ISL = 1_000_000 }), "context"},
		"a budget below one engine": {
			problem(t, "meta-llama/Llama-3.1-70B", "h100_sxm", func(p *Problem) { p.MinGPUs, p.Budget = 4, 2 }), "the budget is 2",
		},
		"bounds between which the model does not divide": {problem(t, "Qwen/Qwen3-32B", "h100_sxm", func(p *Problem) { p.MinGPUs, p.MaxGPUs = 5, 7 }), "does not divide"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Solve(test.problem)
			infeasible, ok := errors.AsType[*InfeasibleError](err)
			if !ok || !strings.Contains(infeasible.Reason, test.reason) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestLayoutsOverOtherNumbersThanPowersOfTwo(t *testing.T) {
	for name, test := range map[string]struct {
		model  string
		engine perfmodel.Engine
		gpus   int
		want   []string
	}{
		"heads and layers that do not divide": {"Qwen/Qwen3-32B", perfmodel.VLLM, 6, nil},
		"layers that divide":                  {"meta-llama/Llama-3.1-70B", perfmodel.VLLM, 5, []string{"TP1-PP5"}},
		"layers that divide, and heads":       {"Qwen/Qwen2.5-14B", perfmodel.VLLM, 6, []string{"TP2-PP3", "TP1-PP6"}},
		"experts that divide":                 {"moonshotai/Kimi-K2.5", perfmodel.VLLM, 6, []string{"DEP6-TP2", "DEP6"}},
		"every GPU an attention rank":         {"moonshotai/Kimi-K2.5", perfmodel.TRTLLM, 6, []string{"DEP6"}},
		"experts that do not divide":          {"deepseek-ai/DeepSeek-V3", perfmodel.VLLM, 6, nil},
	} {
		t.Run(name, func(t *testing.T) {
			m, err := catalog.Model(test.model)
			if test.model == "Qwen/Qwen2.5-14B" { // 48 layers, which the tables have of no dense model
				m, err = perfmodel.Model{Layers: 48, Hidden: 5120, Heads: 40, KVHeads: 8, HeadSize: 128, FFN: 13824}, nil
			}
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, l := range layouts(test.gpus, m, test.engine) {
				got = append(got, l.String())
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Between pools a request takes more than a first token and a transfer of bytes.
func TestPairsCountWhatChangingPoolsTakes(t *testing.T) {
	apart := func(p *Problem) { p.Modes = []config.Mode{config.Disaggregated} }
	for name, arrival := range map[string]perfmodel.Arrival{"played": "", "as requests come": perfmodel.Staggered} {
		t.Run(name, func(t *testing.T) {
			p := problem(t, "Qwen/Qwen3-32B", "h200_sxm", apart)
			p.Goal.Arrival = arrival
			o, err := Solve(p)
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range o.Candidates {
				prefill, _, _ := p.engine(c.Prefill.Layout)
				decode, _, _ := p.engine(c.Decode.Layout)
				k := decode.Constants()
				least := prefill.FirstToken(p.Goal.ISL, 0).Value.Seconds() + k.Handover*1e-6
				if arrival != "" {
					least += (k.Busy + k.BusyLayer*float64(p.Model.Layers)) * 1e-6 * (1 - float64(c.Decode.Layout.Ranks())/float64(c.Decode.Concurrency))
				}
				if got := c.TTFT.Value / 1e3; got < least {
					t.Errorf("%s: first token after %.3f s, prompt and change take %.3f", c, got, least)
				}
			}
		})
	}
}

func TestNothingOnTheFrontIsBeaten(t *testing.T) {
	o, err := Solve(problem(t, "Qwen/Qwen3-235B-A22B-FP8", "h200_sxm", nil))
	if err != nil {
		t.Fatal(err)
	}
	front := o.Front()
	if len(front) == 0 {
		t.Fatal("empty")
	}
	for _, f := range front {
		for _, c := range o.Candidates {
			if dominates(c, f) && !dominates(f, c) {
				t.Errorf("%s is beaten by %s", f.Name, c.Name)
			}
		}
	}
}

func TestAMeasurementCorrectsTheRanking(t *testing.T) {
	o, err := Solve(problem(t, "Qwen/Qwen3-32B", "h200_sxm", nil))
	if err != nil {
		t.Fatal(err)
	}
	first, second := o.Candidates[0], o.Candidates[1]
	ttft, itl, ok := o.Problem.Expect(second, 1)
	if !ok {
		t.Fatal("no expectation")
	}
	as := func(f float64) Measurement {
		return Measurement{TTFT: Band{ttft * f, ttft * f, ttft * f}, ITL: Band{itl * f, itl * f, itl * f}, ModelTTFT: ttft, ModelITL: itl}
	}
	o.Correct(second.Name, as(1))
	if o.Best().Name != second.Name || !o.Best().Measured {
		t.Errorf("measured as estimated, %s is not preferred to %s", second.Name, o.Best().Name)
	}
	o.Correct(second.Name, as(100))
	if o.Best().Name != first.Name {
		t.Errorf("measured as a hundred times slower, but chosen: %s", o.Best())
	}
}

// random draws a request of any kind a user could write.
func random(chance *rand.Rand) Problem {
	pick := func(n ...int) int { return n[chance.IntN(len(n))] }
	p := Problem{
		Catalog: catalog, Model: catalog.Models[chance.IntN(len(catalog.Models))], GPU: catalog.GPUs[chance.IntN(len(catalog.GPUs))],
		Engine:  []perfmodel.Engine{perfmodel.VLLM, perfmodel.SGLang, perfmodel.TRTLLM}[chance.IntN(3)],
		MinGPUs: pick(1, 1, 1, 2, 3, 4), MaxGPUs: pick(1, 2, 4, 8, 8, 16, 32), PerNode: pick(1, 4, 8, 8, 8), PricePerHour: 4,
		Goal: config.SLA{
			ISL: 1 + chance.IntN(40000), OSL: 1 + chance.IntN(4000),
			TTFT: 10 + chance.Float64()*5000, ITL: 1 + chance.Float64()*100,
		},
	}
	if chance.IntN(2) == 0 {
		p.Goal.RequestRate = chance.Float64() * 100
	}
	if chance.IntN(2) == 0 {
		p.Budget = 1 + chance.IntN(128)
	}
	if n := chance.IntN(3); n < 2 {
		p.Modes = []config.Mode{[]config.Mode{config.Aggregated, config.Disaggregated}[n]}
	}
	return p
}

// check recomputes, from the model's sizes alone, whether a worker can run.
func check(p Problem, w Worker) error {
	l := w.Layout.Parallel
	n := w.Layout.GPUs()
	m := p.Model
	switch {
	case w.Replicas < 1:
		return fmt.Errorf("%d replicas", w.Replicas)
	case n != l.TP*l.PP*l.DP || n < p.MinGPUs || n > p.MaxGPUs:
		return fmt.Errorf("%d GPUs, allowed %d to %d", n, p.MinGPUs, p.MaxGPUs)
	case n > p.PerNode && n%p.PerNode != 0:
		return fmt.Errorf("%d GPUs on nodes of %d", n, p.PerNode)
	case m.Heads%l.TP != 0:
		return fmt.Errorf("%d heads over %d", m.Heads, l.TP)
	case m.Latent == nil && m.KVHeads%l.TP != 0 && l.TP%m.KVHeads != 0:
		return fmt.Errorf("%d key-value heads over %d", m.KVHeads, l.TP)
	case m.Experts == nil && m.FFN%l.TP != 0:
		return fmt.Errorf("width %d over %d", m.FFN, l.TP)
	case m.Experts == nil && l.EP > 1, m.Experts != nil && m.Experts.Count%l.EP != 0:
		return fmt.Errorf("experts over %d", l.EP)
	}
	e, err := p.Catalog.Estimator(perfmodel.Setup{Model: m, GPU: p.GPU, Engine: p.Engine, Parallel: l})
	if err != nil {
		return err
	}
	memory := e.Memory()
	tokens := float64(w.Concurrency*(p.Goal.ISL+p.Goal.OSL)) / float64(l.DP)
	need := memory.Weights + memory.Activations + tokens*memory.CachePerToken
	if limit := p.GPU.Memory * (1 << 30); need > limit {
		return fmt.Errorf("%.1f GiB on a GPU of %.1f", need/(1<<30), p.GPU.Memory)
	}
	return nil
}

// holds plays the load of a chosen candidate whose engines do both halves: what
// it promises must be what comes out.
func holds(p Problem, c Candidate) error {
	if c.Prefill != nil {
		return nil
	}
	e, err := p.Catalog.Estimator(perfmodel.Setup{Model: p.Model, GPU: p.GPU, Engine: p.Engine, Parallel: c.Decode.Layout.Parallel})
	if err != nil {
		return err
	}
	s, err := e.ClosedLoop(p.load(c.Decode.Concurrency))
	if err != nil {
		return err
	}
	if first, token := band(s.FirstToken), band(s.PerToken); first != c.TTFT || token != c.ITL || first.Value > p.Goal.TTFT || token.Value > p.Goal.ITL {
		return fmt.Errorf("promised ttft %.4g and itl %.4g ms, played %.4g and %.4g, wanted %.4g and %.4g", c.TTFT.Value, c.ITL.Value, first.Value, token.Value, p.Goal.TTFT, p.Goal.ITL)
	}
	return nil
}

func TestRandomRequestsNeverViolateMemoryGPUsOrDivisibility(t *testing.T) {
	n := *requests
	if testing.Short() {
		n = min(n, 200)
	}
	chance := rand.New(rand.NewPCG(6, 2026))
	solved, met := 0, 0
	for i := range n {
		p := random(chance)
		o, err := Solve(p)
		if err != nil {
			if _, ok := errors.AsType[*InfeasibleError](err); !ok {
				t.Fatalf("request %d: %v", i, err)
			}
			continue
		}
		solved++
		if o.Best().Met() {
			met++
			if err := holds(p, o.Best()); err != nil {
				t.Fatalf("request %d: %s on %s %s: %s: %v", i, p.Model.Name, p.GPU.Name, p.Engine, o.Best(), err)
			}
		}
		checked := map[Worker]bool{}
		for _, c := range o.Candidates {
			workers := []Worker{c.Decode}
			if c.Prefill != nil {
				workers = append(workers, *c.Prefill)
			}
			total := 0
			for _, w := range workers {
				total += w.GPUs()
				if checked[w] {
					continue
				}
				checked[w] = true
				if err := check(p, w); err != nil {
					t.Fatalf("request %d: %s on %s %s: %s: %v", i, p.Model.Name, p.GPU.Name, p.Engine, c, err)
				}
			}
			if total != c.GPUs || p.Budget > 0 && total > p.Budget {
				t.Fatalf("request %d: %s: %d GPUs counted as %d, budget %d", i, c, total, c.GPUs, p.Budget)
			}
		}
	}
	t.Logf("%d requests: %d can run, %d meet their goal", n, solved, met)
	if solved < n/3 || met < n/20 {
		t.Errorf("only %d of %d can run and %d meet their goal: the requests test too little", solved, n, met)
	}
}
