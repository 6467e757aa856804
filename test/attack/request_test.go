package attack

import "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

// requestPolicy keeps requests from having graphs made where their author could
// not.
const requestPolicy = "dynamo-operator-request-namespace"

// requestOf asks for a graph that is found by estimation, within seconds. The
// name is the graph's as well.
func requestOf(ns, name, more string) *unstructured.Unstructured {
	return ofOurs("DynamoGraphDeploymentRequest", ns, name, `{model: Qwen/Qwen3-0.6B, backend: vllm, autoApply: true`+more+`, profilingConfig: {profilerImage: "dynamo-profiler:dev",
		config: {sla: {isl: 1000, osl: 50, ttft: 1000, itl: 50}, sweep: {useAiConfigurator: true, aicSystem: h200_sxm}, hardware: {numGpusPerNode: 8, maxNumGpusPerEngine: 1}}}}`)
}

func elsewhereIn(target string) string { return `, deploymentOverrides: {namespace: ` + target + `}` }

func requestFor(ns, target string) *unstructured.Unstructured {
	return requestOf(ns, "r", elsewhereIn(target))
}
