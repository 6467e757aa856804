package profile

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// call runs the verb and returns what it printed.
func call(t *testing.T, stdin string, args ...string) (string, error) {
	t.Helper()
	command := Command()
	command.SilenceUsage, command.SilenceErrors = true, true
	var out bytes.Buffer
	command.SetIn(strings.NewReader(stdin))
	command.SetOut(&out)
	command.SetErr(&out)
	command.SetArgs(args)
	err := command.Execute()
	return out.String(), err
}

const requestText = `
apiVersion: nvidia.com/v1alpha1
kind: DynamoGraphDeploymentRequest
metadata: {name: chat}
spec:
  model: Qwen/Qwen3-32B
  backend: sglang
  deploymentOverrides: {workersImage: "mine:2"}
  profilingConfig:
    profilerImage: dynamo-profiler:dev
    config:
      sweep: {use_ai_configurator: true, aic_system: h200_sxm}
      sla: {isl: 1000, osl: 200, ttft: 1000, itl: 50}
`

func TestProfile(t *testing.T) {
	for name, test := range map[string]struct {
		stdin string
		args  []string
		want  []string
	}{
		"flags alone":            {"", []string{"--model", "Qwen/Qwen3-32B", "--gpu", "h100_sxm", "--ttft", "2000", "--itl", "60"}, []string{"All targets are met", "h100_sxm"}},
		"a request":              {requestText, []string{"-f", "-"}, []string{"All targets are met", "sglang", "1000 tokens in, 200 out"}},
		"flags over a request":   {requestText, []string{"-f", "-", "--itl", "0.1"}, []string{"No configuration meets the goal", "missed by", "What would meet the goal"}},
		"a graph to be applied":  {requestText, []string{"-f", "-", "--graph"}, []string{"kind: DynamoGraphDeployment", "name: chat", "dynamo.sglang", "image: mine:2"}},
		"mock engines":           {requestText, []string{"-f", "-", "--graph", "--mocker"}, []string{"dynamo.mocker", "name: chat"}},
		"a configuration alone":  {"deployment: {model: Qwen/Qwen3-8B}\nsweep: {aicSystem: h200_sxm}\nsla: {itl: 60, ttft: 900}", []string{"-f", "-"}, []string{"Qwen/Qwen3-8B"}},
		"a rate within a budget": {requestText, []string{"-f", "-", "--rate", "10", "--gpus", "32"}, []string{"10 requests a second", "at most 32 GPUs"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := call(t, test.stdin, test.args...)
			if err != nil {
				t.Fatal(err)
			}
			for _, part := range test.want {
				if !strings.Contains(got, part) {
					t.Errorf("no %q in\n%s", part, got)
				}
			}
		})
	}
}

func TestProfileRefuses(t *testing.T) {
	for name, args := range map[string][]string{
		"a model nobody knows":  {"--model", "acme/secret", "--gpu", "h100_sxm"},
		"a GPU nobody knows":    {"--model", "Qwen/Qwen3-32B", "--gpu", "abacus"},
		"no GPU":                {"--model", "Qwen/Qwen3-32B"},
		"a file that is absent": {"-f", "nowhere.yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := call(t, "", args...); err == nil {
				t.Errorf("printed %s", got)
			}
		})
	}
}

func TestABaseGraphIsKept(t *testing.T) {
	file := filepath.Join(t.TempDir(), "base.yaml")
	text := "apiVersion: nvidia.com/v1alpha1\nkind: DynamoGraphDeployment\nmetadata: {name: b}\nspec: {services: {Web: {componentType: frontend}, Lone: {componentType: worker}}}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, got := range map[string]func() (string, error){
		"by flag":            func() (string, error) { return call(t, requestText, "-f", "-", "--graph", "--base", file) },
		"beside the request": func() (string, error) { return call(t, requestText+"---\n"+text, "-f", "-", "--graph") },
		"by its path": func() (string, error) {
			return call(t, "deployment: {model: Qwen/Qwen3-8B}\nengine: {config: "+file+"}\nsweep: {aicSystem: h200_sxm}", "-f", "-", "--graph")
		},
	} {
		t.Run(name, func(t *testing.T) {
			graph, err := got()
			if err != nil || !strings.Contains(graph, "Lone:") || strings.Contains(graph, "decode:") {
				t.Errorf("%v\n%s", err, graph)
			}
		})
	}
}

func TestOutputIsAFolder(t *testing.T) {
	folder := t.TempDir()
	if _, err := call(t, requestText, "-f", "-", "--output", folder); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"report.html", "config_with_planner.yaml", "selected_decode_interpolation/raw_data.npz"} {
		if info, err := os.Stat(filepath.Join(folder, name)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestACatalogAddsAModel(t *testing.T) {
	file := filepath.Join(t.TempDir(), "more.yaml")
	text := "version: 1\nmodels:\n- {name: acme/tiny, layers: 4, hidden: 512, heads: 8, kvHeads: 8, headSize: 64, ffn: 2048, vocab: 32000, context: 8192}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := call(t, "", "--model", "acme/tiny", "--gpu", "l40s", "--catalog", file, "--ttft", "500", "--itl", "50")
	if err != nil || !strings.Contains(got, "acme/tiny") {
		t.Errorf("%v\n%s", err, got)
	}
}

func TestEveryExampleMeetsItsGoal(t *testing.T) {
	files, err := filepath.Glob("../../../examples/requests/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("%v, %v", files, err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			got, err := call(t, "", "-f", file, "--gpu", "h200_sxm")
			if err != nil || !strings.Contains(got, "All targets are met") {
				t.Errorf("%v\n%s", err, got)
			}
		})
	}
}
