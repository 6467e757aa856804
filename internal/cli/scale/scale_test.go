package scale

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

func play(t *testing.T, arguments ...string) (string, error) {
	t.Helper()
	command := Command()
	var out bytes.Buffer
	command.SetOut(&out)
	command.SetErr(&out)
	command.SilenceUsage, command.SilenceErrors = true, true
	command.SetArgs(append([]string{"simulate"}, arguments...))
	err := command.Execute()
	return out.String(), err
}

func TestEveryPolicyPlaysATraceAndIsDrawn(t *testing.T) {
	file := filepath.Join(t.TempDir(), "page.html")
	out, err := play(t, "--trace", "sine", "--length", "6m", "--startup", "30s", "--page", file)
	if err != nil {
		t.Fatal(err)
	}
	body, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, policy := range []string{"native", "original", "hpa", "fixed", "clairvoyant"} {
		if !strings.Contains(out, "\n"+policy+" ") || !strings.Contains(string(body), "<title>"+policy+"</title>") {
			t.Errorf("%s is missing in\n%s", policy, out)
		}
	}
	if n := strings.Count(string(body), "<svg"); n != 4 || strings.Contains(string(body), "<script") {
		t.Errorf("%d charts are drawn", n)
	}
	again, err := play(t, "--trace", "sine", "--length", "6m", "--startup", "30s")
	if err != nil || !strings.HasPrefix(out, again) {
		t.Errorf("the same trace gave another outcome: %v\n%s", err, again)
	}
}

func TestWhatAPolicyCostsIsSaidOrThatNobodyKnows(t *testing.T) {
	folder := t.TempDir()
	profile := map[string]string{
		"prefill_raw_data.json": `{"prefill_isl":[100,8000],"prefill_ttft":[20,400],"prefill_thpt_per_gpu":[5000,20000]}`,
		"decode_raw_data.json":  `{"x_kv_usage":[0.1,0.9,0.1,0.9],"y_context_length":[100,100,8000,8000],"z_itl":[5,9,6,12],"z_thpt_per_gpu":[1000,9000,900,8000],"max_kv_tokens":500000}`,
	}
	for name, text := range profile {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, x := range []struct {
		rule      string
		arguments []string
		said      string
		hour      float64
	}{
		{"on the H200 of which the times are", nil, "a GPU costs $5.00/h (by the built-in table, for h200_sxm)", 5},
		{"on the GPU that is named", []string{"--model", "Qwen/Qwen3-32B", "--prefill-gpus", "2", "--decode-gpus", "2", "--gpu", "b200_sxm"}, "a GPU costs $9.00/h (by the built-in table, for b200_sxm)", 9},
		{"at what is given", []string{"--price", "3.2"}, "a GPU costs $3.20/h (by what was given)", 3.2},
		{"of a profile nobody says", []string{"--profile", folder}, "what it costs is not known: it is not said which GPUs replicas have", 0},
		{"unless somebody does", []string{"--profile", folder, "--gpu", "l40s"}, "a GPU costs $1.90/h (by the built-in table, for l40s)", 1.9},
	} {
		t.Run(x.rule, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "page.html")
			out, err := play(t, append([]string{"--trace", "poisson", "--high", "5", "--length", "3m", "--startup", "30s", "--policy", "native", "--page", file}, x.arguments...)...)
			if err != nil {
				t.Fatal(err)
			}
			body, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			row := strings.Fields(out[strings.Index(out, "\nnative ")+1:]) // two of the columns are of two words
			hours, err := strconv.ParseFloat(row[8], 64)
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			cost := "unknown"
			if x.hour > 0 {
				cost = row[9]
				if dollars, err := strconv.ParseFloat(strings.TrimPrefix(cost, "$"), 64); err != nil || math.Abs(dollars-hours*x.hour) > 0.01*x.hour {
					t.Errorf("%s for %v GPU-hours", cost, hours)
				}
			}
			if !strings.Contains(out, x.said+"\n") || row[9] != cost || !strings.Contains(string(body), x.said) || !strings.Contains(string(body), "<td>"+cost+"</td>") {
				t.Errorf("%q and %s are not in both\n%s\n%.2000s", x.said, cost, out, body)
			}
		})
	}
}

func TestTracesOfEveryFormAreRead(t *testing.T) {
	for name, rows := range map[string]string{
		"azure.csv":     "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.6805900,374,44\n2023-11-16 18:15:56.9951690,396,109\n",
		"burstgpt.csv":  "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n5,ChatGPT,472,18,490,x\n7,ChatGPT,472,0,472,x\n45,GPT-4,1087,230,1317,x\n",
		"mooncake.json": "{\"timestamp\": 0, \"input_length\": 6955, \"output_length\": 52, \"hash_ids\": [1]}\n{\"timestamp\": 30535, \"input_length\": 672, \"output_length\": 3}\n",
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), name)
			if err := os.WriteFile(file, []byte(rows), 0o600); err != nil {
				t.Fatal(err)
			}
			out, err := play(t, "--trace", file, "--policy", "native", "--startup", "30s")
			if err != nil || !strings.Contains(out, ": 2 requests in ") {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

func TestWhatCannotBePlayedIsRefused(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x.csv")
	if err := os.WriteFile(file, []byte("a,b\n1,2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	good := filepath.Join(t.TempDir(), "good.csv")
	if err := os.WriteFile(good, []byte("TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46,374,44\n2023-11-16 18:16:56,396,109\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for rule, arguments := range map[string][]string{
		"an unknown policy":                       {"--trace", "sine", "--policy", "best"},
		"columns of nobody":                       {"--trace", file},
		"a file that is absent":                   {"--trace", file + "x"},
		"an unknown model":                        {"--trace", "sine", "--model", "nobody/knows"},
		"a profile that is not":                   {"--trace", "sine", "--profile", t.TempDir()},
		"no room for one of each role":            {"--trace", "sine", "--length", "2m", "--policy", "fixed", "--gpus", "1"},
		"nor for larger ones":                     {"--trace", "sine", "--length", "2m", "--policy", "fixed", "--gpus", "8", "--prefill-gpus", "4", "--decode-gpus", "8"},
		"requests without tokens":                 {"--trace", "sine", "--length", "2m", "--osl", "0"},
		"prompts of less than nothing":            {"--trace", "sine", "--length", "2m", "--isl", "-5"},
		"a rate that is no number, and no end":    {"--trace", "poisson", "--length", "2m", "--high", "NaN"},
		"a period of no time, which is no number": {"--trace", "sine", "--length", "2m", "--period", "0s"},
		"a target that nothing can reach":         {"--trace", "sine", "--length", "2m", "--ttft", "0"},
		"starts that end before they begin":       {"--trace", "sine", "--length", "2m", "--startup", "-5s"},
		"fewer GPUs than none":                    {"--trace", "sine", "--length", "2m", "--gpus", "-3"},
		"a share of more than all":                {"--trace", "sine", "--length", "2m", "--quantile", "5"},
		"a price that is no number":               {"--trace", "sine", "--length", "2m", "--price", "NaN"},
		"nothing":                                 {"--policy", "fixed"},
		"what came to nobody":                     {"--from-cluster"},
		"a graph beside a trace":                  {"chat", "--trace", "sine"},
		"a trace and what came":                   {"chat", "--from-cluster", "--trace", "sine"},
		"copies without number":                   {"--trace", good, "--rate-scale", "Inf"},
	} {
		t.Run(rule, func(t *testing.T) {
			if out, err := play(t, arguments...); err == nil {
				t.Errorf("it was played:\n%s", out)
			}
		})
	}
}
