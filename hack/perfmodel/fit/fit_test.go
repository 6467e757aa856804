package fit

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dynamo-operator/dynamo-operator/internal/core/perfmodel"
)

const head = "id,silicon_data_source,backend,model_path,system,mode,isl,osl,gemm_quant_mode,moe_quant_mode,batch_size,tp_size,pp_size,attention_dp_size,moe_tp_size,moe_ep_size,silicon_ttft_ms,silicon_tpot_ms\n"

func TestRowsAreReadAsTheyWereRun(t *testing.T) {
	for name, c := range map[string]struct {
		row   string
		want  perfmodel.Parallel
		batch int
	}{
		"tensor parallel":                        {"a,x,vllm,Qwen/Qwen3-32B,h100_sxm,agg,1024,512,,,16,4,1,,1,1,100,9", perfmodel.Parallel{TP: 4, PP: 1, DP: 1, EP: 1}, 16},
		"sizes multiplied by the export":         {"b,silicon_concurrency=32,sglang,deepseek-ai/DeepSeek-R1,b200_sxm,agg,1024,1024,fp8,fp8,32,64,1,1,8,8,100,9", perfmodel.Parallel{TP: 8, PP: 1, DP: 1, EP: 8}, 32},
		"the same with attention data parallel":  {"c,silicon_concurrency=256,trtllm,deepseek-ai/DeepSeek-R1,b200_sxm,agg,1024,1024,fp8,fp8,4,1,1,64,8,8,100,9", perfmodel.Parallel{TP: 1, PP: 1, DP: 8, EP: 8}, 256},
		"the same, all in the last column":       {"d,silicon_concurrency=64,vllm,MiniMaxAI/MiniMax-M2.5,b200_sxm,agg,1024,1024,fp8,fp8,16,4,1,4,1,16,100,9", perfmodel.Parallel{TP: 4, PP: 1, DP: 1, EP: 4}, 64},
		"experts over more GPUs than one rank's": {"e,x,vllm,Qwen/Qwen3-235B-A22B-FP8,h200_sxm,agg,4000,2000,fp8,fp8,8,2,1,,4,1,100,50", perfmodel.Parallel{TP: 2, PP: 1, DP: 2, EP: 1}, 8},
	} {
		rows, left, err := Read(strings.NewReader(head+c.row+"\n"), perfmodel.Default())
		if err != nil || len(rows) != 1 {
			t.Errorf("%s: %d rows, left out %v, error %v", name, len(rows), left, err)
			continue
		}
		if diff := cmp.Diff(c.want, rows[0].Estimator.Setup().Parallel); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if rows[0].Load.Concurrency != c.batch {
			t.Errorf("%s: %d requests at once, want %d", name, rows[0].Load.Concurrency, c.batch)
		}
	}
}

func TestRowsLeftOutHaveAReason(t *testing.T) {
	for reason, row := range map[string]string{
		"architecture not known":  "a,x,vllm,acme/Unheard,h100_sxm,agg,1024,512,,,16,4,1,,1,1,100,9",
		"GPU not known":           "a,x,vllm,Qwen/Qwen3-32B,abacus,agg,1024,512,,,16,4,1,,1,1,100,9",
		"neither aggregated":      "a,x,vllm,Qwen/Qwen3-32B,h100_sxm,static,1024,512,,,16,4,1,,1,1,100,9",
		"disaggregated, and":      "a,x,vllm,Qwen/Qwen3-32B,h100_sxm,disagg,1024,512,,,16,4,1,,1,1,100,9",
		"overloaded":              "a,x,vllm,Qwen/Qwen3-32B,h100_sxm,agg,1024,512,,,16,4,1,,1,1,10000,9",
		"layout the model":        "a,x,vllm,Qwen/Qwen3-32B,h100_sxm,agg,1024,512,,,16,7,1,,1,1,100,9",
		"how many users":          "a,source_file=/x/data/gb200/trtllm/1.3.0/a.csv; gtl_job_id=7,vllm,Qwen/Qwen3-32B,h100_sxm,agg,1024,512,,,16,4,1,,1,1,100,9",
		"number format not known": "a,x,vllm,Qwen/Qwen3-32B,h100_sxm,agg,1024,512,base3,,16,4,1,,1,1,100,9",
	} {
		rows, left, err := Read(strings.NewReader(head+row+"\n"), perfmodel.Default())
		if err != nil || len(rows) != 0 || len(left) != 1 || !strings.HasPrefix(left[0].Reason, reason) {
			t.Errorf("%s: %d rows, left out %v, error %v", reason, len(rows), left, err)
		}
	}
}

// A fit on made-up measurements finds the constants they were made with, or
// others that explain them as well.
func TestAFitExplainsMeasurementsMadeByTheModel(t *testing.T) {
	truth := Prior()[0]
	truth.Weights, truth.Sequence, truth.Host, truth.Interference = 0.9, 12, 700, 0.95
	var table strings.Builder
	table.WriteString(head)
	for _, tp := range []string{"1", "2", "4"} {
		for _, batch := range []string{"1", "8", "64"} {
			table.WriteString("r" + tp + batch + ",x,vllm,meta-llama/Llama-3.1-8B-Instruct,h100_sxm,agg,1024,512,,," + batch + "," + tp + ",1,,1,1,1,100\n")
		}
	}
	rows, _, err := Read(strings.NewReader(table.String()), perfmodel.Default())
	if err != nil {
		t.Fatal(err)
	}
	for i := range rows {
		rows[i].Token = rows[i].PredictToken(truth)
	}
	before := Tokens(rows, []perfmodel.Constants{Prior()[0]})
	after := Tokens(rows, Fit(rows, Prior()))
	// The prior keeps a part of what nine rows would change.
	if after.P90 > 0.13 || after.Median > before.Median/2 {
		t.Errorf("error before %.3f, after the fit %.3f, worst %.3f", before.Median, after.Median, after.P90)
	}
}

// What an engine has no rows for, it has in common with the others.
func TestAnEngineLearnsFromTheRowsOfOthers(t *testing.T) {
	truth := Prior()[0]
	truth.Compute = map[perfmodel.Precision]float64{perfmodel.BF16: 0.45, perfmodel.FP8: 0.55, perfmodel.FP4: 0.45}
	var table strings.Builder
	table.WriteString(head)
	for _, run := range []string{"vllm,Qwen/Qwen3-32B", "vllm,meta-llama/Llama-3.1-70B", "sglang,Qwen/Qwen3-8B"} {
		for _, batch := range []string{"8", "32", "64"} {
			table.WriteString("r,x," + run + ",h100_sxm,agg,4096,256,,," + batch + ",4,1,,1,1,1,100\n")
		}
	}
	table.WriteString("t,x,trtllm,Qwen/Qwen3-8B,h100_sxm,agg,4096,256,,,64,4,1,,1,1,1,100\n")
	rows, left, err := Read(strings.NewReader(table.String()), perfmodel.Default())
	if err != nil {
		t.Fatal(err, left)
	}
	for i := range rows {
		rows[i].Token, rows[i].First = rows[i].PredictToken(truth), 0
	}
	var seen, unseen []Row
	for _, r := range rows {
		if r.Group.Engine == perfmodel.TRTLLM {
			unseen = append(unseen, r)
		} else {
			seen = append(seen, r)
		}
	}
	before, after := Tokens(unseen, Prior()), Tokens(unseen, Fit(seen, Prior()))
	if len(unseen) != 1 || after.Median > before.Median/2 {
		t.Errorf("error of an engine without rows: %.3f by the prior, %.3f by the fit of others", before.Median, after.Median)
	}
}

func TestCheckpointsWithScalesForTheCacheHaveOneOfEightBits(t *testing.T) {
	for name, c := range map[string]struct {
		row  string
		want perfmodel.Precision
	}{
		"static scales, TensorRT-LLM": {"trtllm,meta-llama/Llama-3.1-70B,b200_sxm,agg,1024,1024,fp8,fp8", perfmodel.FP8},
		"4 bits, vLLM":                {"vllm,meta-llama/Llama-3.1-70B,b200_sxm,agg,1024,1024,nvfp4,nvfp4", perfmodel.FP8},
		"scales by block":             {"trtllm,meta-llama/Llama-3.1-70B,b200_sxm,agg,1024,1024,fp8_block,fp8_block", perfmodel.BF16},
		"SGLang":                      {"sglang,meta-llama/Llama-3.1-70B,b200_sxm,agg,1024,1024,fp8,fp8", perfmodel.BF16},
		"16 bits":                     {"vllm,meta-llama/Llama-3.1-70B,b200_sxm,agg,1024,1024,,", perfmodel.BF16},
	} {
		rows, left, err := Read(strings.NewReader(head+"a,x,"+c.row+",16,4,1,,1,1,100,9\n"), perfmodel.Default())
		if err != nil || len(rows) != 1 {
			t.Errorf("%s: %d rows, left out %v, error %v", name, len(rows), left, err)
			continue
		}
		if got := rows[0].Estimator.Setup().Quantisation.Cache; got != c.want {
			t.Errorf("%s: cache in %s, want %s", name, got, c.want)
		}
	}
}

func TestTheSameRowsGiveTheSameConstants(t *testing.T) {
	rows, _, err := Read(strings.NewReader(head+
		"a,x,vllm,Qwen/Qwen3-32B,h100_sxm,agg,1024,512,,,16,4,1,,1,1,100,9\n"+
		"b,x,trtllm,Qwen/Qwen3-8B,h100_sxm,agg,1024,512,,,64,1,1,,1,1,100,19\n"), perfmodel.Default())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Fit(rows, Prior()), Fit(rows, Prior())); diff != "" {
		t.Error(diff)
	}
}

func TestMinimiseFindsTheLowestPoint(t *testing.T) {
	x, y := minimise(func(x []float64) float64 {
		return math.Abs(x[0]-0.3) + (x[1]-0.9)*(x[1]-0.9)
	}, []float64{0.8, 0.1}, 0.2, 500)
	if y > 1e-3 || math.Abs(x[0]-0.3) > 0.01 || math.Abs(x[1]-0.9) > 0.05 {
		t.Errorf("lowest point %v with value %v", x, y)
	}
}

// What is left out is judged by a fit that has not seen it: measurements made
// by the model are found again, and one that it cannot explain stands out.
func TestFoldsJudgeWhatTheFitHasNotSeen(t *testing.T) {
	truth := Prior()[0]
	truth.Weights, truth.Host = 0.9, 1000
	var table strings.Builder
	table.WriteString(head)
	for _, model := range []string{"meta-llama/Llama-3.1-8B-Instruct", "Qwen/Qwen3-32B", "Qwen/Qwen3-8B"} {
		for _, batch := range []string{"1", "8", "64"} {
			table.WriteString(model + batch + ",x,vllm," + model + ",h100_sxm,agg,1024,512,,," + batch + ",2,1,,1,1,1,100\n")
		}
	}
	rows, _, err := Read(strings.NewReader(table.String()), perfmodel.Default())
	if err != nil {
		t.Fatal(err)
	}
	for i := range rows {
		rows[i].Token, rows[i].First = rows[i].PredictToken(truth), 0
		if rows[i].Group.Model == "Qwen/Qwen3-8B" {
			rows[i].Token *= 3
		}
	}
	judged := CrossValidate(rows, Prior(), Folds[0])
	if len(judged) != len(rows) {
		t.Fatalf("%d of %d rows were judged", len(judged), len(rows))
	}
	for _, model := range []string{"Llama-3.1-8B", "Qwen3-32B", "Qwen3-8B"} {
		var own []Judged
		for _, j := range judged {
			if j.Without == model {
				own = append(own, j)
			}
		}
		s := perToken.summary(own)
		if far := s.Median > 0.4; far != (model == "Qwen3-8B") || s.Rows != 3 {
			t.Errorf("without %s: median error %.2f of %d rows", model, s.Median, s.Rows)
		}
	}
	// Three of nine rows are off by three, so the band is as wide as that.
	wide := Calibrate(Prior(), judged, judged)
	if band := wide[0].Error.TokenP90; band < 1 {
		t.Errorf("band %.2f of what was left out", band)
	}
	// A band that is made without the odd model does not hold it.
	if in := perToken.inside(judged, models, judged); in > 0.7 {
		t.Errorf("%.2f of the rows lie in bands made without their models", in)
	}
}

const pools = "id,silicon_data_source,backend,model_path,system,mode,isl,osl,gemm_quant_mode,moe_quant_mode,prefill_num_workers,prefill_tp_size,prefill_attention_dp_size,prefill_moe_ep_size,decode_batch_size,decode_num_workers,decode_tp_size,decode_attention_dp_size,decode_moe_ep_size,silicon_ttft_ms,silicon_tpot_ms\n"

// The batch is that of one attention rank of one decode worker, and the requests at
// a time are those of all.
func TestDisaggregatedRunsAreReadAsTheyWereRun(t *testing.T) {
	for name, c := range map[string]struct {
		row             string
		prefill, decode perfmodel.Parallel
		users, gpus     int
	}{
		"one of each":           {"a,x,sglang,deepseek-ai/DeepSeek-V3,b200_sxm,disagg,1024,1024,fp8,fp8,1,8,1,8,16,1,8,1,8,100,9", perfmodel.Parallel{TP: 8, PP: 1, DP: 1, EP: 8}, perfmodel.Parallel{TP: 8, PP: 1, DP: 1, EP: 8}, 16, 16},
		"ranks of both sides":   {"b,x,sglang,deepseek-ai/DeepSeek-V3,b200_sxm,disagg,1024,1024,nvfp4,nvfp4,7,1,4,4,64,2,1,8,8,100,9", perfmodel.Parallel{TP: 1, PP: 1, DP: 4, EP: 4}, perfmodel.Parallel{TP: 1, PP: 1, DP: 8, EP: 8}, 1024, 44},
		"the source's own word": {"c,silicon_concurrency=1000,sglang,deepseek-ai/DeepSeek-V3,b200_sxm,disagg,1024,1024,nvfp4,nvfp4,7,1,4,4,64,2,1,8,8,100,9", perfmodel.Parallel{TP: 1, PP: 1, DP: 4, EP: 4}, perfmodel.Parallel{TP: 1, PP: 1, DP: 8, EP: 8}, 1000, 44},
		"experts over 24 GPUs":  {"d,x,sglang,deepseek-ai/DeepSeek-V3,gb300,disagg,8192,1024,fp8,fp8,4,1,8,8,32,1,1,24,24,100,9", perfmodel.Parallel{TP: 1, PP: 1, DP: 8, EP: 8}, perfmodel.Parallel{TP: 1, PP: 1, DP: 24, EP: 24}, 768, 56},
	} {
		rows, left, err := Read(strings.NewReader(pools+c.row+"\n"), perfmodel.Default())
		if err != nil || len(rows) != 1 || rows[0].Pools == nil {
			t.Errorf("%s: %d rows, left out %v, error %v", name, len(rows), left, err)
			continue
		}
		r := rows[0]
		if diff := cmp.Diff([]perfmodel.Parallel{c.prefill, c.decode}, []perfmodel.Parallel{r.Pools.Prefill.Setup().Parallel, r.Pools.Decode.Setup().Parallel}); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if r.Load.Concurrency != c.users || r.GPUs() != c.gpus || !r.Group.Apart {
			t.Errorf("%s: %d requests on %d GPUs, want %d on %d", name, r.Load.Concurrency, r.GPUs(), c.users, c.gpus)
		}
	}
}

// What the batch of a disaggregated run says of places depends on the run; a worker of
// several attention ranks has as many as the table says.
func TestUsersOfADecodeWorkerMayBeMoreThanItsPlaces(t *testing.T) {
	row := func(id, config, run string, users, batch, ranks string) string {
		tp := map[string]string{"1": "8", "8": "1"}[ranks]
		return id + ",db-dump/2026-04-27; config_id=" + config + "; silicon_concurrency=" + users + "; measured=2026-02-03T00:00:00; workflow_run_id=" + run +
			",trtllm,deepseek-ai/DeepSeek-V3,b200_sxm,disagg,1024,1024,nvfp4,nvfp4,1,1,4,4," + batch + ",5," + tp + "," + ranks + ",8,100,9\n"
	}
	rows, left, err := Read(strings.NewReader(pools+
		row("fewer of a sweep", "320", "247", "90", "18", "1")+row("most of a sweep", "320", "247", "180", "36", "1")+
		row("each of its own", "392", "265", "30", "6", "1")+row("ranks", "309", "247", "2800", "70", "8")+
		row("as many as users", "553", "281", "40", "8", "1")+row("of another run", "1", "1", "55", "11", "1")), perfmodel.Default())
	if err != nil {
		t.Fatal(err, left)
	}
	got := map[string]int{}
	for _, r := range rows {
		got[r.ID] = r.Pools.Decode.Setup().MaxSequences
	}
	want := map[string]int{"fewer of a sweep": 32, "most of a sweep": 32, "each of its own": 4, "ranks": 0, "as many as users": 8, "of another run": 0}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestASourceSaysHowRequestsCame(t *testing.T) {
	for name, c := range map[string]struct {
		source        string
		arrival       perfmodel.Arrival
		told, drafted bool
	}{
		"a dump":                    {"db-dump/2026-04-27; config_id=1; silicon_concurrency=4", perfmodel.Staggered, true, false},
		"an export by date":         {"source_file=2026-03-25.csv; model=x; silicon_concurrency=4", perfmodel.Staggered, true, true},
		"a sweep of equal requests": {"source_file=/x/data/h100_sxm/trtllm/1.0.0rc3/a.csv; silicon_concurrency=4", perfmodel.InStep, true, false},
		"a sweep of both kinds":     {"source_file=/x/data/h200_sxm/sglang/0.5.6.post2/a.csv; silicon_concurrency=4", perfmodel.Staggered, false, false},
		"a job":                     {"source_file=/x/data/gb200/trtllm/1.3.0/a.csv; gtl_task_id=7; silicon_concurrency=4", perfmodel.Staggered, false, false},
		"runs that made kernels":    {"db-dump/2026-04-27; config_id=1; silicon_concurrency=4; workflow_run_id=124", perfmodel.Staggered, true, false},
		"another":                   {"a friend", perfmodel.Staggered, false, false},
	} {
		rows, left, err := Read(strings.NewReader(head+"a,"+c.source+",trtllm,deepseek-ai/DeepSeek-R1,b200_sxm,agg,1024,1024,fp8,fp8,4,8,1,1,8,1,100,9\n"), perfmodel.Default())
		if err != nil || len(rows) != 1 {
			t.Errorf("%s: %d rows, left out %v, error %v", name, len(rows), left, err)
			continue
		}
		if r := rows[0]; r.Load.Arrival != c.arrival || r.Told != c.told || r.Drafted != c.drafted {
			t.Errorf("%s: arrival %s, told %v, drafted %v", name, r.Load.Arrival, r.Told, r.Drafted)
		}
	}
}

// Kernels for so many tokens were made while the run was timed, not for fewer.
func TestFirstTokensOfARunThatMadeKernelsAreNotTold(t *testing.T) {
	for batch, told := range map[string]bool{"16": true, "32": false} {
		row := "a,db-dump/2026-04-27; config_id=1; silicon_concurrency=" + batch + "; workflow_run_id=122,sglang,deepseek-ai/DeepSeek-R1,b200_sxm,agg,1024,1024,nvfp4,nvfp4," + batch + ",8,1,1,8,1,100,9\n"
		rows, left, err := Read(strings.NewReader(head+row), perfmodel.Default())
		if err != nil || len(rows) != 1 || rows[0].Told != told {
			t.Errorf("%s requests: %+v, left out %v, error %v; want told %v", batch, rows, left, err, told)
		}
	}
}

// The choice by estimates that are right is the best one; the rule takes the
// fewest GPUs and the most requests, which is too slow here.
func TestAChoiceIsHeldAgainstTheBestThatWasMeasured(t *testing.T) {
	var judged []Judged
	for _, tp := range []string{"1", "2", "4"} {
		for _, batch := range []string{"1", "16", "128"} {
			rows, _, err := Read(strings.NewReader(head+"r"+tp+batch+",x,vllm,Qwen/Qwen3-8B,h100_sxm,agg,1024,512,,,"+batch+","+tp+",1,,1,1,100,9\n"), perfmodel.Default())
			if err != nil || len(rows) != 1 {
				t.Fatal(rows, err)
			}
			is := Judge(rows, Prior(), "")[0]
			is.Row.Token, is.Row.First = is.Times.Token, is.Times.First
			judged = append(judged, is)
		}
	}
	r := Rank(judged)
	if r.Cases == 0 || r.Model != r.Cases || r.Rule >= r.Model || r.Lost != 0 {
		t.Errorf("got %+v", r)
	}
	for i := range judged { // the slower it is, the faster it is thought to be
		judged[i].Times.Token, judged[i].Times.Rate = 1e3/judged[i].Times.Token, 1/judged[i].Times.Rate
	}
	if wrong := Rank(judged); wrong.Model >= r.Model {
		t.Errorf("estimates that are wrong choose as well: %+v", wrong)
	}
}

// In some sweeps there is one user more than places: whoever comes waits until one of
// the others is answered, and the rate counts all of them.
func TestUsersBeyondPlacesWaitForOne(t *testing.T) {
	for name, c := range map[string]struct {
		source  string
		waiting int
	}{
		"a sweep with a user more":   {"a/trtllm/1.0.0rc3/meta-llama_Llama-3.1-8B-Instruct.csv", 1},
		"another of the same kind":   {"a/trtllm/1.0.0rc3/Qwen_Qwen3-32B.csv", 0},
		"the same of another engine": {"a/vllm/0.12.0/meta-llama_Llama-3.1-8B-Instruct.csv", 0},
	} {
		rows, left, err := Read(strings.NewReader(head+"a,"+c.source+",trtllm,meta-llama/Llama-3.1-8B-Instruct,h100_sxm,agg,1024,512,,,8,1,1,,1,1,550,7.42\n"), perfmodel.Default())
		if err != nil || len(rows) != 1 {
			t.Fatalf("%s: %d rows, left out %v, error %v", name, len(rows), left, err)
		}
		r := rows[0]
		if r.Waiting != c.waiting {
			t.Errorf("%s: %d users wait, want %d", name, r.Waiting, c.waiting)
		}
		k := Prior()[4]
		got := r.Predict(k)
		r.Waiting = 0
		alone := r.Predict(k)
		want := alone.First + float64(c.waiting)/8*(alone.First+511*alone.Token)
		if math.Abs(got.First-want) > 1e-6 || got.Token != alone.Token {
			t.Errorf("%s: first token after %.1f ms and then %.2f, want %.1f and %.2f", name, got.First, got.Token, want, alone.Token)
		}
	}
}
