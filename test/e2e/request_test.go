package e2e

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/profileoutput"
	"github.com/dynamo-operator/dynamo-operator/internal/profiler/load"
	"github.com/dynamo-operator/dynamo-operator/internal/profiler/openai"
	"github.com/dynamo-operator/dynamo-operator/internal/testkit/summary"
	"github.com/dynamo-operator/dynamo-operator/test/corpus"
)

var measure = flag.Bool("measure", false, "hold measured latencies against the targets of requests; needs a quiet machine")

// goal is a request in YAML: its spec, and the configuration of its profiler.
type goal struct{ name, spec, config string }

// ask applies a request to our profiler, with annotations as "key: value".
func (w world) ask(g goal, annotations ...string) {
	w.Helper()
	text := fmt.Sprintf(`apiVersion: nvidia.com/v1alpha1
kind: DynamoGraphDeploymentRequest
metadata: {name: %s, annotations: {%s}}
spec:
  %s
  profilingConfig: {profilerImage: "dynamo-profiler:dev", config: %s}
`, g.name, strings.Join(annotations, ", "), strings.ReplaceAll(g.spec, "\n", "\n  "), g.config)
	w.applyText(text)
}

func (w world) request(name string) *v1alpha1.DynamoGraphDeploymentRequest {
	w.Helper()
	r := &v1alpha1.DynamoGraphDeploymentRequest{}
	if err := w.cluster.Client.Get(w.ctx, w.key(name), r); err != nil {
		w.Fatal(err)
	}
	return r
}

// reach waits for a request to come to a state. What it says is more than the
// error, and so is what its profiler says.
func (w world) reach(name string, want v1alpha1.RequestState) *v1alpha1.DynamoGraphDeploymentRequest {
	w.Helper()
	r := &v1alpha1.DynamoGraphDeploymentRequest{}
	err := w.cluster.Eventually(w.ctx, fmt.Sprintf("request %s to be %s", name, want), func(ctx context.Context) error {
		if err := w.cluster.Client.Get(ctx, w.key(name), r); err != nil {
			return err
		}
		if r.Status.State != want {
			return fmt.Errorf("it is %q", r.Status.State)
		}
		return nil
	})
	if err != nil {
		logs, _ := w.cluster.Kubectl(context.WithoutCancel(w.ctx), nil, "logs", "-n", w.namespace, "-l", "job-name=profile-"+name, "--all-containers", "--tail=30")
		w.Fatalf("%v\n%+v\n%s", err, r.Status.Conditions, logs)
	}
	return r
}

// condition is what a request says under one type.
func condition(r *v1alpha1.DynamoGraphDeploymentRequest, kind string) metav1.Condition {
	if c := meta.FindStatusCondition(r.Status.Conditions, kind); c != nil {
		return *c
	}
	return metav1.Condition{}
}

const sla = `sla: {isl: 1000, osl: 50, ttft: 1000, itl: 50}`

// TestRequestsBecomeGraphsThatAnswer goes from a goal to an answer: estimated
// and measured, dense and of experts, with the engines and with mock engines.
func TestRequestsBecomeGraphsThatAnswer(t *testing.T) {
	t.Parallel()
	for _, g := range []goal{
		{"dense-estimated", "model: Qwen/Qwen3-32B\nbackend: vllm\nautoApply: true\nuseMocker: true",
			`{` + sla + `, sweep: {useAiConfigurator: true, aicSystem: h200_sxm}, hardware: {numGpusPerNode: 8, maxNumGpusPerEngine: 8}}`},
		{"experts-estimated", "model: Qwen/Qwen3-235B-A22B-FP8\nbackend: vllm\nautoApply: true\nuseMocker: true\nenableGpuDiscovery: true",
			`{` + sla + `, sweep: {useAiConfigurator: true}}`},
		{"dense-measured", "model: Qwen/Qwen3-0.6B\nbackend: vllm\nautoApply: true\nenableGpuDiscovery: true",
			`{` + sla + `, sweep: {maxMeasured: 1, requests: 3, modes: [aggregated]}, hardware: {maxNumGpusPerEngine: 2}}`},
		{"experts-measured", "model: Qwen/Qwen3-30B-A3B\nbackend: vllm\nautoApply: true\nuseMocker: true\nenableGpuDiscovery: true",
			`{` + sla + `, sweep: {maxMeasured: 1, requests: 3, modes: [aggregated]}, hardware: {maxNumGpusPerEngine: 2}}`},
	} {
		t.Run(g.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.ask(g)
			r := w.reach(g.name, v1alpha1.RequestStateReady)
			for _, kind := range []string{v1alpha1.ConditionValidation, v1alpha1.ConditionProfiling, v1alpha1.ConditionSpecGenerated, v1alpha1.ConditionDeploymentReady} {
				if c := condition(r, kind); c.Status != metav1.ConditionTrue {
					t.Errorf("it is ready, but %s is %s: %s", kind, c.Status, c.Message)
				}
			}
			dgd := w.graph(g.name)
			if dgd.Labels[v1alpha1.LabelRequestName] != g.name || dgd.Labels[v1alpha1.LabelRequestNamespace] != w.namespace {
				t.Errorf("the graph's labels lead elsewhere: %v", dgd.Labels)
			}
			w.answers(w.frontendURL(dgd))
			w.withinTargets(r, dgd)
			w.eventually("only the graph that was asked for", func(ctx context.Context) error {
				var graphs v1alpha1.DynamoGraphDeploymentList
				if err := w.cluster.Client.List(ctx, &graphs, client.InNamespace(w.namespace)); err != nil {
					return err
				}
				if len(graphs.Items) != 1 {
					return fmt.Errorf("%d graphs are left", len(graphs.Items))
				}
				return nil
			})
		})
	}
}

// withinTargets puts load on a graph and says what came of it, beside what was
// promised.
func (w world) withinTargets(r *v1alpha1.DynamoGraphDeploymentRequest, dgd *v1alpha1.DynamoGraphDeployment) {
	w.Helper()
	requests, users := 3, 1
	if *measure {
		requests, users = 50, 4
	}
	c := load.Client{Client: openai.Client{URL: w.frontendURL(dgd), HTTP: w.cluster.HTTP}, Model: r.Spec.Model}
	var s load.Summary
	w.eventually("load to be taken", func(ctx context.Context) (err error) {
		s, err = c.Run(ctx, load.Shape{ISL: 1000, OSL: 50, Concurrency: users, Requests: requests, Warmups: 1})
		return err
	})
	summary.Line(w.T, "request %s: %s; load of %d, %d at once: ttft p50 %.1f ms of 1000, itl p50 %.1f ms of 50; promised %s",
		r.Name, condition(r, v1alpha1.ConditionSpecGenerated).Message, s.Requests, users, s.TTFT.P50, s.ITL.P50, condition(r, v1alpha1.ConditionTargetsMet).Message)
	w.tellTrial(r.Name)
	if *measure && (s.TTFT.P50 > 1000 || s.ITL.P50 > 50) {
		w.Errorf("the graph misses its targets: ttft %.1f ms, itl %.1f ms", s.TTFT.P50, s.ITL.P50)
	}
}

// tellTrial says what an online profile found beside what the model said.
func (w world) tellTrial(request string) {
	w.Helper()
	var output corev1.ConfigMap
	if err := w.cluster.Client.Get(w.ctx, w.key("dgdr-output-"+request), &output); err != nil {
		w.Fatal(err)
	}
	for line := range strings.Lines(output.Data[profileoutput.KeyReportText]) {
		if trial, ok := strings.CutPrefix(line, "Measured "); ok {
			summary.Line(w.T, "request %s: online profile with %s", request, strings.TrimSpace(trial))
		}
	}
}

// TestRequestsThatCannotBeAnsweredSayWhy covers the ways in which there is no
// graph in the end.
func TestRequestsThatCannotBeAnsweredSayWhy(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		goal     goal
		notes    []string
		want     string
		contains string
	}{
		"no configuration fits": {
			goal: goal{"too-big", "model: meta-llama/Llama-3.1-405B\nbackend: vllm\nautoApply: true",
				`{` + sla + `, sweep: {useAiConfigurator: true, aicSystem: h200_sxm}, hardware: {numGpusPerNode: 8, maxNumGpusPerEngine: 1}}`},
			want: string(profileoutput.ReasonNoConfiguration), contains: "GPU",
		},
		"nobody knows the model": {
			goal: goal{"who", "model: nobody/knows-1B\nbackend: vllm", `{` + sla + `, sweep: {useAiConfigurator: true, aicSystem: h200_sxm}}`},
			want: string(profileoutput.ReasonUnknownModel), contains: "nobody/knows-1B",
		},
		"the profiler hangs": {
			goal: goal{"hang", "model: Qwen/Qwen3-0.6B\nbackend: vllm",
				`{` + sla + `, sweep: {maxMeasured: 1, modes: [aggregated]}, hardware: {gpuType: NVIDIA-H200, numGpusPerNode: 16, minNumGpusPerEngine: 16, maxNumGpusPerEngine: 16}}`},
			notes: []string{v1alpha1.AnnotationProfilingDeadline + ": 20s"},
			want:  v1alpha1.ReasonProfilingTimedOut, contains: "20s",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.ask(test.goal, test.notes...)
			c := condition(w.reach(test.goal.name, v1alpha1.RequestStateFailed), v1alpha1.ConditionProfiling)
			if c.Reason != test.want || !strings.Contains(c.Message, test.contains) {
				t.Errorf("it failed for %s: %s", c.Reason, c.Message)
			}
			t.Logf("%s: %s", c.Reason, c.Message)
			w.eventually("graphs that were tried out to be gone", func(ctx context.Context) error {
				var graphs v1alpha1.DynamoGraphDeploymentList
				if err := w.cluster.Client.List(ctx, &graphs, client.InNamespace(w.namespace)); err != nil {
					return err
				}
				if len(graphs.Items) > 0 {
					return fmt.Errorf("%d are left", len(graphs.Items))
				}
				return nil
			})
		})
	}
}

// TestAProfilerOfOthersThatCrashesFailsTheRequest runs a program that does not
// know the arguments it is given. The collector beside it must not wait on.
func TestAProfilerOfOthersThatCrashesFailsTheRequest(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.applyText(`apiVersion: nvidia.com/v1alpha1
kind: DynamoGraphDeploymentRequest
metadata: {name: crash}
spec:
  model: Qwen/Qwen3-0.6B
  backend: vllm
  profilingConfig: {profilerImage: "registry.example/kubectl-dynamo:1", config: {}}
`)
	c := condition(w.reach("crash", v1alpha1.RequestStateFailed), v1alpha1.ConditionProfiling)
	if c.Reason != v1alpha1.ReasonProfilerCrashed || !strings.Contains(c.Message, "container profiler ended with exit code") {
		t.Errorf("it failed for %s: %s", c.Reason, c.Message)
	}
}

func TestAProfilerThatIsEvictedIsRunAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.ask(goal{"evicted", "model: Qwen/Qwen3-0.6B\nbackend: vllm",
		`{` + sla + `, sweep: {maxMeasured: 1, modes: [aggregated]}, hardware: {gpuType: NVIDIA-H200, numGpusPerNode: 16, minNumGpusPerEngine: 16, maxNumGpusPerEngine: 16}}`})
	first := w.profiler("evicted", "")
	if _, err := w.cluster.Kubectl(w.ctx, nil, "delete", "pod", "-n", w.namespace, first, "--wait=false"); err != nil {
		t.Fatal(err)
	}
	w.profiler("evicted", first)
	w.eventually("the request to tell of it", func(context.Context) error {
		c := condition(w.request("evicted"), v1alpha1.ConditionProfiling)
		if !strings.Contains(c.Message, "attempt 2 of 4") {
			return errors.New(c.Message)
		}
		return nil
	})
}

// profiler waits for a running pod of a request's profiler other than one.
func (w world) profiler(request, other string) string {
	w.Helper()
	var name string
	w.eventually("a profiler of "+request, func(ctx context.Context) error {
		for _, pod := range w.pods(ctx) {
			if pod.Labels[batchv1.JobNameLabel] == "profile-"+request && pod.Name != other && pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil {
				name = pod.Name
				return nil
			}
		}
		return errors.New("there is none")
	})
	return name
}

func TestTheGraphOfARequestIsNeverSomebodyElses(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	foreign := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "nvidia.com/v1alpha1", "kind": "DynamoGraphDeployment",
		"metadata": map[string]any{"name": "mine", "namespace": w.namespace},
		"spec":     map[string]any{"services": map[string]any{"Frontend": map[string]any{"componentType": "frontend", "replicas": int64(0)}}},
	}}
	w.create(foreign)
	w.ask(goal{"taken", "model: Qwen/Qwen3-0.6B\nbackend: vllm\nautoApply: true\nuseMocker: true\ndeploymentOverrides: {name: mine, labels: {team: a}, annotations: {note: b}}",
		`{` + sla + `, sweep: {useAiConfigurator: true, aicSystem: h200_sxm}}`})
	w.eventually("the request to say that the name is taken", func(context.Context) error {
		if c := condition(w.request("taken"), v1alpha1.ConditionDeploymentReady); c.Reason != v1alpha1.ReasonDeploymentNameTaken {
			return fmt.Errorf("it says %s: %s", c.Reason, c.Message)
		}
		return nil
	})
	if labels := w.graph("mine").Labels; len(labels) > 0 {
		t.Errorf("the graph of somebody else was written to: %v", labels)
	}
	if err := w.cluster.Client.Delete(w.ctx, foreign); err != nil {
		t.Fatal(err)
	}
	w.reach("taken", v1alpha1.RequestStateReady)
	dgd := w.graph("mine")
	if dgd.Labels["team"] != "a" || dgd.Annotations["note"] != "b" {
		t.Errorf("overrides are missing: %v %v", dgd.Labels, dgd.Annotations)
	}

	// Deleting it is told, and it stays deleted.
	if err := w.cluster.Client.Delete(w.ctx, dgd); err != nil {
		t.Fatal(err)
	}
	w.reach("taken", v1alpha1.RequestStateDeploymentDeleted)
	w.gone(&v1alpha1.DynamoGraphDeployment{}, "mine")

	// Deleting the request takes its Job and ConfigMaps along.
	if err := w.cluster.Client.Delete(w.ctx, w.request("taken")); err != nil {
		t.Fatal(err)
	}
	w.gone(&batchv1.Job{}, "profile-taken")
	w.gone(&corev1.ConfigMap{}, "dgdr-output-taken")
}

// TestPublishedRequestsBecomeReady applies the published requests as they are:
// their profiler is one of others, played by ours.
func TestPublishedRequestsBecomeReady(t *testing.T) {
	t.Parallel()
	for _, d := range corpus.All(t) {
		if d.Object.GetKind() != v1alpha1.KindDynamoGraphDeploymentRequest {
			continue
		}
		t.Run(d.Object.GetName(), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			// Nobody bounded how many candidates are measured, as a test would.
			var cancel context.CancelFunc
			w.ctx, cancel = context.WithTimeout(t.Context(), 10*time.Minute)
			t.Cleanup(cancel)
			object := &unstructured.Unstructured{}
			if err := object.UnmarshalJSON(d.JSON); err != nil {
				t.Fatal(err)
			}
			object.SetNamespace(w.namespace)
			if err := w.cluster.Apply(w.ctx, []*unstructured.Unstructured{object}); err != nil {
				t.Fatal(err)
			}
			r := w.reach(object.GetName(), v1alpha1.RequestStateReady)
			w.answers(w.frontendURL(w.graph(r.Status.Deployment.Name)))
		})
	}
}
