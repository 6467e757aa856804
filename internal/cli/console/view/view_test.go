package view

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/cli/doctor"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
)

var now = time.Date(2026, 11, 16, 12, 0, 0, 0, time.UTC)

func decode[T any](t *testing.T, text string) *T {
	t.Helper()
	object := new(T)
	if err := yaml.UnmarshalStrict([]byte(text), object); err != nil {
		t.Fatal(err)
	}
	return object
}

func TestGraphState(t *testing.T) {
	for rule, c := range map[string]struct {
		graph string
		want  State
	}{
		"nobody has looked at it":       {"status: {}", State{"not seen yet", Off}},
		"it is ready":                   {"status: {state: successful, conditions: [{type: Ready, status: 'True', reason: AllServicesReady}]}", State{"ready", Good}},
		"it sleeps":                     {"status: {state: successful, conditions: [{type: Ready, status: 'True'}, {type: Dormant, status: 'True', reason: Idle}]}", State{"asleep", Off}},
		"it woke":                       {"status: {state: successful, conditions: [{type: Ready, status: 'True'}, {type: Dormant, status: 'False', reason: Active}]}", State{"ready", Good}},
		"who sleeps can be broken":      {"status: {state: failed, conditions: [{type: Ready, status: 'False', reason: ImageNotFound}, {type: Dormant, status: 'True', reason: Idle}]}", State{"failed", Bad}},
		"it takes its time":             {"status: {state: pending, conditions: [{type: Ready, status: 'False', reason: Starting}]}", State{"pending", Busy}},
		"a person has to do something":  {"status: {state: pending, conditions: [{type: Ready, status: 'False', reason: ImageNotFound}]}", State{"pending", Bad}},
		"it failed":                     {"status: {state: failed, conditions: [{type: Ready, status: 'False', reason: Whatever}]}", State{"failed", Bad}},
		"a graph that goes is no fault": {"metadata: {deletionTimestamp: '2026-11-16T12:00:00Z'}\nstatus: {state: failed, conditions: [{type: Ready, status: 'False', reason: ImageNotFound}]}", State{"being deleted", Off}},
	} {
		t.Run(rule, func(t *testing.T) {
			if diff := cmp.Diff(c.want, GraphState(decode[v1alpha1.DynamoGraphDeployment](t, c.graph))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestPodState(t *testing.T) {
	for rule, c := range map[string]struct {
		pod  string
		want State
	}{
		"ready":            {"status: {phase: Running, conditions: [{type: Ready, status: 'True'}]}", State{"Ready", Good}},
		"running":          {"status: {phase: Running}", State{"Running", Busy}},
		"without a node":   {"status: {phase: Pending}", State{"Pending", Busy}},
		"crashing":         {"status: {phase: Running, containerStatuses: [{name: main, state: {waiting: {reason: CrashLoopBackOff}}}]}", State{"CrashLoopBackOff", Bad}},
		"on its way out":   {"metadata: {deletionTimestamp: '2026-11-16T12:00:00Z'}\nstatus: {phase: Running}", State{"Terminating", Off}},
		"one that is done": {"status: {phase: Succeeded}", State{"Completed", Off}},
	} {
		t.Run(rule, func(t *testing.T) {
			if diff := cmp.Diff(c.want, PodState(*decode[corev1.Pod](t, c.pod))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestEveryToneHasAMarkOfItsOwn(t *testing.T) {
	seen := map[string]Tone{}
	for _, tone := range []Tone{Good, Busy, Bad, Off} {
		if other, twice := seen[tone.Mark()]; twice || tone.Mark() == "" {
			t.Errorf("%s looks like %s", tone, other)
		}
		seen[tone.Mark()] = tone
	}
}

func TestGraphsThatNeedSomebodyComeFirst(t *testing.T) {
	graphs := []v1alpha1.DynamoGraphDeployment{
		*decode[v1alpha1.DynamoGraphDeployment](t, "metadata: {namespace: b, name: well}\nstatus: {conditions: [{type: Ready, status: 'True'}]}"),
		*decode[v1alpha1.DynamoGraphDeployment](t, "metadata: {namespace: a, name: coming}\nstatus: {state: pending, conditions: [{type: Ready, status: 'False', reason: Starting, message: it starts}]}"),
		*decode[v1alpha1.DynamoGraphDeployment](t, "metadata: {namespace: a, name: new}"),
		*decode[v1alpha1.DynamoGraphDeployment](t, "metadata: {namespace: a, name: idle}\nstatus: {conditions: [{type: Ready, status: 'True'}, {type: Dormant, status: 'True', reason: Idle, message: no request since noon}]}"),
		*decode[v1alpha1.DynamoGraphDeployment](t, "metadata: {namespace: a, name: going, deletionTimestamp: '2026-11-16T12:00:00Z'}\nstatus: {conditions: [{type: Ready, status: 'True'}]}"),
		*decode[v1alpha1.DynamoGraphDeployment](t, "metadata: {namespace: a, name: ill}\nstatus: {state: failed, conditions: [{type: Ready, status: 'False', reason: ImageNotFound, message: no such image}]}"),
	}
	pods := IndexPods([]corev1.Pod{gpuPod("a", "ill", "n1", 2, corev1.PodRunning), gpuPod("a", "ill", "", 2, corev1.PodPending), gpuPod("a", "ill", "n1", 2, corev1.PodFailed)})
	page := AllGraphs(graphs, pods, func(string, string) Traffic { return Traffic{} }, now)
	var got [][]string
	for _, r := range page.Rows {
		got = append(got, []string{r.Path(), r.Cause})
	}
	if diff := cmp.Diff([][]string{{"/graphs/a/ill", "no such image"}, {"/graphs/a/coming", "it starts"}, {"/graphs/a/going", ""}, {"/graphs/a/new", "the operator has not looked at it yet"}, {"/graphs/b/well", ""}, {"/graphs/a/idle", "no request since noon"}}, got); diff != "" {
		t.Error(diff)
	}
	if page.GPUs != 2 || !page.Namespaces {
		t.Errorf("%d GPUs are held by pods that have a node and run; several namespaces: %v", page.GPUs, page.Namespaces)
	}
	want := []Count{{1, State{"need attention", Bad}}, {1, State{"on their way", Busy}}, {1, State{"being deleted", Off}}, {1, State{"not seen yet", Off}}, {1, State{"ready", Good}}, {1, State{"asleep", Off}}}
	if diff := cmp.Diff(want, page.Counts); diff != "" {
		t.Error(diff)
	}
}

func TestASleepingGraphIsToldInWords(t *testing.T) {
	const graph = "metadata: {namespace: llm, name: chat, annotations: {nvidia.com/scale-to-zero-after: 15m, nvidia.com/activation-timeout: 90s}}\nstatus: {conditions: [{type: Dormant, lastTransitionTime: '2026-11-16T11:20:00Z', "
	for rule, c := range map[string]struct {
		graph string
		want  *Sleep
	}{
		"one that never does": {"metadata: {name: chat}", nil},
		"since when, why, and how it wakes": {graph + "status: 'True', reason: Idle, message: no request since 11:05}]}", &Sleep{State{"asleep", Off}, "It is asleep", []Fact{
			{"Since", "40m ago"}, {"Why", "no request since 11:05. They end after 15m without one"},
			{"It wakes", "with the next request, as with a question on the graph's page, or by kubectl dynamo scale wake chat --namespace llm"}, {"Requests", "are held for up to 90s while workers start"},
		}, "/graphs/llm/chat/changes/wake"}},
		"on its way": {graph + "status: 'False', reason: Waking, message: workers start}]}", &Sleep{State{"waking", Busy}, "Its workers start", []Fact{
			{"Since", "40m ago"}, {"Requests", "are held for up to 90s while workers start"},
		}, ""}},
		"one that serves": {graph + "status: 'False', reason: Active, message: workers end after 15m0s without a request}]}", &Sleep{State{"awake", Good}, "It is awake", []Fact{
			{"Since", "40m ago"}, {"It sleeps", "workers end after 15m0s without a request"},
		}, ""}},
		"one that would and cannot": {graph + "status: 'False', reason: ScaleToZeroUnsupported, message: it has no frontend}]}", &Sleep{State{"does not sleep", Off}, "It does not sleep", []Fact{{"Why", "it has no frontend"}}, ""}},
	} {
		t.Run(rule, func(t *testing.T) {
			got := sleepOf(decode[v1alpha1.DynamoGraphDeployment](t, c.graph), now)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
			if awake := c.want == nil || c.want.State.Tone == Good; got.Awake() != awake {
				t.Errorf("awake is %v", got.Awake())
			}
		})
	}
}

// TestWhatAConditionIsWorth: being true is a merit of most.
func TestWhatAConditionIsWorth(t *testing.T) {
	for condition, want := range map[string]State{
		"type: Ready, status: 'True'":                         {"true", Good},
		"type: Ready, status: 'False', reason: Starting":      {"false", Busy},
		"type: Ready, status: 'False', reason: ImageNotFound": {"false", Bad},
		"type: Ready, status: Unknown":                        {"unknown", Off},
		"type: ScalingLimited, status: 'True'":                {"true", Busy},
		"type: Dormant, status: 'True', reason: Idle":         {"true", Off},
		"type: Dormant, status: 'False', reason: Waking":      {"false", Busy},
		"type: Dormant, status: 'False', reason: Active":      {"false", Good},
	} {
		t.Run(condition, func(t *testing.T) {
			if diff := cmp.Diff(want, ConditionState(*decode[metav1.Condition](t, "{"+condition+"}"))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func gpuPod(namespace, of, node string, gpus int64, phase corev1.PodPhase) corev1.Pod {
	p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: of + "-" + node}, Spec: corev1.PodSpec{NodeName: node}, Status: corev1.PodStatus{Phase: phase}}
	if of != "" {
		p.Labels = map[string]string{v1alpha1.LabelGraphName: of}
	}
	limits := corev1.ResourceList{"nvidia.com/gpu": *resource.NewQuantity(gpus, resource.DecimalSI)}
	p.Spec.Containers = []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{Limits: limits}}}
	return p
}

func TestServiceCount(t *testing.T) {
	for rule, c := range map[string]struct {
		graph string
		want  ServiceCount
	}{
		"not seen yet":                     {"spec: {services: {d: {replicas: 2}}}", ServiceCount{"d", 0, 2, State{"not seen yet", Off}}},
		"ready":                            {"spec: {services: {d: {replicas: 2}}}\nstatus: {services: {d: {replicas: 2, readyReplicas: 2}}}", ServiceCount{"d", 2, 2, State{"ready", Good}}},
		"on its way":                       {"spec: {services: {d: {replicas: 2}}}\nstatus: {services: {d: {replicas: 2, readyReplicas: 1, message: it starts}}}", ServiceCount{"d", 1, 2, State{"starting", Busy}}},
		"scaled to zero":                   {"spec: {services: {d: {replicas: 0}}}\nstatus: {services: {d: {replicas: 0}}}", ServiceCount{"d", 0, 0, State{"scaled to zero", Off}}},
		"its graph sleeps":                 {"spec: {services: {d: {componentType: worker, replicas: 2}}}\nstatus: {conditions: [{type: Dormant, status: 'True'}], services: {d: {replicas: 0}}}", ServiceCount{"d", 0, 2, State{"asleep", Off}}},
		"its graph has just gone to sleep": {"spec: {services: {d: {componentType: worker, replicas: 2}}}\nstatus: {conditions: [{type: Dormant, status: 'True'}], services: {d: {replicas: 1, readyReplicas: 1}}}", ServiceCount{"d", 1, 2, State{"falling asleep", Busy}}},
		"a frontend stays awake":           {"spec: {services: {d: {componentType: frontend, replicas: 1}}}\nstatus: {conditions: [{type: Dormant, status: 'True'}], services: {d: {replicas: 1, readyReplicas: 1}}}", ServiceCount{"d", 1, 1, State{"ready", Good}}},
		"the cause":                        {"spec: {services: {d: {replicas: 1}}}\nstatus: {state: failed, conditions: [{type: Ready, status: 'False'}], services: {d: {replicas: 1, message: no image}}}", ServiceCount{"d", 0, 1, State{"not ready", Bad}}},
		"an adapter decides":               {"spec: {services: {d: {replicas: 1, scalingAdapter: {enabled: true}}}}\nstatus: {services: {d: {replicas: 3, availableReplicas: 3}}}", ServiceCount{"d", 3, 3, State{"ready", Good}}},
	} {
		t.Run(rule, func(t *testing.T) {
			if diff := cmp.Diff(c.want, serviceCount(decode[v1alpha1.DynamoGraphDeployment](t, c.graph), "d")); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestThePictureFollowsARequest(t *testing.T) {
	g := decode[v1alpha1.DynamoGraphDeployment](t, `
metadata: {namespace: llm, name: chat}
spec:
  services:
    Planner: {componentType: planner}
    Frontend: {componentType: frontend, extraPodSpec: {mainContainer: {args: [--router-mode, round-robin]}}}
    decode: {componentType: worker, subComponentType: decode, modelRef: {name: m}}
    prefill: {componentType: worker, subComponentType: prefill, modelRef: {name: m}}
    epp: {componentType: epp}
    cache: {componentType: other}
`)
	pods := []corev1.Pod{gpuPod("llm", "chat", "n2", 1, corev1.PodRunning), gpuPod("llm", "chat", "n1", 1, corev1.PodRunning)}
	for i := range pods {
		pods[i].Labels[v1alpha1.LabelComponent] = "decode"
	}
	page := OneGraph(Input{Graph: g, Pods: pods, Now: now, Loads: map[string]Load{"chat-n1": {Running: 2, Waiting: 1, KV: .2}, "chat-n2": {Running: 1, KV: .6}}})
	var titles []string
	for _, s := range page.Stages {
		titles = append(titles, s.Title)
	}
	if diff := cmp.Diff([]string{"Gateway", "Frontend and router", "Prefill", "Decode"}, titles); diff != "" {
		t.Error(diff)
	}
	var beside []string
	for _, b := range page.Beside {
		beside = append(beside, b.Role)
	}
	if diff := cmp.Diff([]string{"planner", "other"}, beside); diff != "" || !page.Frontend {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"m"}, page.Models); diff != "" {
		t.Error(diff)
	}
	box := page.Stages[3].Boxes[0]
	if box.GPUs != 2 || box.Nodes != "n1, n2" || *box.Load != (Load{Running: 3, Waiting: 1, KV: .4}) || page.Stages[1].Boxes[0].Routing != "routes round robin" {
		t.Errorf("%+v, load %v", box, box.Load)
	}
	if page.GPUs() != 2 {
		t.Errorf("%d GPUs", page.GPUs())
	}
}

func TestRolesOfServices(t *testing.T) {
	for rule, c := range map[string]struct {
		service v1alpha1.SharedSpec
		want    graph.Role
	}{
		"prefill": {v1alpha1.SharedSpec{ComponentType: v1alpha1.ComponentTypeWorker, SubComponentType: "prefill"}, graph.RolePrefill},
		"decode":  {v1alpha1.SharedSpec{ComponentType: v1alpha1.ComponentTypeWorker, SubComponentType: "decode"}, graph.RoleDecode},
		"worker":  {v1alpha1.SharedSpec{ComponentType: v1alpha1.ComponentTypeWorker}, graph.RoleWorker},
	} {
		t.Run(rule, func(t *testing.T) {
			if got := RoleOf(&c.service); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

func TestEventsOfAGraphAreTheNewestOfItsOwn(t *testing.T) {
	g := decode[v1alpha1.DynamoGraphDeployment](t, "metadata: {namespace: llm, name: chat}\nspec: {services: {decode: {}}}")
	event := func(name, namespace string, ago time.Duration) corev1.Event {
		return corev1.Event{InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: namespace, Name: name}, LastTimestamp: metav1.NewTime(now.Add(-ago)), Type: corev1.EventTypeWarning}
	}
	got := Events(g, []corev1.Event{event("chat", "llm", time.Hour), event("chat-decode-1", "llm", time.Minute), event("chat-decoder-1", "llm", 0), event("chat", "other", 0)}, now)
	want := []Event{{Object: "Pod chat-decode-1", Age: "60s", State: State{"warning", Bad}}, {Object: "Pod chat", Age: "60m", State: State{"warning", Bad}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestGPUsAreThoseThatSomebodyHolds(t *testing.T) {
	node := func(name string, gpus int64) corev1.Node {
		return corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{
			Allocatable: corev1.ResourceList{"nvidia.com/gpu": *resource.NewQuantity(gpus, resource.DecimalSI)},
			Conditions:  []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		}}
	}
	page := OneCluster([]corev1.Node{node("n2", 4), node("n1", 8)}, []corev1.Pod{
		gpuPod("a", "chat", "n1", 2, corev1.PodRunning), gpuPod("a", "chat", "n1", 1, corev1.PodRunning), gpuPod("b", "", "n1", 1, corev1.PodRunning),
		gpuPod("a", "chat", "n2", 4, corev1.PodSucceeded), gpuPod("a", "chat", "", 1, corev1.PodPending),
	})
	want := []Node{
		{Name: "n1", State: State{"ready", Good}, GPUs: 8, Held: 4, Pods: 3, Holders: []Holder{{"a/chat", "/graphs/a/chat", 3}, {"pod b/-n1", "", 1}}},
		{Name: "n2", State: State{"ready", Good}, GPUs: 4},
	}
	if diff := cmp.Diff(want, page.Nodes); diff != "" || page.Free() != 8 || page.Nodes[0].Percent() != 50 {
		t.Errorf("%d free: %s", page.Free(), diff)
	}
}

func TestFindingsThatNeedSomebodyComeFirst(t *testing.T) {
	got := Findings([]doctor.Finding{{What: "a"}, {What: "b", Note: true}, {What: "c", Wrong: true, Todo: "mend it"}})
	want := []Finding{{State{"wrong", Bad}, "c", "mend it"}, {State{"note", Off}, "b", ""}, {State{"fine", Good}, "a", ""}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestModels(t *testing.T) {
	models := []v1alpha1.DynamoModel{
		*decode[v1alpha1.DynamoModel](t, "metadata: {namespace: a, name: well}\nspec: {modelName: m, modelType: lora}\nstatus: {observedGeneration: 1, readyEndpoints: 1, totalEndpoints: 1, endpoints: [{podName: p, ready: true}]}"),
		*decode[v1alpha1.DynamoModel](t, "metadata: {namespace: a, name: half}\nstatus: {observedGeneration: 1, readyEndpoints: 1, totalEndpoints: 2, endpoints: [{podName: p, ready: true}, {podName: q}]}"),
		*decode[v1alpha1.DynamoModel](t, "metadata: {namespace: a, name: ill}\nstatus: {observedGeneration: 1, totalEndpoints: 1, endpoints: [{podName: q, error: no such adapter}]}"),
	}
	pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "p", Labels: map[string]string{v1alpha1.LabelGraphName: "chat"}}}
	var got []string
	for _, m := range AllModels(models, []corev1.Pod{pod}).Rows {
		line := m.Name + " " + m.State.Word + " " + string(m.State.Tone)
		for _, p := range m.Pods {
			line += ", " + p.Name + " " + string(p.State.Tone) + " " + p.Path
		}
		got = append(got, line)
	}
	if diff := cmp.Diff([]string{"ill failing bad, q bad ", "half loading busy, p good /graphs/a/chat/pods/p, q busy ", "well ready good, p good /graphs/a/chat/pods/p"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestARequestIsShownAsFarAsItIs(t *testing.T) {
	of := func(state string) *v1alpha1.DynamoGraphDeploymentRequest {
		return decode[v1alpha1.DynamoGraphDeploymentRequest](t, "metadata: {namespace: a, name: r}\nstatus: {state: "+state+"}")
	}
	for rule, c := range map[string]struct {
		state  string
		output map[string]string
		want   string
	}{
		"under way":                           {"Profiling", map[string]string{"progress.json": `{"done":3,"total":12,"stage":"Ranking"}`}, "25 % Ranking; Pending done, Profiling now, Deploying to come, Ready to come; 0 targets"},
		"done":                                {"Ready", map[string]string{"result.json": `{"state":"Succeeded","targets":[{"name":"ttft","want":300,"got":150,"met":true}],"chosen":"x"}`}, "0 % ; Pending done, Profiling done, Deploying done, Ready done; 1 targets, met 50 of 100"},
		"failed":                              {"Failed", nil, "0 % ; Pending to come, Profiling to come, Deploying to come, Ready to come, Failed failed; 0 targets"},
		"more done than there is is all":      {"Profiling", map[string]string{"progress.json": `{"done":30,"total":12}`}, "100 % ; Pending done, Profiling now, Deploying to come, Ready to come; 0 targets"},
		"what anybody may have written is no": {"Profiling", map[string]string{"progress.json": `{"done":"x"}`, "result.json": "[]"}, "0 % ; Pending done, Profiling now, Deploying to come, Ready to come; 0 targets"},
	} {
		t.Run(rule, func(t *testing.T) {
			r := OneRequest(of(c.state), c.output, now)
			var steps []string
			for _, s := range r.Steps {
				steps = append(steps, s.Name+" "+s.State.Word)
			}
			got := itoa(r.Percent()) + " % " + r.Stage + "; " + join(steps) + "; " + itoa(len(r.Targets)) + " targets"
			for _, target := range r.Targets {
				got += ", " + target.State.Word + " " + itoa(target.Got) + " of " + itoa(target.Want)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

const frontend = `# TYPE dynamo_frontend_requests_total counter
dynamo_frontend_requests_total{status="success"} %s
dynamo_frontend_requests_total{status="error"} 2
# TYPE dynamo_component_requests_total counter
dynamo_component_requests_total 99
# TYPE dynamo_frontend_output_tokens_total counter
dynamo_frontend_output_tokens_total 500
# TYPE dynamo_frontend_queued_requests gauge
dynamo_frontend_queued_requests 3
# TYPE dynamo_frontend_time_to_first_token_seconds histogram
dynamo_frontend_time_to_first_token_seconds_bucket{le="0.1"} %s
dynamo_frontend_time_to_first_token_seconds_bucket{le="0.3"} %s
dynamo_frontend_time_to_first_token_seconds_bucket{le="+Inf"} %s
dynamo_frontend_time_to_first_token_seconds_sum 1
dynamo_frontend_time_to_first_token_seconds_count %s
`

func sampleOf(t *testing.T, count string, at time.Time) Sample {
	t.Helper()
	s, err := ParseFrontend(strings.NewReader(strings.ReplaceAll(frontend, "%s", count)), at)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestRatesAreOfPodsThatWereSeenTwice(t *testing.T) {
	early, late := sampleOf(t, "10", now), sampleOf(t, "40", now.Add(10*time.Second))
	for rule, c := range map[string]struct {
		before, now map[string]Sample
		rate        float64
		known       bool
	}{
		"a pod seen twice":          {map[string]Sample{"a": early}, map[string]Sample{"a": late}, 3, true},
		"a pod that came":           {map[string]Sample{"a": early}, map[string]Sample{"a": late, "b": late}, 3, true},
		"only pods that came":       {map[string]Sample{"a": early}, map[string]Sample{"b": late}, 0, false},
		"counters that began anew":  {map[string]Sample{"a": late}, map[string]Sample{"a": {At: late.At.Add(time.Second)}}, 0, false},
		"the same look twice":       {map[string]Sample{"a": late}, map[string]Sample{"a": late}, 0, false},
		"two pods are added up":     {map[string]Sample{"a": early, "b": early}, map[string]Sample{"a": late, "b": late}, 6, true},
		"nobody was asked, or told": {nil, nil, 0, false},
	} {
		t.Run(rule, func(t *testing.T) {
			p, known := Between(c.before, c.now)
			if known != c.known || math.Abs(p.Requests-c.rate) > 1e-9 {
				t.Errorf("%v a second, %v", p.Requests, known)
			}
			if known && math.Abs(p.FirstToken-0.05) > 1e-9 {
				t.Errorf("median %v", p.FirstToken)
			}
		})
	}
	if early.Errors != 2 || early.Requests != 12 || early.Queued != 3 || early.Tokens != 500 {
		t.Errorf("%+v", early)
	}
}

func TestQuantiles(t *testing.T) {
	h := Histogram{Counts: map[float64]float64{0.1: 50, 0.2: 100, math.Inf(1): 100}, Count: 100}
	for q, want := range map[float64]float64{0.25: 0.05, 0.5: 0.1, 0.75: 0.15, 1: 0.2} {
		if got := h.Quantile(q); math.Abs(got-want) > 1e-9 {
			t.Errorf("%v: %v, want %v", q, got, want)
		}
	}
	if beyond := (Histogram{Counts: map[float64]float64{0.1: 1, math.Inf(1): 10}, Count: 10}); beyond.Quantile(0.9) != 0.1 {
		t.Errorf("beyond the last bound: %v", beyond.Quantile(0.9))
	}
	if !math.IsNaN((Histogram{}).Quantile(0.5)) {
		t.Error("a quantile of nothing is a number")
	}
}

func TestEnginesTellTheirLoadInTheirOwnWords(t *testing.T) {
	for rule, c := range map[string]struct {
		metrics string
		want    Load
		told    bool
	}{
		"vLLM":         {"vllm:num_requests_running 3\nvllm:num_requests_waiting 1\nvllm:kv_cache_usage_perc 0.5\n", Load{3, 1, .5}, true},
		"vLLM, before": {"vllm:num_requests_running 3\nvllm:num_requests_waiting 1\nvllm:gpu_cache_usage_perc 0.5\n", Load{3, 1, .5}, true},
		"SGLang":       {"sglang:num_running_reqs{r=\"0\"} 1\nsglang:num_running_reqs{r=\"1\"} 1\nsglang:num_queue_reqs 4\nsglang:token_usage{r=\"0\"} 0.2\nsglang:token_usage{r=\"1\"} 0.4\n", Load{2, 4, .3}, true},
		"TensorRT-LLM": {"trtllm_num_requests_running 7\ntrtllm_kv_cache_utilization 0.25\n", Load{7, 0, .25}, true},
		"nothing":      {"process_cpu_seconds_total 1\n", Load{}, false},
	} {
		t.Run(rule, func(t *testing.T) {
			got, told, err := ParseEngine(strings.NewReader(c.metrics))
			if err != nil || told != c.told || math.Abs(got.KV-c.want.KV) > 1e-9 || got.Running != c.want.Running || got.Waiting != c.want.Waiting {
				t.Errorf("%+v, %v, %v", got, told, err)
			}
		})
	}
	if _, _, err := ParseEngine(strings.NewReader("{{{")); err == nil {
		t.Error("what is no metric is read as one")
	}
}

func TestSparklinesStayInTheirBox(t *testing.T) {
	for rule, c := range map[string]struct {
		rates []float64
		want  string
	}{
		"one point is no line": {[]float64{1}, ""},
		"up and down":          {[]float64{0, 4, 2}, "0.0,20.5 48.0,1.5 96.0,11.0"},
		"nothing at all":       {[]float64{0, 0}, "0.0,20.5 96.0,20.5"},
	} {
		t.Run(rule, func(t *testing.T) {
			if diff := cmp.Diff(c.want, Spark(c.rates)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestFiguresSayInWordsWhatTheyShow(t *testing.T) {
	figures := Figures([]Point{{At: now, Requests: 3, Errors: 1, FirstToken: .12, FirstToken99: .3, InterToken: math.NaN(), InterToken99: math.NaN()}})
	var got []string
	for _, f := range figures {
		got = append(got, f.Title+": "+f.Words)
	}
	want := []string{
		"Requests: answered 2 a second, failed 1 a second", "Time to first token: median 120 ms, 99th percentile 300 ms",
		"Time between tokens: median no value yet, 99th percentile no value yet", "Requests under way: in flight 0, without a first token 0",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestNoModel(t *testing.T) {
	g := &v1alpha1.DynamoGraphDeployment{}
	if got := NoModel(g); !strings.Contains(got, "no model yet") {
		t.Errorf("a graph that starts: %s", got)
	}
	g.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionDormant, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonIdle}}
	if got := NoModel(g); !strings.Contains(got, "Wake it") {
		t.Errorf("a graph that sleeps: %s", got)
	}
}
