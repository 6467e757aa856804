package fit

import (
	"slices"

	"github.com/dynamo-operator/dynamo-operator/internal/core/perfmodel"
)

// checked are the groups that constants are never fitted on: for each engine
// and kind at least one GPU, model or number format that the fit has not seen.
var checked = []Group{
	{Engine: perfmodel.VLLM, Model: "meta-llama/Llama-3.1-70B", GPU: "h200_sxm", Weights: perfmodel.FP8},
	{Engine: perfmodel.VLLM, Model: "Qwen/Qwen3-32B", GPU: "h100_sxm", Weights: perfmodel.FP8},
	{Engine: perfmodel.TRTLLM, Model: "meta-llama/Llama-3.1-8B-Instruct", GPU: "h100_sxm", Weights: perfmodel.BF16},
	{Engine: perfmodel.TRTLLM, Model: "Qwen/Qwen3-32B", GPU: "gb200", Weights: perfmodel.BF16},
	{Engine: perfmodel.TRTLLM, Model: "Qwen/Qwen3-32B", GPU: "gb200", Weights: perfmodel.FP4},
	{Engine: perfmodel.TRTLLM, Model: "nvidia/Qwen3-32B-NVFP4", GPU: "gb200", Weights: perfmodel.FP4},
	{Engine: perfmodel.TRTLLM, Model: "nvidia/Qwen3-32B-NVFP4", GPU: "b200_sxm", Weights: perfmodel.FP4},
	{Engine: perfmodel.SGLang, Model: "meta-llama/Llama-3.1-8B-Instruct", GPU: "h200_sxm", Weights: perfmodel.FP8},

	{Engine: perfmodel.VLLM, Model: "MiniMaxAI/MiniMax-M2.5", GPU: "b200_sxm", Weights: perfmodel.FP4, Mixture: true},
	{Engine: perfmodel.VLLM, Model: "moonshotai/Kimi-K2.5", GPU: "b300_sxm", Weights: perfmodel.FP4, Mixture: true},
	{Engine: perfmodel.VLLM, Model: "moonshotai/Kimi-K2.5", GPU: "b200_sxm", Weights: perfmodel.INT4, Mixture: true},
	{Engine: perfmodel.VLLM, Model: "Qwen/Qwen3-235B-A22B-FP8", GPU: "h200_sxm", Weights: perfmodel.FP8, Mixture: true},
	{Engine: perfmodel.TRTLLM, Model: "deepseek-ai/DeepSeek-V3", GPU: "b200_sxm", Weights: perfmodel.FP8, Mixture: true},
	{Engine: perfmodel.TRTLLM, Model: "nvidia/DeepSeek-R1-0528-FP4", GPU: "b200_sxm", Weights: perfmodel.FP4, Mixture: true},
	{Engine: perfmodel.TRTLLM, Model: "openai/gpt-oss-120b", GPU: "h200_sxm", Weights: perfmodel.FP4, Mixture: true},
	{Engine: perfmodel.SGLang, Model: "Qwen/Qwen3.5-397B-A17B", GPU: "b200_sxm", Weights: perfmodel.FP4, Mixture: true},
	{Engine: perfmodel.SGLang, Model: "Qwen/Qwen3.5-397B-A17B", GPU: "b300_sxm", Weights: perfmodel.BF16, Mixture: true},
	{Engine: perfmodel.SGLang, Model: "Qwen/Qwen3.5-397B-A17B", GPU: "b300_sxm", Weights: perfmodel.FP8, Mixture: true},
	{Engine: perfmodel.SGLang, Model: "Qwen/Qwen3.5-397B-A17B", GPU: "b300_sxm", Weights: perfmodel.FP4, Mixture: true},
	{Engine: perfmodel.SGLang, Model: "deepseek-ai/DeepSeek-V3", GPU: "b300_sxm", Weights: perfmodel.FP8, Mixture: true},
	{Engine: perfmodel.SGLang, Model: "deepseek-ai/DeepSeek-V3", GPU: "b300_sxm", Weights: perfmodel.FP4, Mixture: true},
	{Engine: perfmodel.SGLang, Model: "zai-org/GLM-5", GPU: "h200_sxm", Weights: perfmodel.FP8, Mixture: true},

	{Engine: perfmodel.TRTLLM, Model: "deepseek-ai/DeepSeek-V3", GPU: "b200_sxm", Weights: perfmodel.FP4, Mixture: true, Apart: true},
	{Engine: perfmodel.TRTLLM, Model: "deepseek-ai/DeepSeek-V3", GPU: "h200_sxm", Weights: perfmodel.FP8, Mixture: true, Apart: true},
	{Engine: perfmodel.SGLang, Model: "deepseek-ai/DeepSeek-V3", GPU: "gb300", Weights: perfmodel.FP8, Mixture: true, Apart: true},
	{Engine: perfmodel.VLLM, Model: "moonshotai/Kimi-K2.5", GPU: "gb200", Weights: perfmodel.FP4, Mixture: true, Apart: true},
}

// Checked reports whether a group is kept for checking.
func (g Group) Checked() bool { return slices.Contains(checked, g) }

// Split divides rows into those to fit on and those to check on.
func Split(rows []Row) (fit, check []Row) {
	for _, r := range rows {
		if r.Group.Checked() {
			check = append(check, r)
		} else {
			fit = append(fit, r)
		}
	}
	return fit, check
}
