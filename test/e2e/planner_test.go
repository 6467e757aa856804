package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/planner/journal"
	"github.com/dynamo-operator/dynamo-operator/internal/testkit/openloop"
)

// planned is a graph as published ones with a planner are, but for its engines: a prompt
// takes them 300 ms, as the profile says that both mount.
const planned = `
apiVersion: v1
kind: ConfigMap
metadata: {name: planner-profile-data}
data:
  prefill_raw_data.json: |
    {"prefill_isl": [1, 500, 1000, 2000, 4000], "prefill_ttft": [300, 300, 300, 300, 600],
     "prefill_thpt_per_gpu": [3, 1666, 3333, 6666, 6666]}
  decode_raw_data.json: |
    {"x_kv_usage": [0.01, 0.5, 1, 0.01, 0.5, 1], "y_context_length": [100, 100, 100, 4000, 4000, 4000],
     "z_itl": [5, 10, 20, 5, 10, 20], "z_thpt_per_gpu": [2000, 50000, 50000, 50, 1250, 1250], "max_kv_tokens": 100000}
---
apiVersion: nvidia.com/v1alpha1
kind: DynamoGraphDeployment
metadata: {name: planned}
spec:
  services:
    Frontend:
      componentType: frontend
      replicas: 1
      extraPodSpec: {mainContainer: {image: "nvcr.io/nvidia/ai-dynamo/vllm-runtime:my-tag"}}
    Planner:
      componentType: planner
      replicas: 1
      extraPodSpec:
        mainContainer:
          image: nvcr.io/nvidia/ai-dynamo/vllm-runtime:my-tag
          workingDir: /workspace/components/src/dynamo/planner
          command: [python3, -m, planner_sla]
          args: [--environment=kubernetes, --backend=mocker, --adjustment-interval=60, --ttft=900, --itl=50, --max-gpu-budget=6,
            --scale-down-pause=15, --profile-results-dir=/workspace/profiling_results]
          volumeMounts: [{name: planner-profile-data, mountPath: /workspace/profiling_results, readOnly: true}]
        volumes: [{name: planner-profile-data, configMap: {name: planner-profile-data}}]
    Decode:
      componentType: worker
      subComponentType: decode
      replicas: 1
      resources: {limits: {gpu: "1"}}
      extraPodSpec:
        mainContainer:
          image: nvcr.io/nvidia/ai-dynamo/vllm-runtime:my-tag
          command: [python3, -m, dynamo.mocker]
          args: [--model-path, Qwen/Qwen3-0.6B, --planner-profile-data, /workspace/profiling_results]
          volumeMounts: [{name: planner-profile-data, mountPath: /workspace/profiling_results, readOnly: true}]
        volumes: [{name: planner-profile-data, configMap: {name: planner-profile-data}}]
    Prefill:
      componentType: worker
      subComponentType: prefill
      replicas: 1
      resources: {limits: {gpu: "1"}}
      extraPodSpec:
        mainContainer:
          image: nvcr.io/nvidia/ai-dynamo/vllm-runtime:my-tag
          command: [python3, -m, dynamo.mocker]
          args: [--model-path, Qwen/Qwen3-0.6B, --is-prefill-worker, --planner-profile-data, /workspace/profiling_results]
          volumeMounts: [{name: planner-profile-data, mountPath: /workspace/profiling_results, readOnly: true}]
        volumes: [{name: planner-profile-data, configMap: {name: planner-profile-data}}]
`

// decisions are those that a graph's planner tells.
func (w world) decisions(ctx context.Context, graphName string) ([]journal.Record, error) {
	w.Helper()
	for _, pod := range w.pods(ctx) {
		if pod.Labels[v1alpha1.LabelComponentType] != string(v1alpha1.ComponentTypePlanner) || pod.Labels[v1alpha1.LabelGraphName] != graphName {
			continue
		}
		text, err := w.cluster.Kubectl(ctx, nil, "get", "--raw", fmt.Sprintf("/api/v1/namespaces/%s/pods/%s:9085/proxy/decisions", w.namespace, pod.Name))
		if err != nil {
			return nil, err
		}
		var all []journal.Record
		err = json.Unmarshal([]byte(text), &all)
		return all, err
	}
	return nil, errors.New("there is no planner")
}

func TestAPublishedPlannerScalesItsGraphAndSaysWhy(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.applyText(planned)
	url := w.frontendURL(w.ready("planned"))
	w.answers(url)

	// One prefill replica takes three requests a second, so seven need three or more, and
	// one needs one. Requests go on while replicas end.
	ctx, stop := context.WithCancel(w.ctx)
	defer stop()
	sent := make(chan []openloop.Outcome, 1)
	go func() {
		arrivals := openloop.Poisson(7, time.Minute, 1)
		for _, at := range openloop.Poisson(1, 10*time.Minute, 2) {
			arrivals = append(arrivals, time.Minute+at)
		}
		sent <- openloop.Run(ctx, arrivals, func(n int) error {
			asking, cancel := context.WithTimeout(context.WithoutCancel(w.ctx), 2*time.Minute)
			defer cancel()
			return w.cluster.Chat(asking, url, "Qwen/Qwen3-0.6B", fmt.Sprintf("%d. question of many", n), 10, func(string) {})
		})
	}()
	prefill := func(fits func(replicas int32) bool) func(context.Context) error {
		return func(ctx context.Context) error {
			dgd := w.graph("planned")
			n := *dgd.Spec.Services["Prefill"].Replicas
			if ready := dgd.Status.Services["Prefill"].ReadyReplicas; !fits(n) || ready == nil || *ready != n {
				all, err := w.decisions(ctx, "planned")
				return fmt.Errorf("%d replicas of prefill; decisions %v, %w", n, all, err)
			}
			return nil
		}
	}
	w.eventually("prefill to grow with its traffic", prefill(func(n int32) bool { return n >= 3 }))
	if n := *w.graph("planned").Spec.Services["Prefill"].Replicas; n > 5 {
		t.Errorf("%d replicas of prefill beside one of decode are more than the budget", n)
	}
	w.eventually("prefill to shrink after it", prefill(func(n int32) bool { return n == 1 }))
	stop()
	outcomes := <-sent

	if failed := openloop.Failed(outcomes); len(failed) > 0 {
		t.Errorf("%d of %d requests failed, the first: %v", len(failed), len(outcomes), failed[0].Err)
	}
	all, err := w.decisions(w.ctx, "planned")
	if err != nil {
		t.Fatal(err)
	}
	var told strings.Builder
	for _, r := range all {
		fmt.Fprintln(&told, r.At.Format(time.TimeOnly), strings.Join(r.Words, "\n         "))
	}
	for _, part := range []string{"NeedGrew", "NeedFell", "prefill needs", "the profile that it was given"} {
		if !strings.Contains(told.String(), part) {
			t.Errorf("%q is not told:\n%s", part, told.String())
		}
	}
	var plan journal.Record
	if err := json.Unmarshal([]byte(w.graph("planned").Annotations[v1alpha1.AnnotationScalePlan]), &plan); err != nil || plan.To.Prefill != 1 {
		t.Errorf("the graph keeps plan %+v, %v", plan, err)
	}
	t.Logf("%d requests, %d failed\n%s", len(outcomes), len(openloop.Failed(outcomes)), told.String())
}
