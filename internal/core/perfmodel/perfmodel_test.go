package perfmodel

import (
	"errors"
	"slices"
	"testing"
)

func TestParametersAreThoseOfThePublishedModels(t *testing.T) {
	c := Default()
	for name, want := range map[string][2]float64{ // billions, total and active
		"Qwen/Qwen3-0.6B":                      {0.60, 0.60},
		"meta-llama/Llama-3.1-8B":              {8.03, 8.03},
		"Qwen/Qwen3-32B":                       {32.8, 32.8},
		"meta-llama/Llama-3.3-70B-Instruct":    {70.6, 70.6},
		"meta-llama/Llama-3.1-405B":            {405.8, 405.8},
		"mistralai/Mixtral-8x7B-Instruct-v0.1": {46.7, 12.9},
		"Qwen/Qwen3-30B-A3B":                   {30.5, 3.4},
		"Qwen/Qwen3-235B-A22B":                 {235.1, 22.2},
		"openai/gpt-oss-120b":                  {116.8, 5.7},
		"deepseek-ai/DeepSeek-R1":              {671, 37.6},
		"Qwen/Qwen3.5-397B-A17B":               {397, 17},
		"moonshotai/Kimi-K2.5":                 {1027, 32.9},
		"zhipuai/GLM-5":                        {744, 40},
		"MiniMaxAI/MiniMax-M2.5":               {229, 11},
	} {
		m, err := c.Model(name)
		if err != nil {
			t.Error(err)
			continue
		}
		total, active := m.Parameters()
		for i, got := range []float64{total / 1e9, active / 1e9} {
			if got < 0.95*want[i] || got > 1.05*want[i] {
				t.Errorf("%s has %.2f billion parameters (total, active: %d), want %.2f", name, got, i, want[i])
			}
		}
	}
}

func TestUnknownNamesAreRefusedWithWhatIsKnown(t *testing.T) {
	c := Default()
	_, err := c.Model("acme/Unheard-7B")
	var unknown *UnknownError
	if !errors.As(err, &unknown) || unknown.Kind != "model" || !slices.Contains(unknown.Known, "Qwen/Qwen3-32B") {
		t.Errorf("unknown model: %v", err)
	}
	_, err = c.GPU("abacus")
	if !errors.As(err, &unknown) || unknown.Kind != "gpu" || !slices.Contains(unknown.Known, "h100_sxm") {
		t.Errorf("unknown GPU: %v", err)
	}
}
