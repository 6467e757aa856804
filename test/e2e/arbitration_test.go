package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/testkit/openloop"
	"github.com/dynamo-operator/dynamo-operator/internal/testkit/summary"
)

// arbitrated is the test whose graphs share a budget of so many GPUs.
const (
	arbitrated     = "TestTwoGraphsShareABudgetByPriority"
	arbitratedGPUs = 4
)

// sharing is a graph of one role. Its answers of ten tokens take three seconds, so that a
// worker that ends has some to finish.
const sharing = `
apiVersion: v1
kind: ConfigMap
metadata: {name: slow}
data:
  prefill_raw_data.json: |
    {"prefill_isl": [1, 4000], "prefill_ttft": [10, 10], "prefill_thpt_per_gpu": [100, 400000]}
  decode_raw_data.json: |
    {"x_kv_usage": [0.01, 1, 0.01, 1], "y_context_length": [100, 100, 4000, 4000],
     "z_itl": [300, 300, 300, 300], "z_thpt_per_gpu": [50, 5000, 50, 5000], "max_kv_tokens": 100000}
---
apiVersion: nvidia.com/v1alpha1
kind: DynamoGraphDeployment
metadata: {name: NAME, annotations: {nvidia.com/scaling-priority: "PRIORITY"}}
spec:
  services:
    Frontend:
      componentType: frontend
      replicas: 1
      extraPodSpec: {mainContainer: {image: "nvcr.io/nvidia/ai-dynamo/vllm-runtime:my-tag"}}
    worker:
      componentType: worker
      replicas: 1
      resources: {limits: {gpu: "1"}}
      extraPodSpec:
        mainContainer:
          image: nvcr.io/nvidia/ai-dynamo/vllm-runtime:my-tag
          command: [python3, -m, dynamo.mocker]
          args: [--model-path, Qwen/Qwen3-0.6B, --planner-profile-data, /profile]
          volumeMounts: [{name: profile, mountPath: /profile, readOnly: true}]
        volumes: [{name: profile, configMap: {name: slow}}]
`

// held is what pods of a namespace had of GPUs, in all states that were seen.
type held struct {
	states, most int
	// ending is the most that pods had which were to end.
	ending int
}

// followGPUs follows the pods of the namespace until it is stopped. A pod has its GPUs
// until it is gone.
func (w world) followGPUs() (stop func() held) {
	w.Helper()
	events, err := w.cluster.Client.Watch(w.ctx, &corev1.PodList{}, client.InNamespace(w.namespace))
	if err != nil {
		w.Fatal(err)
	}
	result := make(chan held, 1)
	go func() {
		var seen held
		all, ending := map[types.UID]int{}, map[types.UID]int{}
		for event := range events.ResultChan() {
			pod, ok := event.Object.(*corev1.Pod)
			if !ok {
				continue
			}
			gpus := 0
			for _, c := range pod.Spec.Containers {
				n := c.Resources.Limits["nvidia.com/gpu"]
				gpus += int(n.Value())
			}
			delete(all, pod.UID)
			delete(ending, pod.UID)
			if event.Type != watch.Deleted {
				all[pod.UID] = gpus
				if pod.DeletionTimestamp != nil {
					ending[pod.UID] = gpus
				}
			}
			seen.states++
			seen.most, seen.ending = max(seen.most, sum(all)), max(seen.ending, sum(ending))
		}
		result <- seen
	}()
	return func() held { events.Stop(); return <-result }
}

func sum(all map[types.UID]int) (n int) {
	for _, one := range all {
		n += one
	}
	return n
}

// limited waits until a graph says by whom it is limited, or with no words that it is not.
func (w world) limited(name string, words ...string) {
	w.Helper()
	w.eventually(fmt.Sprintf("graph %s to be limited: %q", name, words), func(context.Context) error {
		c := meta.FindStatusCondition(w.graph(name).Status.Conditions, v1alpha1.ConditionScalingLimited)
		if (c == nil) != (len(words) == 0) {
			return fmt.Errorf("condition %v", c)
		}
		for _, part := range words {
			if c.Reason != v1alpha1.ReasonBudgetExhausted || !strings.Contains(c.Message, part) {
				return fmt.Errorf("condition %v", c)
			}
		}
		return nil
	})
}

// TestTwoGraphsShareABudgetByPriority: who has the higher priority gets what it asks for
// out of what the other has above its floor, once that has ended, and the other gets it
// back. All the while both are asked, and no answer is lost.
func TestTwoGraphsShareABudgetByPriority(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if t.Name() != arbitrated {
		t.Fatalf("the budget is that of %s", arbitrated)
	}
	gpus := w.followGPUs()
	stops := map[string]func() []openloop.Outcome{}
	for seed, c := range []struct{ name, priority string }{{"low", "1"}, {"high", "7"}} {
		w.applyText(strings.NewReplacer("NAME", c.name, "PRIORITY", c.priority).Replace(sharing))
		url := w.frontendURL(w.ready(c.name))
		w.answers(url)
		stops[c.name] = w.asked(url, openloop.Poisson(4, 10*time.Minute, uint64(seed)))
	}
	wants := func(name string, replicas int) {
		w.patchGraph(name, fmt.Sprintf(`{"spec":{"services":{"worker":{"replicas":%d}}}}`, replicas))
	}
	has := func(name string, replicas int32) {
		w.eventually(fmt.Sprintf("%s to have %d ready workers", name, replicas), func(context.Context) error {
			status := w.graph(name).Status.Services["worker"]
			if n := w.count(name, "worker"); status.ReadyReplicas == nil || *status.ReadyReplicas != replicas || n != int(replicas) {
				return fmt.Errorf("%d pods, status %+v", n, status)
			}
			return nil
		})
	}
	budget := fmt.Sprintf("the budget of namespace %s is %d GPUs", w.namespace, arbitratedGPUs)

	wants("low", 9)
	has("low", 3)
	w.limited("low", "worker has 3 of 9 replicas: "+budget, "held by "+w.namespace+"/high worker")

	wants("high", 2)
	has("high", 2)
	has("low", 2)
	w.limited("high")
	w.limited("low", "worker has 2 of 9 replicas: "+budget, "held by "+w.namespace+"/high worker")
	if said := w.plugin("scale", "explain", "low"); !strings.Contains(said, "worker has 2 of 9 replicas: "+budget) {
		t.Errorf("it is not explained:\n%s", said)
	}

	wants("high", 1)
	has("high", 1)
	has("low", 3)
	wants("low", 2)
	has("low", 2)
	w.limited("low")

	for name, stop := range stops {
		outcomes := stop()
		if failed := openloop.Failed(outcomes); len(failed) > 0 || len(outcomes) == 0 {
			t.Errorf("%s: %d of %d requests failed, the first: %v", name, len(failed), len(outcomes), failed)
		}
		summary.Line(t, "two graphs in one budget: %s was asked %d times, %d failed", name, len(outcomes), len(openloop.Failed(outcomes)))
	}
	seen := gpus()
	if seen.most != arbitratedGPUs || seen.ending == 0 {
		t.Errorf("in %d states pods had %d GPUs at most, the budget is %d; those that were to end had %d", seen.states, seen.most, arbitratedGPUs, seen.ending)
	}
	summary.Line(t, "two graphs in one budget: at most %d of %d GPUs in %d states of the pods, %d of them of pods that ended", seen.most, arbitratedGPUs, seen.states, seen.ending)
}
