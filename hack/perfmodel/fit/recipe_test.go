package fit

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dynamo-operator/dynamo-operator/internal/core/perfmodel"
)

func TestPrefillWorkersAreThoseOfTheirRecipes(t *testing.T) {
	type told struct {
		Tokens, Places int
		Fallback       bool
	}
	for name, c := range map[string]struct {
		row  string
		want told
	}{
		"ranks on GB300":                 {"sglang,deepseek-ai/DeepSeek-V3,gb300,disagg,1024,1024,fp8,fp8,2,1,8,8,32,1,1,32,32", told{Tokens: 16384}},
		"one worker of ranks on B200":    {"sglang,deepseek-ai/DeepSeek-V3,b200_sxm,disagg,8192,1024,nvfp4,nvfp4,1,1,4,4,128,1,8,1,8", told{Tokens: 8192}},
		"several of them":                {"sglang,deepseek-ai/DeepSeek-V3,b200_sxm,disagg,8192,1024,nvfp4,nvfp4,7,1,4,4,64,2,1,8,8", told{Tokens: 16384}},
		"8 bits on B200":                 {"sglang,deepseek-ai/DeepSeek-V3,b200_sxm,disagg,8192,1024,fp8,fp8,1,1,8,1,20,1,1,8,8", told{Tokens: 8192, Places: 1}},
		"whole experts of 8 bits":        {"sglang,deepseek-ai/DeepSeek-V3,b200_sxm,disagg,8192,1024,fp8,fp8,1,1,8,8,16,1,1,8,8", told{Tokens: 8192, Fallback: true}},
		"without ranks":                  {"sglang,deepseek-ai/DeepSeek-V3,b200_sxm,disagg,8192,1024,fp8,fp8,1,8,1,8,64,1,8,1,8", told{Tokens: 32768, Fallback: true}},
		"long prompts of 4 bits":         {"sglang,deepseek-ai/DeepSeek-V3,gb300,disagg,8192,1024,nvfp4,nvfp4,1,4,1,1,4,4,4,1,1", told{Tokens: 24576}},
		"short prompts of 4 bits":        {"sglang,deepseek-ai/DeepSeek-V3,gb300,disagg,1024,1024,nvfp4,nvfp4,1,4,1,1,4,2,4,1,1", told{Tokens: 8192}},
		"long prompts of 8 bits":         {"sglang,deepseek-ai/DeepSeek-V3,gb300,disagg,8192,1024,fp8,fp8,1,4,1,1,4,1,4,1,1", told{Tokens: 32768, Fallback: true}},
		"another GPU":                    {"sglang,deepseek-ai/DeepSeek-V3,h200_sxm,disagg,8192,1024,fp8,fp8,1,1,8,1,20,1,1,8,8", told{Tokens: 8192}},
		"another engine has what it has": {"trtllm,deepseek-ai/DeepSeek-V3,b200_sxm,disagg,8192,1024,fp8,fp8,1,1,8,1,4,4,8,1,8", told{Tokens: 8192}},
	} {
		row := only(t, name, pools+"a,x,"+c.row)
		s := row.Pools.Prefill.Setup()
		if diff := cmp.Diff(c.want, told{s.MaxBatchedTokens, s.MaxSequences, s.Fallback}); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		s = row.Pools.Decode.Setup()
		if diff := cmp.Diff(told{Tokens: perfmodel.DefaultBatchedTokens}, told{s.MaxBatchedTokens, s.MaxSequences, s.Fallback}); diff != "" {
			t.Errorf("%s, decode worker: %s", name, diff)
		}
	}
}

func TestAggregatedEnginesHaveTheKernelsOfTheirScripts(t *testing.T) {
	const public, other = "db-dump/2026-04-27; config_id=1; silicon_concurrency=8", "a/sglang/0.5.1.post1/x.csv; silicon_concurrency=8"
	for name, c := range map[string]struct {
		row  string
		want bool
	}{
		"DeepSeek in 8 bits on Blackwell": {public + ",sglang,deepseek-ai/DeepSeek-R1,b200_sxm,agg,1024,1024,fp8,fp8_block,8,8,1,1,8,1", true},
		"in 4 bits":                       {public + ",sglang,deepseek-ai/DeepSeek-R1,b200_sxm,agg,1024,1024,nvfp4,nvfp4,8,8,1,1,8,1", false},
		"on Hopper":                       {public + ",sglang,deepseek-ai/DeepSeek-R1,h200_sxm,agg,1024,1024,fp8,fp8_block,8,8,1,1,8,1", false},
		"another model":                   {public + ",sglang,zhipuai/GLM-5,b200_sxm,agg,1024,1024,fp8,fp8_block,8,8,1,1,8,1", false},
		"another engine":                  {public + ",trtllm,deepseek-ai/DeepSeek-R1,b200_sxm,agg,1024,1024,fp8,fp8_block,8,8,1,1,8,1", false},
		"another source":                  {other + ",sglang,deepseek-ai/DeepSeek-R1,b200_sxm,agg,1024,1024,fp8,fp8_block,8,8,1,1,8,1", false},
	} {
		if got := only(t, name, head+"a,"+c.row).Estimator.Setup().Fallback; got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// A decode worker that looks every ten steps makes room five steps later in the mean, but
// for one user, for whom it has nothing else to do.
func TestDecodeWorkersLookAsOftenAsTheyWereTold(t *testing.T) {
	for name, c := range map[string]struct {
		row  string
		want float64 // steps
	}{
		"4 bits on GB300":    {"sglang,deepseek-ai/DeepSeek-V3,gb300,disagg,1024,1024,nvfp4,nvfp4,1,4,1,1,4,2,4,1,1", 5 * 7. / 8},
		"one user":           {"sglang,deepseek-ai/DeepSeek-V3,gb300,disagg,1024,1024,nvfp4,nvfp4,1,4,1,1,1,1,4,1,1", 0},
		"on attention ranks": {"sglang,deepseek-ai/DeepSeek-V3,gb300,disagg,1024,1024,nvfp4,nvfp4,4,1,4,4,16,1,1,32,32", 0},
		"8 bits":             {"sglang,deepseek-ai/DeepSeek-V3,gb300,disagg,1024,1024,fp8,fp8,1,4,1,1,4,2,4,1,1", 0},
		"B200":               {"sglang,deepseek-ai/DeepSeek-V3,b200_sxm,disagg,1024,1024,nvfp4,nvfp4,1,4,1,1,4,2,4,1,1", 0},
	} {
		row := only(t, name, pools+"a,x,"+c.row)
		told := row.Predict(row.Estimator.Constants())
		row.Gathering = gathering{}
		if got := (told.First - row.Predict(row.Estimator.Constants()).First) / told.Token; math.Abs(got-c.want) > 1e-6 {
			t.Errorf("%s: first tokens come %.3f steps later, want %.3f", name, got, c.want)
		}
	}
}

// only is the row of a table that has one.
func only(t *testing.T, name, table string) Row {
	t.Helper()
	rows, left, err := Read(strings.NewReader(table+",100,9\n"), perfmodel.Default())
	if err != nil || len(rows) != 1 {
		t.Fatalf("%s: %d rows, left out %v, error %v", name, len(rows), left, err)
	}
	return rows[0]
}
