package scale

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/yaml"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/cluster/scheme"
	"github.com/dynamo-operator/dynamo-operator/internal/core/planner/journal"
	"github.com/dynamo-operator/dynamo-operator/internal/core/planner/trace"
)

func decode[T any](t *testing.T, text string) *T {
	t.Helper()
	object := new(T)
	if err := yaml.UnmarshalStrict([]byte(text), object); err != nil {
		t.Fatal(err)
	}
	return object
}

const chat = `
apiVersion: nvidia.com/v1alpha1
kind: DynamoGraphDeployment
metadata:
  name: chat
  namespace: lab
  annotations: {nvidia.com/gpu-budget: "8"}
  managedFields:
  - {manager: kubectl-apply, operation: Apply, time: "2026-11-17T08:00:00Z", fieldsType: FieldsV1, fieldsV1: {"f:spec": {"f:services": {"f:prefill": {"f:replicas": {}}}}}}
  - {manager: dynamo-planner, operation: Update, time: "2026-11-17T08:09:00Z", fieldsType: FieldsV1, fieldsV1: {"f:spec": {"f:services": {"f:prefill": {"f:replicas": {}}}}}}
spec:
  services:
    frontend: {componentType: frontend}
    planner: {componentType: planner}
    prefill: {componentType: worker, subComponentType: prefill, replicas: 3}
    decode: {componentType: worker, subComponentType: decode, scalingAdapter: {enabled: true}}
status:
  services:
    frontend: {componentKind: Deployment, componentName: chat-frontend, replicas: 1, updatedReplicas: 1, readyReplicas: 1}
    prefill: {componentKind: Deployment, componentName: chat-prefill, replicas: 3, updatedReplicas: 3, readyReplicas: 2, message: "Insufficient nvidia.com/gpu"}
    decode: {componentKind: Deployment, componentName: chat-decode, replicas: 3, updatedReplicas: 3, readyReplicas: 3, startup: {p50Seconds: 80, p95Seconds: 95, samples: 3}}
  conditions:
  - {type: ScalingLimited, status: "True", reason: BudgetExhausted, message: "decode has 3 of 5 replicas: the budget of graph chat is 8 GPUs", lastTransitionTime: "2026-11-17T08:00:00Z"}
`

const chatDecode = `
apiVersion: nvidia.com/v1alpha1
kind: DynamoGraphDeploymentScalingAdapter
metadata:
  name: chat-decode
  namespace: lab
  managedFields:
  - {manager: kubectl, operation: Update, subresource: scale, time: "2026-11-17T08:05:00Z", fieldsType: FieldsV1, fieldsV1: {"f:spec": {"f:replicas": {}}}}
spec: {replicas: 5, dgdRef: {name: chat, serviceName: decode}}
status: {wantedReplicas: 5, grantedReplicas: 3, drainingReplicas: 1, conditions: [{type: Active, status: "True", reason: ScalingActive, message: "", lastTransitionTime: "2026-11-17T08:00:00Z"}]}
`

const decodeHPA = `
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: busy, namespace: lab}
spec: {minReplicas: 1, maxReplicas: 5, scaleTargetRef: {apiVersion: nvidia.com/v1alpha1, kind: DynamoGraphDeploymentScalingAdapter, name: chat-decode}}
status:
  desiredReplicas: 5
  lastScaleTime: "2026-11-17T08:08:00Z"
  conditions: [{type: ScalingLimited, status: "True", reason: TooManyReplicas, message: "the desired replica count is more than the maximum replica count"}]
`

const decodeComponent = `
apiVersion: nvidia.com/v1alpha1
kind: DynamoComponentDeployment
metadata: {name: chat-decode, namespace: lab, labels: {nvidia.com/dynamo-graph-deployment-name: chat}}
spec: {serviceName: decode, replicas: 3}
`

const plannerPod = `
apiVersion: v1
kind: Pod
metadata: {name: chat-planner-1, namespace: lab, labels: {nvidia.com/dynamo-graph-deployment-name: chat, nvidia.com/dynamo-component: planner, nvidia.com/dynamo-component-type: planner}}
spec: {nodeName: n, containers: [{name: main}]}
status: {phase: Running, conditions: [{type: Ready, status: "True"}], containerStatuses: [{name: main, ready: true, started: true, state: {running: {}}, image: "", imageID: "", restartCount: 0}]}
`

const decodePod = `
apiVersion: v1
kind: Pod
metadata: {name: chat-decode-1, namespace: lab, labels: {nvidia.com/dynamo-graph-deployment-name: chat, nvidia.com/dynamo-component: decode, nvidia.com/dynamo-component-type: worker}}
spec: {nodeName: n, containers: [{name: main, resources: {limits: {nvidia.com/gpu: "2"}}}]}
status: {phase: Running}
`

var at = time.Date(2026, 11, 17, 8, 10, 0, 0, time.UTC)

// last is a decision of somebody who would like to command a terminal.
var last = journal.Record{
	At: at, Reason: "NeedGrew", From: journal.Replicas{Prefill: 2, Decode: 3}, To: journal.Replicas{Prefill: 3, Decode: 5}, GPUs: 8, Policy: "native",
	Cost:    &journal.Cost{From: 25, To: 40, GPU: 5, By: "what was given"},
	Limited: "cut by the budget", Words: []string{"prefill 2 → 3, decode 3 → 5 (5 → 8 GPUs, budget 8): NeedGrew", "arrivals 31.2/s\x1b]52;c;aGk=\x07"},
}

// lab is a cluster whose planner answers, through the API server.
func lab(t *testing.T, answer http.HandlerFunc, texts ...client.Object) source {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	pods, err := typedcorev1.NewForConfig(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range texts {
		object.SetManagedFields(nil) // a fake client has its own
	}
	return source{fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(texts...).Build(), pods.RESTClient(), "lab"}
}

func objects(t *testing.T) []client.Object {
	t.Helper()
	return []client.Object{
		decode[v1alpha1.DynamoGraphDeployment](t, chat), decode[v1alpha1.DynamoGraphDeploymentScalingAdapter](t, chatDecode),
		decode[autoscalingv2.HorizontalPodAutoscaler](t, decodeHPA), decode[v1alpha1.DynamoComponentDeployment](t, decodeComponent),
		decode[corev1.Pod](t, plannerPod), decode[corev1.Pod](t, decodePod),
	}
}

func tells(all ...journal.Record) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/api/v1/namespaces/lab/pods/chat-planner-1:9085/proxy/decisions" {
			http.NotFound(w, r)
			return
		}
		_ = json.NewEncoder(w).Encode(all)
	}
}

func TestWhatCameToAGraphIsATrace(t *testing.T) {
	bins := trace.Bins{Tick: 5}
	for i := range 24 {
		bins.Add(trace.Bin{At: 5 * float64(i), Requests: 20, Input: 2000, Output: 100})
	}
	tells := func(what any) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/api/v1/namespaces/lab/pods/chat-planner-1:9085/proxy/bins" {
				http.NotFound(w, r)
				return
			}
			_ = json.NewEncoder(w).Encode(what)
		}
	}
	came, err := lab(t, tells(bins), objects(t)...).bins(t.Context(), "chat")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&bins, came); diff != "" {
		t.Error(diff)
	}
	o := &options{policies: []string{"fixed"}}
	o.flags(pflag.NewFlagSet("", pflag.ContinueOnError))
	o.trace, o.came, o.startups = "what came to chat", came, []time.Duration{30 * time.Second}
	var out bytes.Buffer
	if err := o.run(&out, io.Discard); err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"what came to chat: 480 requests in ", ", 4.0/s, 2000 and 100 tokens;", "\nfixed "} {
		if !strings.Contains(out.String(), part) {
			t.Errorf("%q is not in\n%s", part, out.String())
		}
	}
	for rule, s := range map[string]source{
		"a planner that tells none": lab(t, http.NotFound, objects(t)...), "one of somebody else's": lab(t, tells("<html>"), objects(t)...), "no planner": lab(t, tells(bins)),
	} {
		if _, err := s.bins(t.Context(), "chat"); err == nil {
			t.Errorf("%s: no error", rule)
		}
	}
}

func TestAPlannerThatTellsWithoutEndIsNotHeardOut(t *testing.T) {
	s := lab(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"tick":5,"bins":[]}`)
		for range answerLimit / 1024 {
			if _, err := io.WriteString(w, strings.Repeat(" ", 1024)); err != nil {
				return
			}
		}
	}, objects(t)...)
	if _, err := s.bins(t.Context(), "chat"); err == nil || !strings.Contains(err.Error(), "longer than") {
		t.Error(err)
	}
}

func TestAnExplanationSaysWhoAskedWhatWasGrantedAndWhy(t *testing.T) {
	f, err := lab(t, tells(journal.Record{Reason: "Steady"}, last), objects(t)...).facts(t.Context(), "chat")
	if err != nil {
		t.Fatal(err)
	}
	f.graph.ManagedFields = decode[v1alpha1.DynamoGraphDeployment](t, chat).ManagedFields
	e := explain(f)
	when := func(minute int) *metav1.Time {
		return &metav1.Time{Time: time.Date(2026, 11, 17, 8, minute, 0, 0, time.UTC)}
	}
	want := Explanation{
		Namespace: "lab", Graph: "chat", GPUs: 2, Budget: "8", DollarsPerHour: new(10.0), Teller: "chat-planner-1", Planner: &last,
		Services: []ServiceExplanation{
			{Name: "decode", Wanted: 5, Granted: 3, Ready: 3, Draining: new(1), GPUs: 2, By: "HorizontalPodAutoscaler busy (1 to 5) through scaling adapter chat-decode", At: when(8),
				Startup: &v1alpha1.StartupTimes{P50Seconds: 80, P95Seconds: 95, Samples: 3}},
			{Name: "frontend", Wanted: 1, Granted: 1, Ready: 1, By: "nobody, so it is 1"},
			{Name: "planner", Wanted: 1, By: "nobody, so it is 1"},
			{Name: "prefill", Wanted: 3, Granted: 3, Ready: 2, By: "dynamo-planner in the graph's spec", At: when(9)},
		},
		Limited: []string{
			"prefill: Insufficient nvidia.com/gpu", "decode has 3 of 5 replicas: the budget of graph chat is 8 GPUs",
			"HorizontalPodAutoscaler busy: the desired replica count is more than the maximum replica count",
		},
	}
	if diff := cmp.Diff(want, e, cmp.Comparer(func(a, b *metav1.Time) bool { return a.Equal(b) })); diff != "" {
		t.Error(diff)
	}
	var out bytes.Buffer
	e.write(&out, at)
	for _, part := range []string{
		"lab/chat  2 GPUs ($10.00/h), budget 8\n", "decode    5       3        3      1         2     1m20s, p95 1m35s  HorizontalPodAutoscaler busy", "frontend  1       1        1      -         0 ", "2m0s ago",
		"limited  prefill: Insufficient", "2026-11-17T08:10:00Z  prefill 2 → 3, decode 3 → 5", "(chat-planner-1)", "\n  arrivals 31.2/s\n",
	} {
		if !strings.Contains(out.String(), part) {
			t.Errorf("%q is not in\n%s", part, out.String())
		}
	}
	if strings.ContainsAny(out.String(), "\x1b\x07") {
		t.Errorf("a planner commands the terminal: %q", out.String())
	}
}

func TestWithoutAPlannerTheRestIsTold(t *testing.T) {
	graph := decode[v1alpha1.DynamoGraphDeployment](t, chat)
	alone := graph.DeepCopy()
	delete(alone.Spec.Services, "planner")
	kept := graph.DeepCopy()
	kept.Annotations[v1alpha1.AnnotationScalePlan] = last.Plan()
	forbidden := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		_ = json.NewEncoder(w).Encode(apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "chat-planner-1", errors.New("no")).Status())
	}
	pod := decode[corev1.Pod](t, plannerPod)
	for _, x := range []struct {
		rule    string
		answer  http.HandlerFunc
		objects []client.Object
		want    string
	}{
		{"a graph without one", http.NotFound, []client.Object{alone}, "no planner: the graph has none"},
		{"one that is not ready", http.NotFound, []client.Object{graph}, "no planner: no pod of a planner is ready"},
		{"one of somebody else's", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>") }, []client.Object{graph, pod}, "not in the form of dynamo-planner"},
		{"one that may not be asked", forbidden, []client.Object{graph, pod}, "you may not get pods/proxy"},
		{"its last word is kept in the graph", http.NotFound, []client.Object{kept}, "(annotation nvidia.com/scale-plan)"},
	} {
		t.Run(x.rule, func(t *testing.T) {
			f, err := lab(t, x.answer, x.objects...).facts(t.Context(), "chat")
			if err != nil {
				t.Fatal(err)
			}
			var out bytes.Buffer
			explain(f).write(&out, at)
			if !strings.Contains(out.String(), x.want) || !strings.Contains(out.String(), "SERVICE") {
				t.Errorf("%q is not in\n%s", x.want, out.String())
			}
		})
	}
	if _, err := lab(t, http.NotFound).facts(t.Context(), "chat"); !apierrors.IsNotFound(err) {
		t.Errorf("a graph that is not there: %v", err)
	}
}

func TestWhatAGraphCostsIsSaidOrThatNobodyKnows(t *testing.T) {
	priced, unpriced, older := last, last, last
	unpriced.Cost, unpriced.Unpriced = nil, "it is not said which GPUs replicas have\x1b[2J"
	older.Cost = nil
	split := last
	split.Cost = &journal.Cost{From: 25, To: 40, Roles: map[string]journal.Price{"prefill": {GPU: 9, By: "x"}, "decode": {GPU: 2, By: "y"}}}
	half := last
	half.Cost = &journal.Cost{From: 25, To: 40, Roles: map[string]journal.Price{"prefill": {GPU: 9, By: "x"}}}
	for _, x := range []struct {
		rule       string
		decisions  []journal.Record
		given      float64
		podsUnread bool
		want       string
	}{
		{"as its planner says", []journal.Record{priced}, 0, false, "2 GPUs ($10.00/h), budget 8"},
		{"each service by the price of its role", []journal.Record{split}, 0, false, "2 GPUs ($4.00/h), budget 8"},
		{"not one whose price is not told", []journal.Record{half}, 0, false, "2 GPUs (cost unknown: the planner tells no price of GPUs of decode), budget 8"},
		{"as given, whatever its planner says", []journal.Record{priced}, 2.5, false, "2 GPUs ($5.00/h), budget 8"},
		{"a planner that does not know", []journal.Record{unpriced}, 0, false, "2 GPUs (cost unknown: it is not said which GPUs replicas have), budget 8"},
		{"a planner that tells no price", []journal.Record{older}, 0, false, "2 GPUs (cost unknown: no planner tells what a GPU costs, and no --price is given), budget 8"},
		{"no planner", nil, 0, false, "2 GPUs (cost unknown: no planner tells what a GPU costs, and no --price is given), budget 8"},
		{"not where the GPUs could not be counted", []journal.Record{priced}, 3, true, "0 GPUs (cost unknown: pods, which have the GPUs, could not be read), budget 8"},
		{"no planner, and given", nil, 3, false, "2 GPUs ($6.00/h), budget 8"},
	} {
		t.Run(x.rule, func(t *testing.T) {
			f := facts{graph: decode[v1alpha1.DynamoGraphDeployment](t, chat), pods: []corev1.Pod{*decode[corev1.Pod](t, decodePod)}, decisions: x.decisions, price: x.given}
			if f.podsUnread = x.podsUnread; x.podsUnread {
				f.pods = nil
			}
			e := explain(f)
			var out bytes.Buffer
			e.write(&out, at)
			if !strings.Contains(out.String(), "lab/chat  "+x.want+"\n") || (e.DollarsPerHour == nil) != (e.Unpriced != "") {
				t.Errorf("%q is not in\n%s", x.want, out.String())
			}
		})
	}
}

func TestWhatIsGrantedIsToldWhereNoComponentTellsIt(t *testing.T) {
	g := decode[v1alpha1.DynamoGraphDeployment](t, chat)
	for _, x := range []struct {
		rule    string
		granted *int32
		want    int
	}{
		{"by the graph, of a service with a budget", new(int32(2)), 2},
		{"else what there is", nil, 3},
	} {
		s := g.Status.Services["prefill"]
		s.GrantedReplicas = x.granted
		g.Status.Services["prefill"] = s
		if got := (facts{graph: g}).service("prefill").Granted; got != x.want {
			t.Errorf("%s: %d, want %d", x.rule, got, x.want)
		}
	}
}

// What asks for none is something else: KEDA, which takes a service to zero by itself.
func TestNoAutoscalerAsksForLessThanItsLeast(t *testing.T) {
	for replicas, by := range map[int32]string{0: "kubectl", 1: "HorizontalPodAutoscaler busy", 5: "HorizontalPodAutoscaler busy"} {
		a := decode[v1alpha1.DynamoGraphDeploymentScalingAdapter](t, chatDecode)
		a.Spec.Replicas = replicas
		f := facts{
			graph: decode[v1alpha1.DynamoGraphDeployment](t, chat), adapters: []v1alpha1.DynamoGraphDeploymentScalingAdapter{*a},
			autoscalers: []autoscalingv2.HorizontalPodAutoscaler{*decode[autoscalingv2.HorizontalPodAutoscaler](t, decodeHPA)},
		}
		if got := f.service("decode").By; !strings.HasPrefix(got, by) {
			t.Errorf("%d replicas were asked for by %q, want %q", replicas, got, by)
		}
	}
}

func TestAGraphThatSleepsIsSaidTo(t *testing.T) {
	for _, x := range []struct {
		rule   string
		status metav1.ConditionStatus
		reason string
		want   string
	}{
		{"since when, why and what wakes it", metav1.ConditionTrue, v1alpha1.ReasonIdle, "\nasleep   since 2026-11-17T08:10:00Z: no request since 8; kubectl dynamo scale wake chat --namespace lab wakes it, too\n"},
		{"one that serves does not", metav1.ConditionFalse, v1alpha1.ReasonActive, ""},
		{"nor one that wakes", metav1.ConditionFalse, v1alpha1.ReasonWaking, ""},
	} {
		t.Run(x.rule, func(t *testing.T) {
			g := decode[v1alpha1.DynamoGraphDeployment](t, chat)
			g.Status.Conditions = append(g.Status.Conditions, metav1.Condition{
				Type: v1alpha1.ConditionDormant, Status: x.status, Reason: x.reason, Message: "no request since 8\x1b[2J", LastTransitionTime: metav1.NewTime(at),
			})
			e := explain(facts{graph: g})
			var out bytes.Buffer
			e.write(&out, at)
			if said := strings.Contains(out.String(), "asleep"); said != (x.want != "") || !strings.Contains(out.String(), x.want) || (e.Asleep != "") != said {
				t.Errorf("%q is not in\n%s", x.want, out.String())
			}
		})
	}
}

func TestHistory(t *testing.T) {
	failed := journal.Record{At: at, Reason: "NeedFell", From: journal.Replicas{Prefill: 3, Decode: 5}, To: journal.Replicas{Prefill: 2, Decode: 5}, GPUs: 7, Failed: "forbidden\x1b[2J"}
	advised := journal.Record{At: at, Reason: "NeedGrew", From: journal.Replicas{Prefill: 1, Decode: 1}, To: journal.Replicas{Prefill: 2, Decode: 1}, GPUs: 3, Advisory: true, Unpriced: "nobody said"}
	f, err := lab(t, tells(last, failed, advised), objects(t)...).facts(t.Context(), "chat")
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := writeHistory(&out, f); err != nil {
		t.Fatal(err)
	}
	want := `AT                    REASON    PREFILL  DECODE  GPUS  COST                 POLICY  NOTE
2026-11-17T08:10:00Z  NeedGrew  2 → 3    3 → 5   8     $25.00/h → $40.00/h  native  cut by the budget
2026-11-17T08:10:00Z  NeedFell  3 → 2    5       7     -                    -       not written: forbidden
2026-11-17T08:10:00Z  NeedGrew  1 → 2    1       3     unknown              -       not written: it only advises
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
}
