package role

import (
	"encoding/json"
	"math"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/planner/capacity"
	"github.com/dynamo-operator/dynamo-operator/internal/core/planner/decision"
	"github.com/dynamo-operator/dynamo-operator/internal/planner/config"
	"github.com/dynamo-operator/dynamo-operator/test/corpus"
)

// slow is a model whose prompts take so many times as long.
type slow struct {
	capacity.Model
	by float64
}

func (s slow) Prefill(tokens float64) float64 { return s.by * s.Model.Prefill(tokens) }

func TestAHandoverIsKnownBetweenTwoRolesOfKnownEngines(t *testing.T) {
	for _, x := range []struct {
		rule   string
		mode   config.Mode
		engine graph.Engine
		model  string
		known  bool
	}{
		{"of SGLang", config.Disaggregated, graph.EngineSGLang, "Qwen/Qwen3-0.6B", true},
		{"of vLLM", config.Disaggregated, graph.EngineVLLM, "Qwen/Qwen3-0.6B", true},
		{"not of a model that nobody knows", config.Disaggregated, graph.EngineSGLang, "nobody/knows", false},
		{"nor of an engine that nobody names", config.Disaggregated, graph.EngineNone, "Qwen/Qwen3-0.6B", false},
		{"one role hands nothing over", config.Aggregated, graph.EngineSGLang, "Qwen/Qwen3-0.6B", false},
		{"nor is one scaled alone", config.PrefillOnly, graph.EngineSGLang, "Qwen/Qwen3-0.6B", false},
	} {
		t.Run(x.rule, func(t *testing.T) {
			worker := func(name string) graph.Component {
				return graph.Component{
					Name: name, Role: graph.RoleWorker, SubType: name, Nodes: 1, Engine: x.engine,
					Main: &corev1.Container{Args: []string{"--model-path", x.model}},
				}
			}
			parts, missing := Find([]graph.Component{worker("prefill"), worker("decode")}, x.mode)
			if missing != "" {
				t.Fatal(missing)
			}
			timing, err := NewTiming(config.Config{Mode: x.mode, Policy: config.Native, Profile: t.TempDir()}, parts)
			if err != nil {
				t.Fatal(err)
			}
			took := timing.Handover(4000)
			if !x.known {
				if took != 0 {
					t.Errorf("%v s", took)
				}
				return
			}
			if took < 0.03 || took > 0.15 || timing.Handover(8000) < took || timing.Handover(0) != 0 || timing.Handover(math.NaN()) != 0 {
				t.Errorf("%v s for 4000 tokens, %v for 8000, %v for none", took, timing.Handover(8000), timing.Handover(0))
			}
			model := timing.Model
			for by, want := range map[float64]float64{0.5: 0.5, 1.8: 1.8, 9: slowest} {
				timing.Model = slow{model, by}
				if got := timing.Handover(4000) / took; math.Abs(got/want-1) > 0.05 {
					t.Errorf("prompts of %v times the time are handed over in %v times, want %v", by, got, want)
				}
			}
		})
	}
}

func TestReplicasAreTimedAndPricedByTheGPUOfTheirRole(t *testing.T) {
	const qwen = "Qwen/Qwen3-0.6B"
	for _, x := range []struct {
		rule            string
		prefill, decode string // labels of nodes
		told            [decision.Roles]string
		by, costs       string
	}{
		{"as nodes are labelled", "NVIDIA-H200", "NVIDIA-L40S", [2]string{}, "on h200_sxm for prefill and l40s for decode",
			"prefill: a GPU costs $5.00/h (by the built-in table, for h200_sxm); decode: a GPU costs $1.90/h (by the built-in table, for l40s)"},
		{"what is told counts more", "NVIDIA-H200", "NVIDIA-L40S", [2]string{"", "h200_sxm"}, "on h200_sxm", "a GPU costs $5.00/h (by the built-in table, for h200_sxm)"},
		{"a label that nobody knows has no price, and is none to be timed by", "Abacus", "Abacus", [2]string{}, "on h200_sxm", "what it costs is not known: the built-in table has no price of Abacus"},
	} {
		t.Run(x.rule, func(t *testing.T) {
			worker := func(name, product string) graph.Component {
				return graph.Component{
					Name: name, Role: graph.RoleWorker, SubType: name, Nodes: 1, Engine: graph.EngineVLLM, Resources: graph.Resources{GPUs: 1},
					Main: &corev1.Container{Args: []string{"--model", qwen}}, Pod: &corev1.PodSpec{NodeSelector: map[string]string{labelProduct: product}},
				}
			}
			parts, missing := Find([]graph.Component{worker("prefill", x.prefill), worker("decode", x.decode)}, config.Disaggregated)
			if missing != "" {
				t.Fatal(missing)
			}
			told := config.Config{GPU: x.told}
			if _, by := Estimate(told, parts); by != "the performance model of "+qwen+" "+x.by {
				t.Errorf("timed by %s", by)
			}
			if got := parts.Prices(told).String(); got != x.costs {
				t.Errorf("%s, want %s", got, x.costs)
			}
		})
	}
}

// Of upstream's scenario: engines that are slowed until a prompt takes 55 ms.
func TestHandoversOfThePublishedPlannersAreKnown(t *testing.T) {
	files := map[string]bool{
		"examples/backends/sglang/deploy/disagg_planner.yaml": true,
		"examples/backends/vllm/deploy/disagg_planner.yaml":   true,
		"examples/backends/trtllm/deploy/disagg_planner.yaml": true,
	}
	for _, d := range corpus.OfGroup(t, v1alpha1.GroupName) {
		if !files[d.File] {
			continue
		}
		delete(files, d.File)
		t.Run(d.Name(), func(t *testing.T) {
			dgd := &v1alpha1.DynamoGraphDeployment{}
			if err := json.Unmarshal(d.JSON, dgd); err != nil {
				t.Fatal(err)
			}
			g, err := graph.FromGraphDeployment(dgd, graph.Defaults{})
			if err != nil {
				t.Fatal(err)
			}
			parts, missing := Find(g.Components, config.Disaggregated)
			if missing != "" {
				t.Fatal(missing)
			}
			timing, err := NewTiming(config.Config{Mode: config.Disaggregated, Policy: config.Native, Profile: t.TempDir()}, parts)
			if err != nil {
				t.Fatal(err)
			}
			timing.Model = slow{timing.Model, 0.055 / timing.Model.Prefill(4000)}
			if took := timing.Handover(4000); took < 0.115 || took > 0.135 {
				t.Errorf("%v s for 4000 tokens", took)
			}
		})
	}
	if len(files) > 0 {
		t.Errorf("not there: %v", files)
	}
}
