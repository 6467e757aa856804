package config

import (
	"cmp"
	"encoding/json"
	"fmt"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/dynamo-operator/dynamo-operator/api/v1beta1"
)

// Fields reads a configuration of either contract into the keys of the older one:
// a request of v1beta1, which names its model at the top, or a configuration as it
// stands in a request of v1alpha1. Of the former it also returns what has no key.
func Fields(text string) (map[string]any, *Request, error) {
	var fields map[string]any
	if err := yaml.Unmarshal([]byte(text), &fields); err != nil {
		return nil, nil, Invalid{err.Error()}
	}
	if _, ok := fields["model"].(string); !ok {
		if fields == nil {
			fields = map[string]any{}
		}
		return fields, nil, nil
	}
	var spec v1beta1.DynamoGraphDeploymentRequestSpec
	if err := yaml.UnmarshalStrict([]byte(text), &spec); err != nil {
		return nil, nil, Invalid{err.Error()}
	}
	return ofRequest(spec)
}

// Goals of a request of v1beta1 that names none, in milliseconds, by what it wants
// to be good at.
var goals = map[string]struct{ ttft, itl float64 }{
	"":           {2000, 30},
	"latency":    {500, 15},
	"throughput": {5000, 60},
}

// firstShare is the part of a whole request's time that the first token may take,
// where only the whole is given.
const firstShare = 0.2

// Sizes of requests unless they are given.
const (
	requestISL = 4000
	requestOSL = 1000
)

// ofRequest turns a request of v1beta1 into keys.
func ofRequest(spec v1beta1.DynamoGraphDeploymentRequestSpec) (map[string]any, *Request, error) {
	request := &Request{Image: spec.Image}
	var modes []any
	if f := spec.Features; f != nil {
		request.Mocker = f.Mocker != nil && f.Mocker.Enabled
		if f.Planner != nil {
			if err := json.Unmarshal(f.Planner.Raw, &request.Planner); err != nil {
				return nil, nil, Invalid{fmt.Sprintf("features.planner: %v", err)}
			}
		}
		if request.Planner["enabled"] == false {
			request.Planner = nil
		}
		switch request.Planner["mode"] {
		case "disagg", "prefill", "decode":
			modes = []any{string(Disaggregated)}
		case "agg":
			modes = []any{string(Aggregated)}
		}
	}
	sla, rate := goal(spec)
	hardware := hardwareOf(spec.Hardware, rate > 0)
	fields := map[string]any{
		"deployment": map[string]any{"model": spec.Model},
		"engine":     map[string]any{"backend": cmp.Or(spec.Backend, string(Auto))},
		"hardware":   hardware,
		"sweep":      map[string]any{"useAiConfigurator": spec.SearchStrategy != v1beta1.SearchStrategyThorough, "modes": modes},
		"sla":        sla,
	}
	if c := spec.ModelCache; c != nil && c.PVCName != "" {
		fields["deployment"].(map[string]any)["modelCache"] = map[string]any{
			"pvcName": c.PVCName, "pvcPath": c.PVCModelPath, "mountPath": cmp.Or(c.PVCMountPath, "/opt/model-cache"),
		}
	}
	return fields, request, nil
}

// goal is what a request wants to reach, and the rate that it is sized for. A
// number of requests at a time comes at the rate at which they are answered in
// time.
func goal(spec v1beta1.DynamoGraphDeploymentRequestSpec) (sla map[string]any, rate float64) {
	workload, want := ptr.Deref(spec.Workload, v1beta1.Workload{}), ptr.Deref(spec.SLA, v1beta1.SLA{})
	isl, osl := ptr.Deref(workload.ISL, requestISL), ptr.Deref(workload.OSL, requestOSL)
	byDefault := goals[want.OptimizationType]
	if want.E2ELatency != nil {
		byDefault.ttft = *want.E2ELatency * firstShare
		byDefault.itl = *want.E2ELatency * (1 - firstShare) / float64(max(1, osl-1))
	}
	ttft, itl := ptr.Deref(want.TTFT, byDefault.ttft), ptr.Deref(want.ITL, byDefault.itl)
	switch whole := (ttft + itl*float64(max(0, osl-1))) / 1000; {
	case workload.RequestRate != nil:
		rate = *workload.RequestRate
	case workload.Concurrency != nil && whole > 0:
		rate = *workload.Concurrency / whole
	}
	return map[string]any{"isl": float64(isl), "osl": float64(osl), "ttft": ttft, "itl": itl, "requestRate": rate}, rate
}

func hardwareOf(h *v1beta1.Hardware, sized bool) map[string]any {
	fields := map[string]any{}
	if h == nil {
		return fields
	}
	if h.GPUSKU != "" {
		fields["gpuType"] = h.GPUSKU
	}
	if h.NumGPUsPerNode != nil {
		fields["numGpusPerNode"] = float64(*h.NumGPUsPerNode)
		fields["maxNumGpusPerEngine"] = float64(*h.NumGPUsPerNode)
	}
	if h.TotalGPUs != nil && *h.TotalGPUs > 0 {
		fields["totalGpus"] = float64(*h.TotalGPUs)
		if sized {
			fields["gpuBudget"] = float64(*h.TotalGPUs)
		}
		if h.NumGPUsPerNode != nil {
			fields["maxNumGpusPerEngine"] = float64(min(*h.NumGPUsPerNode, *h.TotalGPUs))
		}
	}
	return fields
}
