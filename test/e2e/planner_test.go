package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/planner/decision"
	"github.com/dynamo-operator/dynamo-operator/internal/core/planner/journal"
	"github.com/dynamo-operator/dynamo-operator/internal/testkit/openloop"
	"github.com/dynamo-operator/dynamo-operator/internal/testkit/process"
	"github.com/dynamo-operator/dynamo-operator/internal/testkit/summary"
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

// pausePlanned is for how long its planner takes nothing away.
const pausePlanned = 15 * time.Second

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

// asked sends requests at their times until it is stopped, and then tells what became of
// those that were sent.
func (w world) asked(url string, arrivals []time.Duration) (stop func() []openloop.Outcome) {
	ctx, cancel := context.WithCancel(w.ctx)
	w.Cleanup(cancel)
	sent := make(chan []openloop.Outcome, 1)
	go func() {
		sent <- openloop.Run(ctx, arrivals, func(n int) error {
			asking, done := context.WithTimeout(context.WithoutCancel(w.ctx), 2*time.Minute)
			defer done()
			return w.cluster.Chat(asking, url, "Qwen/Qwen3-0.6B", fmt.Sprintf("%d. question of many", n), 10, func(string) {})
		})
	}()
	return func() []openloop.Outcome { cancel(); return <-sent }
}

func later(by time.Duration, arrivals []time.Duration) []time.Duration {
	for i := range arrivals {
		arrivals[i] += by
	}
	return arrivals
}

// prefill waits until as many replicas are wanted as fit, and all are ready.
func (w world) prefill(fits func(replicas int32) bool) func(context.Context) error {
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

func TestAPublishedPlannerScalesItsGraphAndSaysWhy(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.applyText(planned)
	url := w.frontendURL(w.ready("planned"))
	w.answers(url)

	// One prefill replica takes three requests a second, so seven need three or more, and
	// one needs one. Requests go on while replicas end.
	stop := w.asked(url, append(openloop.Poisson(7, time.Minute, 1), later(time.Minute, openloop.Poisson(1, 10*time.Minute, 2))...))
	w.eventually("prefill to grow with its traffic", w.prefill(func(n int32) bool { return n >= 3 }))
	if n := *w.graph("planned").Spec.Services["Prefill"].Replicas; n > 5 {
		t.Errorf("%d replicas of prefill beside one of decode are more than the budget", n)
	}
	w.eventually("prefill to shrink after it", w.prefill(func(n int32) bool { return n == 1 }))
	outcomes := stop()
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
	if seen := w.graph("planned").Status.Services["Prefill"].Startup; seen == nil || seen.Samples < 1 || seen.P95Seconds < seen.P50Seconds {
		t.Errorf("starts took %+v", seen)
	}
	explained, listed := w.plugin("scale", "explain", "planned"), w.plugin("scale", "history", "planned")
	for _, part := range []string{"dynamo-planner in the graph's spec", "prefill needs"} {
		if !strings.Contains(explained, part) {
			t.Errorf("%q is not explained:\n%s", part, explained)
		}
	}
	if !strings.Contains(listed, "NeedGrew") || !strings.Contains(listed, "NeedFell") {
		t.Errorf("the history is\n%s", listed)
	}
	t.Log(explained + listed)
	t.Logf("%d requests, %d failed\n%s", len(outcomes), len(openloop.Failed(outcomes)), told.String())
}

// neverBelow follows what a graph asks for until check is called: no role is ever below a
// floor, whoever is killed and whatever is not seen.
func (w world) neverBelow(graphName string, floor int) (check func()) {
	w.Helper()
	events, err := w.cluster.Client.Watch(w.ctx, &v1alpha1.DynamoGraphDeploymentList{}, client.InNamespace(w.namespace))
	if err != nil {
		w.Fatal(err)
	}
	below := make(chan []string, 1)
	go func() {
		var all []string
		for event := range events.ResultChan() {
			dgd, ok := event.Object.(*v1alpha1.DynamoGraphDeployment)
			if !ok || dgd.Name != graphName || event.Type == watch.Deleted {
				continue
			}
			if asked, _ := engines(dgd); asked.Prefill < floor || asked.Decode < floor {
				all = append(all, fmt.Sprintf("%+v", asked))
			}
		}
		below <- all
	}()
	return func() {
		w.Helper()
		events.Stop()
		if all := <-below; len(all) > 0 {
			w.Errorf("the graph asked for less than %d of a role: %v", floor, all)
		}
	}
}

// plannerOf is the pod of the graph's planner.
func (w world) plannerOf(graphName string) corev1.Pod {
	w.Helper()
	for _, pod := range w.pods(w.ctx) {
		if pod.Labels[v1alpha1.LabelComponentType] == string(v1alpha1.ComponentTypePlanner) && pod.Labels[v1alpha1.LabelGraphName] == graphName {
			return pod
		}
	}
	w.Fatal("there is no planner")
	return corev1.Pod{}
}

var plannerIdleFor = flag.Duration("planner-idle-for", 30*time.Second, "how long an idle planner is watched")

func TestAnIdlePlannerWritesNothingAndIsSmall(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute+*plannerIdleFor)
	defer cancel()
	w.ctx = ctx
	w.applyText(planned)
	w.answers(w.frontendURL(w.ready("planned")))
	byPlanner := func(mark int64) []write {
		return slices.DeleteFunc(w.since(mark), func(one write) bool {
			return one.User.Username != fmt.Sprintf("system:serviceaccount:%s:planner-serviceaccount", w.namespace)
		})
	}
	w.eventually("a planner that sees the graph", func(ctx context.Context) error {
		all, err := w.decisions(ctx, "planned")
		if err == nil && (len(all) == 0 || all[len(all)-1].Reason != "Steady") {
			err = fmt.Errorf("decisions %v", all)
		}
		return err
	})
	mark := w.mark()
	w.wait(*plannerIdleFor)
	if writes := byPlanner(mark); len(writes) > 0 {
		t.Errorf("in %s: %s", *plannerIdleFor, tally(writes))
	}
	if all, err := w.decisions(w.ctx, "planned"); err != nil || all[len(all)-1].Reason != "Steady" {
		t.Errorf("it has not been idle: %v, %v", all, err)
	}
	const most = 40 << 20
	held, err := process.Resident(engineOf(t, w.plannerOf("planned")))
	if err != nil || held >= most {
		t.Errorf("it holds %d bytes, at most %d are to be: %v", held, most, err)
	}
	summary.Line(t, "idle planner: %s, %d mutating requests, %.1f MiB", *plannerIdleFor, len(byPlanner(mark)), float64(held)/(1<<20))
}

func TestReplicasThatNoNodeHasRoomForAreGivenUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	// One node can have one of them.
	apart := `extraPodSpec:
        nodeSelector: {kubernetes.io/hostname: NODE}
        affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {nvidia.com/dynamo-component: Prefill, nvidia.com/dynamo-graph-deployment-name: planned}}}]}}`
	var nodes corev1.NodeList
	if err := w.cluster.Client.List(w.ctx, &nodes); err != nil {
		t.Fatal(err)
	}
	at := strings.LastIndex(planned, "extraPodSpec:")
	w.applyText(planned[:at] + strings.Replace(apart, "NODE", nodes.Items[0].Labels["kubernetes.io/hostname"], 1) + planned[at+len("extraPodSpec:"):])
	url := w.frontendURL(w.ready("planned"))
	w.answers(url)
	stop := w.asked(url, openloop.Poisson(5, 10*time.Minute, 3))
	var all []journal.Record
	w.eventually("replicas without a node to be given up", func(ctx context.Context) (err error) {
		if all, err = w.decisions(ctx, "planned"); err != nil {
			return err
		}
		// What was not written has been decided again.
		all = slices.DeleteFunc(all, func(r journal.Record) bool { return r.Failed != "" })
		if !slices.ContainsFunc(all, func(r journal.Record) bool { return r.Reason == "Unschedulable" }) {
			return fmt.Errorf("decisions %v", all)
		}
		return nil
	})
	stop()
	grew := slices.IndexFunc(all, func(r journal.Record) bool { return r.To.Prefill > r.From.Prefill })
	gave := slices.IndexFunc(all, func(r journal.Record) bool { return r.Reason == "Unschedulable" })
	// That it is after a minute is what the planner's own test shows, on a clock that a
	// busy machine does not stop.
	if grew < 0 || gave < grew || all[gave].To.Prefill >= all[gave].From.Prefill || !strings.Contains(all[gave].Limited, "no node has room") {
		t.Fatalf("they were not given up after they were asked for: %v", all)
	}
	w.eventually("the floor", w.prefill(func(n int32) bool { return n == 1 }))
	took := all[gave].At.Sub(all[grew].At)
	if *scaling && took > 90*time.Second {
		t.Errorf("they were given up after %s, at most 90 s are to pass", took)
	}
	summary.Line(t, "replicas without a node: given up after %s, then the floor: %v", took.Round(time.Second), all[gave].Words)
}

// TestNothingIsLostWhoeverIsKilled kills the planner and the operator while replicas
// start. Not parallel: the operator is that of other tests.
func TestNothingIsLostWhoeverIsKilled(t *testing.T) {
	w := newWorld(t)
	most := w.mostPods("Decode", "Prefill")
	w.applyText(planned)
	url := w.frontendURL(w.ready("planned"))
	w.answers(url)
	floors := w.neverBelow("planned", 1)
	mark := w.mark()
	stop := w.asked(url, openloop.Poisson(7, 10*time.Minute, 4))
	w.eventually("a first step", func(context.Context) error {
		if n := *w.graph("planned").Spec.Services["Prefill"].Replicas; n < 2 {
			return fmt.Errorf("%d replicas of prefill", n)
		}
		return nil
	})
	killed := time.Now()
	kill(t, engineOf(t, w.plannerOf("planned")))
	w.killOperator()
	w.eventually("prefill to grow with its traffic", w.prefill(func(n int32) bool { return n >= 3 }))
	w.eventually("decisions of the planner that came back", func(ctx context.Context) error {
		told, err := w.decisions(ctx, "planned")
		if err == nil && len(told) < 3 {
			err = fmt.Errorf("%d decisions", len(told))
		}
		return err
	})
	outcomes := stop()
	if failed := openloop.Failed(outcomes); len(failed) > 0 {
		t.Errorf("%d of %d requests failed, the first: %v", len(failed), len(outcomes), failed[0].Err)
	}
	floors()
	if n := most(); n > 6 {
		t.Errorf("%d pods had GPUs at once, the budget is 6", n)
	}
	for _, one := range w.since(mark) {
		// One that comes back knows of no need before its own: it pauses first.
		if after := one.Received.Sub(killed); one.Ref.Resource == "pods" && one.Verb == "delete" && after < pausePlanned {
			t.Errorf("%s deleted a pod %s after the planner was killed", one.User.Username, after)
		}
	}
}

// cutMetrics has the planner ask, beside the graph's frontend, one that nobody can reach:
// what it does not answer to may be any number of requests.
func (w world) cutMetrics(dgd *v1alpha1.DynamoGraphDeployment) (restore func()) {
	w.Helper()
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: w.namespace, Name: "unreachable", Labels: map[string]string{discoveryv1.LabelServiceName: graph.ServiceName(dgd.Name, "Frontend")}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{"10.255.255.254"}, Conditions: discoveryv1.EndpointConditions{Ready: new(true)}}},
		Ports:       []discoveryv1.EndpointPort{{Name: new("http"), Port: new(int32(8000))}},
	}
	w.create(slice)
	return func() {
		w.Helper()
		if err := w.cluster.Client.Delete(w.ctx, slice); err != nil {
			w.Fatal(err)
		}
	}
}

// told waits until the planner's last decision fits.
func (w world) told(what string, fits func(journal.Record) bool) (last journal.Record) {
	w.Helper()
	w.eventually(what, func(ctx context.Context) error {
		all, err := w.decisions(ctx, "planned")
		if err != nil {
			return err
		}
		if len(all) == 0 || !fits(all[len(all)-1]) {
			return fmt.Errorf("decisions %v", all)
		}
		last = all[len(all)-1]
		return nil
	})
	return last
}

// TestAPlannerWithoutMetricsKeepsWhatThereIs cuts the metrics while replicas start. What
// was begun is finished, nothing is taken away though traffic has gone, the graph says
// why, and it is scaled again once metrics are back.
func TestAPlannerWithoutMetricsKeepsWhatThereIs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	most := w.mostPods("Decode", "Prefill")
	// A machine that others keep busy makes answers late, and is not to be made up for by
	// replicas here.
	w.applyText(strings.NewReplacer("--is-prefill-worker,", "--is-prefill-worker, --startup-time=10,", "--max-gpu-budget=6,", "--max-gpu-budget=6, --no-correction,").Replace(planned))
	dgd := w.ready("planned")
	w.answers(w.frontendURL(dgd))
	// The Service has the one that nobody reaches, too.
	url := fmt.Sprintf("http://%s:8000", w.podOf("planned", "Frontend").Status.PodIP)
	high := w.asked(url, openloop.Poisson(7, 10*time.Minute, 5))
	w.eventually("prefill to grow", func(context.Context) error {
		if n := *w.graph("planned").Spec.Services["Prefill"].Replicas; n < 2 {
			return fmt.Errorf("%d replicas of prefill", n)
		}
		return nil
	})
	floors := w.neverBelow("planned", 1)
	restore := w.cutMetrics(dgd)
	mark := w.mark()
	blind := w.told("a planner that sees nothing", func(r journal.Record) bool { return r.Reason == decision.Blind })
	if ready := w.graph("planned").Status.Services["Prefill"].ReadyReplicas; ready == nil || int(*ready) >= blind.To.Prefill {
		t.Errorf("no move was under way: %v replicas of prefill are ready", ready)
	}
	outcomes := high() // from now on nobody asks
	cut := time.Now()
	w.eventually("the graph to say that its planner sees nothing", func(context.Context) error {
		c := meta.FindStatusCondition(w.graph("planned").Status.Conditions, v1alpha1.ConditionScalingLimited)
		if c == nil || c.Reason != v1alpha1.ReasonMetricsUnavailable || !strings.Contains(c.Message, "frontend 10.255.255.254:8000") {
			return fmt.Errorf("condition %v", c)
		}
		return nil
	})
	w.eventually("what was begun to be finished", w.prefill(func(n int32) bool { return int(n) == blind.To.Prefill }))
	// A planner that saw would take replicas away after this.
	w.wait(2*pausePlanned - time.Since(cut))
	last := w.told("the same", func(journal.Record) bool { return true })
	if n := *w.graph("planned").Spec.Services["Prefill"].Replicas; int(n) != blind.To.Prefill || last.Reason != decision.Blind {
		t.Errorf("unseen, %d replicas of prefill became %d: %v", blind.To.Prefill, n, last)
	}
	for _, one := range w.since(mark) {
		if one.Ref.Resource == "pods" && one.Verb == "delete" {
			t.Errorf("%s deleted a pod", one.User.Username)
		}
	}

	restore()
	restoredAfter := time.Since(cut)
	w.told("a planner that sees again", func(r journal.Record) bool { return r.Reason != decision.Blind })
	low := w.asked(url, openloop.Poisson(0.5, 10*time.Minute, 6))
	w.eventually("prefill to shrink again", w.prefill(func(n int32) bool { return n == 1 }))
	w.eventually("nothing to be limited", func(context.Context) error {
		if c := meta.FindStatusCondition(w.graph("planned").Status.Conditions, v1alpha1.ConditionScalingLimited); c != nil {
			return fmt.Errorf("condition %v", c)
		}
		return nil
	})
	outcomes = append(outcomes, low()...)
	floors()
	if failed := openloop.Failed(outcomes); len(failed) > 0 {
		t.Errorf("%d of %d requests failed, the first: %v", len(failed), len(outcomes), failed[0].Err)
	}
	if n := most(); n > 6 {
		t.Errorf("%d pods had GPUs at once, the budget is 6", n)
	}
	summary.Line(t, "metrics cut for %s: %d replicas of prefill kept, %d requests, %d failed", restoredAfter.Round(time.Second), blind.To.Prefill, len(outcomes), len(openloop.Failed(outcomes)))
}
