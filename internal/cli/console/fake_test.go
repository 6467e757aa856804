package console

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/cluster/scheme"
)

// still is a cache that is full from the beginning.
type still struct {
	cache.Cache
	reader client.Reader
}

func (s still) Get(ctx context.Context, key types.NamespacedName, o client.Object, options ...client.GetOption) error {
	return s.reader.Get(ctx, key, o, options...)
}

func (s still) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	return s.reader.List(ctx, list, options...)
}

func (s still) Start(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

// console is a Server over objects that stand still, and over an API server that
// proxies and tells logs.
type console struct {
	*Server
	t       *testing.T
	base    string
	objects client.WithWatch
}

// newConsole serves objects. behind answers what goes through the API server's
// proxies and logs.
func newConsole(t *testing.T, o Options, behind http.Handler, objects ...client.Object) console {
	t.Helper()
	if behind == nil {
		behind = http.NotFoundHandler()
	}
	api := httptest.NewServer(behind)
	t.Cleanup(api.Close)
	builder := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(objects...).WithStatusSubresource(&v1alpha1.DynamoGraphDeployment{})
	for field, value := range map[string]func(*corev1.Event) string{
		"involvedObject.kind": func(e *corev1.Event) string { return e.InvolvedObject.Kind },
		"involvedObject.name": func(e *corev1.Event) string { return e.InvolvedObject.Name },
	} {
		builder = builder.WithIndex(&corev1.Event{}, field, func(o client.Object) []string { return []string{value(o.(*corev1.Event))} })
	}
	held := builder.Build()
	s, err := listen(o, &rest.Config{Host: api.URL})
	if err != nil {
		t.Fatal(err)
	}
	s.options.Cluster.WithWatch = held
	s.source.cache = still{reader: held}
	for _, k := range kinds {
		s.source.standing[k.name] = standing{synced: func() bool { return true }}
	}
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- s.serve(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	u, err := url.Parse(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	return console{s, t, "http://" + u.Host, held}
}

// enter exchanges the token and returns the cookie.
func (c console) enter() *http.Cookie {
	c.t.Helper()
	response, err := http.Get(c.URL())
	if err != nil {
		c.t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK || len(response.Cookies()) != 1 {
		c.t.Fatalf("the token is not taken: %s", response.Status)
	}
	return response.Cookies()[0]
}

// hostile is a text that does harm wherever it is not text: as markup, as an
// attribute, as a script, and on a terminal.
const hostile = `"><script>document.title='owned'</script><img src=x onerror="document.title='owned'">'` + "\x1b]0;owned\x07\u202e"

func container(name string, gpus int64) corev1.Container {
	c := corev1.Container{Name: name, Image: "registry.example/runtime:1"}
	if gpus > 0 {
		c.Resources.Limits = corev1.ResourceList{"nvidia.com/gpu": *resource.NewQuantity(gpus, resource.DecimalSI)}
	}
	return c
}

// aPod is a pod of a graph's service.
func aPod(graph, service, kind string, n int, gpus int64, ready bool) *corev1.Pod {
	name := fmt.Sprintf("%s-%s-7c9d5b6c9f-%05d", graph, strings.ToLower(service), n)
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "lab", Name: name, UID: types.UID(name), CreationTimestamp: metav1.NewTime(time.Now().Add(-3 * time.Hour)),
			Labels: map[string]string{v1alpha1.LabelGraphName: graph, v1alpha1.LabelComponent: service, v1alpha1.LabelComponentType: kind},
		},
		Spec:   corev1.PodSpec{NodeName: fmt.Sprintf("node-%d", n%2), Containers: []corev1.Container{container("main", gpus)}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning},
	}
	if ready {
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	}
	return p
}

func crashing(p *corev1.Pod, message string) *corev1.Pod {
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: "main", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}},
		LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, Message: message, ContainerID: "c1"}},
	}}
	return p
}

func service(kind v1alpha1.ComponentType, sub string, replicas int32) *v1alpha1.SharedSpec {
	return &v1alpha1.SharedSpec{ComponentType: kind, SubComponentType: sub, Replicas: &replicas}
}

func status(name string, ready, of int32, message string) v1alpha1.ServiceReplicaStatus {
	return v1alpha1.ServiceReplicaStatus{ComponentKind: v1alpha1.ComponentKindDeployment, ComponentName: name, Replicas: of, UpdatedReplicas: of, ReadyReplicas: &ready, Message: message}
}

// anOperator is one that is installed.
func anOperator() *appsv1.Deployment {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{
		Namespace: "dynamo-system", Name: "dynamo-operator-controller-manager", Labels: map[string]string{"control-plane": "controller-manager", "app.kubernetes.io/name": "dynamo-operator"},
	}}
	d.Spec.Template.Spec.Volumes = []corev1.Volume{
		{Name: "tmp"}, {Name: "config", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "dynamo-operator-config"}}}},
	}
	return d
}

// sample is a cluster with a graph that is well, one that is broken, one on its way, one
// that is rolled out and one that sleeps.
func sample() []client.Object {
	ago := func(d time.Duration) metav1.Time { return metav1.NewTime(time.Now().Add(-d)) }
	ready := func(status metav1.ConditionStatus, reason, message string) []metav1.Condition {
		return []metav1.Condition{
			{Type: v1alpha1.ConditionReady, Status: status, Reason: reason, Message: message, LastTransitionTime: ago(40 * time.Minute)},
			{Type: v1alpha1.ConditionProgressing, Status: metav1.ConditionTrue, Reason: v1alpha1.StageComplete, Message: "the current spec runs in full", LastTransitionTime: ago(40 * time.Minute)},
		}
	}
	well := &v1alpha1.DynamoGraphDeployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "chat", CreationTimestamp: ago(3 * time.Hour)},
		Spec: v1alpha1.DynamoGraphDeploymentSpec{BackendFramework: v1alpha1.BackendFrameworkVLLM, Services: map[string]*v1alpha1.SharedSpec{
			"Frontend": service(v1alpha1.ComponentTypeFrontend, "", 2), "prefill": service(v1alpha1.ComponentTypeWorker, "prefill", 2),
			"decode": service(v1alpha1.ComponentTypeWorker, "decode", 4), "Planner": service(v1alpha1.ComponentTypePlanner, "", 1),
		}},
		Status: v1alpha1.DynamoGraphDeploymentStatus{State: v1alpha1.GraphStateSuccessful, Conditions: ready(metav1.ConditionTrue, v1alpha1.ReasonAllServicesReady, "4 of 4 services ready"), Services: map[string]v1alpha1.ServiceReplicaStatus{
			"Frontend": status("chat-frontend", 2, 2, ""), "prefill": status("chat-prefill", 2, 2, ""), "decode": status("chat-decode", 4, 4, ""), "Planner": status("chat-planner", 1, 1, ""),
		}},
	}
	decode := well.Status.Services["decode"]
	decode.Startup = &v1alpha1.StartupTimes{P50Seconds: 80, P95Seconds: 95, Samples: 4}
	well.Status.Services["decode"] = decode
	well.Annotations = map[string]string{v1alpha1.AnnotationGPUBudget: "6"}
	well.Status.Conditions = append(well.Status.Conditions, metav1.Condition{
		Type: v1alpha1.ConditionScalingLimited, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonBudgetExhausted, LastTransitionTime: ago(7 * time.Minute),
		Message: "decode has 4 of 6 replicas: the budget of graph chat is 6 GPUs",
	})
	well.Spec.Services["Frontend"].Envs = []corev1.EnvVar{{Name: "DYN_ROUTER_MODE", Value: "kv"}}
	well.Spec.Services["decode"].ScalingAdapter = &v1alpha1.ScalingAdapter{Enabled: true}
	well.Spec.Services["decode"].ModelRef = &v1alpha1.ModelReference{Name: "Qwen/Qwen3-0.6B"}
	broken := &v1alpha1.DynamoGraphDeployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "summaries", CreationTimestamp: ago(50 * time.Minute), Generation: 1},
		Spec: v1alpha1.DynamoGraphDeploymentSpec{BackendFramework: v1alpha1.BackendFrameworkSGLang, Services: map[string]*v1alpha1.SharedSpec{
			"Frontend": service(v1alpha1.ComponentTypeFrontend, "", 1), "decode": service(v1alpha1.ComponentTypeWorker, "", 2),
		}},
		Status: v1alpha1.DynamoGraphDeploymentStatus{ObservedGeneration: 1, State: v1alpha1.GraphStatePending, Services: map[string]v1alpha1.ServiceReplicaStatus{
			"Frontend": status("summaries-frontend", 1, 1, ""), "decode": status("summaries-decode", 0, 2, "container main exited with code 1: CUDA out of memory"),
		}},
	}
	broken.Status.Conditions = ready(metav1.ConditionFalse, "ContainerCrashed", "decode: container main exited with code 1: CUDA out of memory")
	broken.Status.Conditions[1].Reason, broken.Status.Conditions[1].Message = v1alpha1.StageDeploying, "decode: 0 of 2 replicas available"
	coming := &v1alpha1.DynamoGraphDeployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "vision", CreationTimestamp: ago(20 * time.Second), Generation: 1},
		Spec:       v1alpha1.DynamoGraphDeploymentSpec{BackendFramework: v1alpha1.BackendFrameworkVLLM, Services: map[string]*v1alpha1.SharedSpec{"Frontend": service(v1alpha1.ComponentTypeFrontend, "", 1), "worker": service(v1alpha1.ComponentTypeWorker, "", 1)}},
		Status: v1alpha1.DynamoGraphDeploymentStatus{ObservedGeneration: 1, State: v1alpha1.GraphStatePending, Conditions: []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: "Starting", Message: "worker: container main is starting", LastTransitionTime: ago(10 * time.Second)}},
			Services: map[string]v1alpha1.ServiceReplicaStatus{"Frontend": status("vision-frontend", 1, 1, ""), "worker": status("vision-worker", 0, 1, "container main is starting")}},
	}
	rolling := &v1alpha1.DynamoGraphDeployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "assist", UID: "a551", Generation: 4, CreationTimestamp: ago(26 * time.Hour), Annotations: map[string]string{v1alpha1.AnnotationRolloutSteps: "1 5m, 50% hold", v1alpha1.AnnotationRolloutSLO: "ttft-p95<2s"}},
		Spec: v1alpha1.DynamoGraphDeploymentSpec{BackendFramework: v1alpha1.BackendFrameworkVLLM, Services: map[string]*v1alpha1.SharedSpec{
			"Frontend": service(v1alpha1.ComponentTypeFrontend, "", 1), "decode": service(v1alpha1.ComponentTypeWorker, "", 2),
		}},
		Status: v1alpha1.DynamoGraphDeploymentStatus{ObservedGeneration: 4, State: v1alpha1.GraphStateSuccessful, Conditions: ready(metav1.ConditionTrue, v1alpha1.ReasonAllServicesReady, "2 of 2 services ready"), Services: map[string]v1alpha1.ServiceReplicaStatus{
			"Frontend": status("assist-frontend", 1, 1, ""), "decode": status("assist-decode-91c0aa17", 3, 3, ""),
		}, Rollout: &v1alpha1.RolloutStatus{
			Revision: 8, Target: "3fa91c02", Stable: "91c0aa17", Phase: "Held", Reason: "StepHold", Message: "step 2 of 2 waits for a promotion", Step: "2/2",
			StartedAt: new(ago(9 * time.Minute)), ProgressedAt: new(ago(time.Minute)), GPUs: &v1alpha1.RolloutGPUs{Now: 3, Peak: 3},
			Roles: map[string]v1alpha1.RolloutRoleStatus{"decode": {Desired: 2, Floor: 2, Effective: 3, Lowest: 2}},
			Generations: []v1alpha1.RolloutGeneration{
				{ID: "3fa91c02", Revision: 8, Share: "33%", Roles: map[string]v1alpha1.RolloutReplicas{"decode": {Replicas: 1, Routable: 1}}},
				{ID: "91c0aa17", Revision: 7, Share: "67%", Roles: map[string]v1alpha1.RolloutReplicas{"decode": {Replicas: 2, Routable: 2}}},
			},
			Analysis: &v1alpha1.RolloutAnalysis{Verdict: "pass", Errors: []string{"0.4%", "0.5%"}, TTFTP95: []string{"850ms", "840ms"}, Samples: 812},
		}},
	}
	asleep := &v1alpha1.DynamoGraphDeployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "nightly", CreationTimestamp: ago(48 * time.Hour), Generation: 1, Annotations: map[string]string{v1alpha1.AnnotationScaleToZeroAfter: "15m"}},
		Spec: v1alpha1.DynamoGraphDeploymentSpec{BackendFramework: v1alpha1.BackendFrameworkVLLM, Services: map[string]*v1alpha1.SharedSpec{
			"Frontend": service(v1alpha1.ComponentTypeFrontend, "", 1), "decode": service(v1alpha1.ComponentTypeWorker, "", 2),
		}},
		Status: v1alpha1.DynamoGraphDeploymentStatus{ObservedGeneration: 1, State: v1alpha1.GraphStateSuccessful, Conditions: ready(metav1.ConditionTrue, v1alpha1.ReasonAllServicesReady, "2 of 2 services ready"), Services: map[string]v1alpha1.ServiceReplicaStatus{
			"Frontend": status("nightly-frontend", 1, 1, ""), "decode": status("nightly-decode", 0, 0, ""),
		}},
	}
	asleep.Status.Conditions = append(asleep.Status.Conditions, metav1.Condition{
		Type: v1alpha1.ConditionDormant, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonIdle, LastTransitionTime: ago(3 * time.Hour),
		Message: "no request since 2026-11-16T20:00:00Z; workers start with the next one",
	})
	adapter := &v1alpha1.DynamoGraphDeploymentScalingAdapter{
		ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "chat-decode"},
		Spec:       v1alpha1.DynamoGraphDeploymentScalingAdapterSpec{Replicas: 6, DGDRef: v1alpha1.GraphServiceRef{Name: "chat", ServiceName: "decode"}},
		Status: v1alpha1.DynamoGraphDeploymentScalingAdapterStatus{Replicas: 4, LastScaleTime: new(ago(12 * time.Minute)), Conditions: []metav1.Condition{
			{Type: v1alpha1.ConditionActive, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonScalingActive, Message: "service decode is to have 6 replicas"},
		}},
	}
	objects := []client.Object{
		well, broken, coming, rolling, asleep, adapter, aPod("nightly", "Frontend", "frontend", 1, 0, true),
		anOperator(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "dynamo-system", Name: "dynamo-operator-config"}, Data: map[string]string{"config.yaml": "scaling: {gpus: 16, namespaces: {lab: 13}}"}},
		&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "nightly-activation"}},
		aPod("assist", "Frontend", "frontend", 0, 0, true),
	}
	for n := range 3 {
		objects = append(objects, aPod("assist", "decode", "worker", n, 1, true))
	}
	for n := range 2 {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("node-%d", n), Labels: map[string]string{"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}}}
		node.Status.Allocatable = corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("8")}
		node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		objects = append(objects, node, aPod("chat", "Frontend", "frontend", n, 0, true), aPod("chat", "prefill", "worker", n, 1, true))
	}
	for n := range 4 {
		objects = append(objects, aPod("chat", "decode", "worker", n, 1, true))
	}
	objects = append(objects,
		aPod("chat", "Planner", "planner", 0, 0, true), aPod("summaries", "Frontend", "frontend", 0, 0, true), aPod("vision", "Frontend", "frontend", 0, 0, true), aPod("vision", "worker", "worker", 1, 2, false),
		crashing(aPod("summaries", "decode", "worker", 0, 1, false), "CUDA out of memory"), crashing(aPod("summaries", "decode", "worker", 1, 1, false), "CUDA out of memory"),
		&corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "e1"}, InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: "lab", Name: "summaries-decode-7c9d5b6c9f-00000"}, Type: "Warning", Reason: "BackOff", Message: "Back-off restarting failed container main", Count: 14, LastTimestamp: ago(time.Minute)},
		&corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "e2"}, InvolvedObject: corev1.ObjectReference{Kind: "DynamoGraphDeployment", Namespace: "lab", Name: "chat"}, Type: "Normal", Reason: "Ready", Message: "4 of 4 services ready", LastTimestamp: ago(40 * time.Minute)},
		&v1alpha1.DynamoModel{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "legal"}, Spec: v1alpha1.DynamoModelSpec{ModelName: "legal-v2", BaseModelName: "Qwen/Qwen3-0.6B", ModelType: v1alpha1.ModelTypeLoRA},
			Status: v1alpha1.DynamoModelStatus{ObservedGeneration: 1, ReadyEndpoints: 1, TotalEndpoints: 2, Endpoints: []v1alpha1.ModelEndpoint{{PodName: "chat-decode-7c9d5b6c9f-00000", Ready: true}, {PodName: "chat-decode-7c9d5b6c9f-00001"}}}},
		&v1alpha1.DynamoGraphDeploymentRequest{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "fast-chat", CreationTimestamp: ago(5 * time.Minute)}, Spec: v1alpha1.DynamoGraphDeploymentRequestSpec{Model: "meta-llama/Llama-3.1-8B", Backend: v1alpha1.BackendFrameworkVLLM},
			Status: v1alpha1.DynamoGraphDeploymentRequestStatus{State: v1alpha1.RequestStateProfiling, Conditions: []metav1.Condition{{Type: v1alpha1.ConditionValidation, Status: metav1.ConditionTrue, Reason: "ValidationPassed", Message: "the request is valid", LastTransitionTime: ago(5 * time.Minute)}}}},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "dgdr-output-fast-chat"}, Data: map[string]string{
			"progress.json": `{"done":42,"total":120,"stage":"Ranking","best":"disaggregated, 1 prefill and 2 decode of 1 GPU"}`,
			"result.json":   `{"state":"Succeeded","reason":"TargetsMet","message":"ok","slaMet":true,"ttftMs":180,"itlMs":9.5,"chosen":"disaggregated, 1 prefill and 2 decode of 1 GPU","gpus":3,"tokensPerSecondPerGpu":1510,"requestRate":11.3,"targets":[{"name":"ttft","unit":"ms","want":300,"got":180,"low":150,"high":220,"met":true},{"name":"itl","unit":"ms","want":8,"got":9.5,"low":9,"high":10,"met":false}]}`,
			"report.html":   "<!DOCTYPE html><title>r</title><h1>Report</h1><script>parent.document.title='owned'</script>",
		}},
		&v1alpha1.DynamoWorkerMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "chat-decode-7c9d5b6c9f-00002"}, Spec: &v1alpha1.DynamoWorkerMetadataSpec{Data: runtime.RawExtension{Raw: []byte(`{"endpoints":{"e":{"instance_id":4242}}}`)}}},
	)
	return objects
}

// engines plays the API server's proxies in front of frontends and workers, and its
// logs.
func engines() http.Handler {
	mux := http.NewServeMux()
	begin := time.Now()
	mux.HandleFunc("GET /api/v1/namespaces/lab/pods/{pod}/proxy/metrics", func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.PathValue("pod"), ":9090") {
			fmt.Fprint(w, "# TYPE vllm:num_requests_running gauge\nvllm:num_requests_running 3\n# TYPE vllm:num_requests_waiting gauge\nvllm:num_requests_waiting 1\n# TYPE vllm:kv_cache_usage_perc gauge\nvllm:kv_cache_usage_perc 0.42\n")
			return
		}
		n := int(time.Since(begin).Milliseconds() / 50)
		fmt.Fprintf(w, "# TYPE dynamo_frontend_requests_total counter\ndynamo_frontend_requests_total{status=\"success\"} %d\n# TYPE dynamo_frontend_inflight_requests gauge\ndynamo_frontend_inflight_requests 4\n"+
			"# TYPE dynamo_frontend_time_to_first_token_seconds histogram\ndynamo_frontend_time_to_first_token_seconds_bucket{le=\"0.1\"} %d\ndynamo_frontend_time_to_first_token_seconds_bucket{le=\"0.2\"} %d\ndynamo_frontend_time_to_first_token_seconds_bucket{le=\"+Inf\"} %d\ndynamo_frontend_time_to_first_token_seconds_sum 1\ndynamo_frontend_time_to_first_token_seconds_count %d\n", n, n/2, n, n, n)
	})
	mux.HandleFunc("GET /api/v1/namespaces/lab/pods/chat-planner-7c9d5b6c9f-00000:9085/proxy/decisions", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `[{"at":"2026-11-16T20:00:00Z","reason":"Grow","words":["prefill 2, decode 4 → 6 (6 → 8 GPUs, budget 16): Grow","arrivals 11.2/s, expected 14.0/s within 2m0s"]},{"at":"2026-11-16T20:05:00Z","words":[%q]}]`, strings.Map(func(r rune) rune {
			if r < ' ' {
				return -1
			}
			return r
		}, hostile))
	})
	mux.HandleFunc("GET /api/v1/namespaces/lab/services/{service}/proxy/v1/models", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"data":[{"id":"Qwen/Qwen3-0.6B"}]}`)
	})
	mux.HandleFunc("POST /api/v1/namespaces/lab/services/{service}/proxy/v1/chat/completions", func(w http.ResponseWriter, _ *http.Request) {
		for _, word := range []string{"Because", " graphs", " <b>never</b>", " idle."} {
			fmt.Fprintf(w, "data: {\"choices\":[{\"delta\":{\"content\":%q}}]}\n\n", word)
			w.(http.Flusher).Flush()
			time.Sleep(20 * time.Millisecond)
		}
		fmt.Fprint(w, "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":4},\"nvext\":{\"worker_id\":{\"prefill_worker_id\":77,\"decode_worker_id\":4242}}}\n\ndata: [DONE]\n\n")
	})
	mux.HandleFunc("GET /api/v1/namespaces/lab/pods/{pod}/log", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, "2026-11-16T20:00:00.000000001Z loading weights\n2026-11-16T20:00:01.5Z %s\n", strings.ReplaceAll(hostile, "\n", " "))
	})
	return mux
}
