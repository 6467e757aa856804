package scale

import (
	"bytes"
	"os"
	"path/filepath"
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
		"copies without number":                   {"--trace", good, "--rate-scale", "Inf"},
	} {
		t.Run(rule, func(t *testing.T) {
			if out, err := play(t, arguments...); err == nil {
				t.Errorf("it was played:\n%s", out)
			}
		})
	}
}
