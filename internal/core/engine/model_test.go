package engine

import (
	"testing"

	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
)

func TestModel(t *testing.T) {
	for rule, c := range map[string]struct {
		engine        graph.Engine
		command, args []string
		want          string
	}{
		"the name that is given":           {graph.EngineVLLM, []string{"python3", "-m", "dynamo.vllm"}, []string{"--model", "/models/a", "--served-model-name", "a"}, "a"},
		"the model without one":            {graph.EngineSGLang, []string{"python3", "-m", "dynamo.sglang"}, []string{"--model-path", "org/a"}, "org/a"},
		"in a script":                      {graph.EngineTRTLLM, []string{"sh", "-c"}, []string{"ulimit -n 1; exec python3 -m dynamo.trtllm --model-path org/a --served-model-name 'a b'"}, "a b"},
		"of a mock engine":                 {graph.EngineNone, []string{"python3", "-m", "dynamo.mocker"}, []string{"--model-path", "org/a", "--model-name", "a"}, "a"},
		"nothing is said":                  {graph.EngineVLLM, []string{"python3", "-m", "dynamo.vllm"}, nil, ""},
		"nothing at all":                   {graph.EngineNone, nil, nil, ""},
		"only the container knows":         {graph.EngineVLLM, []string{"python3", "-m", "dynamo.vllm"}, []string{"--model", "$(MODEL)"}, ""},
		"a name that only the shell knows": {graph.EngineVLLM, []string{"sh", "-c"}, []string{`python3 -m dynamo.vllm --model org/a --served-model-name "$NAME"`}, ""},
	} {
		t.Run(rule, func(t *testing.T) {
			if got := Model(c.engine, c.command, c.args); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}
