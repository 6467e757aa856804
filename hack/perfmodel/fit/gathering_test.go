package fit

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dynamo-operator/dynamo-operator/internal/core/perfmodel"
)

func TestEnginesGatherPromptsAsTheyWereTold(t *testing.T) {
	const public, other = "db-dump/2026-04-27; config_id=1; silicon_concurrency=", "a/sglang/0.5.1.post1/x.csv; silicon_concurrency="
	for name, c := range map[string]struct {
		row  string
		want gathering
	}{
		"SGLang, few users":               {public + "8,sglang,deepseek-ai/DeepSeek-R1,b200_sxm,agg,1024,1024,nvfp4,nvfp4,8,8,1,1,8,1", gathering{Every: 10}},
		"SGLang, more users":              {public + "16,sglang,Qwen/Qwen3.5-397B-A17B,b300_sxm,agg,1024,1024,,,16,8,1,1,8,1", gathering{Every: 30}},
		"SGLang with less room":           {public + "16,sglang,deepseek-ai/DeepSeek-R1,b200_sxm,agg,8192,1024,fp8,fp8_block,16,4,1,1,4,1", gathering{Every: 10}},
		"SGLang by the script of a day":   {"db-dump/2026-04-27; config_id=716; silicon_concurrency=64,sglang,Qwen/Qwen3.5-397B-A17B,b300_sxm,agg,1024,1024,fp8,fp8_block,64,4,1,1,4,1", gathering{Every: 10}},
		"SGLang on Hopper":                {public + "16,sglang,deepseek-ai/DeepSeek-R1,h200_sxm,agg,1024,1024,fp8,fp8_block,16,8,1,1,8,1", gathering{}},
		"SGLang with another model":       {public + "16,sglang,zhipuai/GLM-5,b200_sxm,agg,1024,1024,fp8,fp8_block,16,8,1,1,8,1", gathering{}},
		"SGLang of another source":        {other + "16,sglang,deepseek-ai/DeepSeek-R1,b200_sxm,agg,1024,1024,fp8,fp8_block,16,8,1,1,8,1", gathering{}},
		"TensorRT-LLM, ranks":             {public + "256,trtllm,deepseek-ai/DeepSeek-R1,b200_sxm,agg,1024,1024,nvfp4,nvfp4,32,1,1,8,1,8", gathering{Steps: 60, Balanced: true}},
		"TensorRT-LLM, ranks, its own":    {public + "64,trtllm,openai/gpt-oss-120b,b200_sxm,agg,1024,1024,nvfp4,nvfp4,16,1,1,4,4,1", gathering{Steps: 50, More: 10, Balanced: true}},
		"TensorRT-LLM, equal lengths":     {public + "4,trtllm,meta-llama/Llama-3.1-70B,b200_sxm,agg,1024,1024,fp8,fp8,4,2,1,1,2,1", gathering{Steps: 20}},
		"TensorRT-LLM, longer answers":    {public + "4,trtllm,meta-llama/Llama-3.1-70B,b200_sxm,agg,1024,8192,fp8,fp8,4,2,1,1,2,1", gathering{}},
		"TensorRT-LLM, all GPUs":          {public + "4,trtllm,meta-llama/Llama-3.1-70B,b200_sxm,agg,1024,1024,fp8,fp8,4,8,1,1,8,1", gathering{}},
		"TensorRT-LLM, batches delayed":   {public + "64,trtllm,deepseek-ai/DeepSeek-R1,b200_sxm,agg,1024,1024,fp8,fp8,64,8,1,1,8,1", gathering{Steps: 40}},
		"TensorRT-LLM, too few to delay":  {public + "32,trtllm,deepseek-ai/DeepSeek-R1,b200_sxm,agg,1024,1024,fp8,fp8,32,8,1,1,8,1", gathering{}},
		"vLLM computes whatever is there": {public + "64,vllm,meta-llama/Llama-3.1-70B,b200_sxm,agg,1024,1024,fp8,fp8,64,2,1,1,2,1", gathering{}},
	} {
		rows, left, err := Read(strings.NewReader(head+"a,"+c.row+",500,9\n"), perfmodel.Default())
		if err != nil || len(rows) != 1 {
			t.Errorf("%s: %d rows, left out %v, error %v", name, len(rows), left, err)
			continue
		}
		if diff := cmp.Diff(c.want, rows[0].Gathering); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// The formula is held against prompts that come at random and are gathered step by step.
func TestPromptsWaitAsLongAsTheyAreGathered(t *testing.T) {
	for name, c := range map[string]struct {
		gathering
		rate  float64 // prompts a step of a rank
		ranks int
	}{
		"looks now and then":                 {gathering{Every: 30}, 0.05, 1},
		"one prompt at a time":               {gathering{Steps: 20}, 0.004, 1},
		"several gather":                     {gathering{Steps: 20}, 0.2, 1},
		"ranks that fill before it is over":  {gathering{Steps: 60, Balanced: true}, 0.15, 4},
		"ranks that do not":                  {gathering{Steps: 60, Balanced: true}, 0.002, 8},
		"ranks that fill, and a few steps":   {gathering{Steps: 60, More: 10, Balanced: true}, 0.2, 4},
		"no rank waits longer than it may":   {gathering{Steps: 50, More: 10, Balanced: true}, 0.001, 2},
		"prompts that come all of the time ": {gathering{Steps: 40}, 2, 1},
	} {
		wait, others := c.wait(c.rate, c.ranks)
		wantWait, wantOthers := gather(c.gathering, c.rate, c.ranks)
		// Prompts come during steps, and are seen after them.
		if math.Abs(wait-wantWait) > 1+0.15*wantWait || math.Abs(others-wantOthers) > 0.1+0.15*wantOthers {
			t.Errorf("%s: waits for %.1f steps with %.2f others, want %.1f and %.2f", name, wait, others, wantWait, wantOthers)
		}
	}
}

// gather plays steps, in each of which prompts come at random, and says for how many a
// prompt waits and how many others of its rank are computed with it.
func gather(g gathering, rate float64, ranks int) (wait, others float64) {
	lots := rand.New(rand.NewPCG(1, 2))
	var here [][]int // steps at which prompts came, by rank
	empty := func() { here = make([][]int, ranks) }
	empty()
	prompts, since, full := 0, -1, -1
	for step := range 400000 {
		for r := range here {
			for left := lots.ExpFloat64() / rate; left < 1; left += lots.ExpFloat64() / rate {
				here[r] = append(here[r], step)
				if since < 0 {
					since = step
				}
			}
		}
		each := true
		for _, h := range here {
			each = each && len(h) > 0
		}
		if each && full < 0 {
			full = step
		}
		ready := g.Every > 0 && step%g.Every == 0
		if g.Every == 0 && since >= 0 {
			ready = step-since >= g.Steps || g.Balanced && full >= 0 && step-full >= g.More
		}
		if !ready {
			continue
		}
		for _, h := range here {
			for _, came := range h {
				prompts++
				wait += float64(step - came)
				others += float64(len(h) - 1)
			}
		}
		empty()
		since, full = -1, -1
	}
	return wait / float64(prompts), others / float64(prompts)
}

// A first token comes later by what was waited for, and tokens after it as before.
func TestAFirstTokenComesLaterByWhatIsGathered(t *testing.T) {
	rows, left, err := Read(strings.NewReader(head+"a,db-dump/2026-04-27; config_id=1; silicon_concurrency=4,trtllm,meta-llama/Llama-3.1-70B,b200_sxm,agg,1024,1024,fp8,fp8,4,1,1,1,1,1,383,14.6\n"), perfmodel.Default())
	if err != nil || len(rows) != 1 {
		t.Fatal(rows, left, err)
	}
	r, k := rows[0], Prior()[4]
	with := r.Predict(k)
	r.Gathering = gathering{}
	without := r.Predict(k)
	if steps := (with.First - without.First) / with.Token; with.Token != without.Token || steps < 0.7*20 || steps > 20 {
		t.Errorf("first tokens %.1f steps later, tokens after %.2f instead of %.2f ms", steps, with.Token, without.Token)
	}
}
