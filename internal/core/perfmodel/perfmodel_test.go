package perfmodel

import (
	"errors"
	"slices"
	"testing"
)

func TestParametersAreThoseOfThePublishedModels(t *testing.T) {
	c := Default()
	for name, want := range map[string][2]float64{ // billions, total and active
		"Qwen/Qwen3-0.6B":                               {0.60, 0.60},
		"meta-llama/Llama-3.1-8B":                       {8.03, 8.03},
		"Qwen/Qwen3-32B":                                {32.8, 32.8},
		"meta-llama/Llama-3.3-70B-Instruct":             {70.6, 70.6},
		"meta-llama/Llama-3.1-405B":                     {405.8, 405.8},
		"mistralai/Mixtral-8x7B-Instruct-v0.1":          {46.7, 12.9},
		"Qwen/Qwen3-30B-A3B":                            {30.5, 3.4},
		"Qwen/Qwen3-235B-A22B":                          {235.1, 22.2},
		"openai/gpt-oss-120b":                           {116.8, 5.7},
		"deepseek-ai/DeepSeek-R1":                       {671, 37.6},
		"Qwen/Qwen3.5-397B-A17B":                        {397, 17},
		"moonshotai/Kimi-K2.5":                          {1027, 32.9},
		"zhipuai/GLM-5":                                 {744, 40},
		"MiniMaxAI/MiniMax-M2.5":                        {229, 11},
		"Qwen/Qwen2.5-0.5B-Instruct":                    {0.49, 0.49},
		"Qwen/Qwen2.5-1.5B-Instruct":                    {1.54, 1.54},
		"Qwen/Qwen2.5-3B-Instruct":                      {3.09, 3.09},
		"Qwen/Qwen2.5-14B-Instruct":                     {14.7, 14.7},
		"meta-llama/Llama-2-7b-chat-hf":                 {6.74, 6.74},
		"meta-llama/Llama-2-70b-chat-hf":                {69, 69},
		"mistralai/Mistral-7B-Instruct-v0.3":            {7.25, 7.25},
		"mistralai/Mistral-Nemo-Instruct-2407":          {12.2, 12.2},
		"mistralai/Mistral-Small-24B-Instruct-2501":     {23.6, 23.6},
		"microsoft/phi-4":                               {14.7, 14.7},
		"mistralai/Mixtral-8x22B-Instruct-v0.1":         {140.6, 39.1},
		"meta-llama/Llama-4-Scout-17B-16E-Instruct":     {108, 17},
		"meta-llama/Llama-4-Maverick-17B-128E-Instruct": {400, 17},
		"Qwen/Qwen3-Coder-480B-A35B-Instruct":           {480, 35},
		"Qwen/Qwen3-Next-80B-A3B-Instruct":              {79.7, 3.9},
		"zai-org/GLM-4.5":                               {355, 33.6}, // the publisher leaves embeddings out
		"zai-org/GLM-4.5-Air":                           {106, 13.4},
		"deepseek-ai/DeepSeek-V2-Lite":                  {15.7, 2.7},
		"deepseek-ai/DeepSeek-V3.2":                     {671, 37.6},
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
