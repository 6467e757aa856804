package view

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/cli/scale"
	"github.com/dynamo-operator/dynamo-operator/internal/core/planner/budget"
)

const rolling = `
metadata: {name: chat, namespace: llm, generation: 4, annotations: {nvidia.com/rollout-steps: "1 5m, 50% hold", nvidia.com/rollout-slo: "errors<1%, itl-p95<60ms"}}
spec: {services: {decode: {componentType: worker, replicas: 4}}}
status:
  observedGeneration: 4
  services: {decode: {componentKind: Deployment, componentName: d, replicas: 5, updatedReplicas: 2, readyReplicas: 4}}
  rollout:
    revision: 8
    target: 3fa91c02
    stable: 91c0aa17
    phase: Shifting
    step: 1/2
    startedAt: "2026-11-16T12:00:00Z"
    roles: {decode: {desired: 4, floor: 4, effective: 4, lowest: 4}}
    generations:
      - {id: 3fa91c02, revision: 8, roles: {decode: {replicas: 2, routable: 1, starting: 1}}}
      - {id: 91c0aa17, revision: 7, share: 80%, roles: {decode: {replicas: 3, routable: 3}}}
      - {id: 0badcafe, revision: 6, roles: {decode: {replicas: 0, leaving: 1}}}
    analysis: {verdict: fail, errors: [3.0%, 0.1%], itlP95: [21ms], samples: 12}
`

func TestARolloutIsShownAsItIs(t *testing.T) {
	for rule, c := range map[string]struct {
		change func(*v1alpha1.DynamoGraphDeployment)
		want   string
	}{
		"it moves":   {func(*v1alpha1.DynamoGraphDeployment) {}, "shifting busy; 1 for 5m0s now, 50% until it is promoted to come, all to come; at or above its floor; fail: Requests that failed 3.0% 0.1% 1%"},
		"it is done": {func(d *v1alpha1.DynamoGraphDeployment) { d.Status.Rollout.Phase = "Completed" }, "completed good; 1 for 5m0s done, 50% until it is promoted done, all done; at or above its floor; fail: Requests that failed 3.0% 0.1% 1%"},
		"it is past": {func(d *v1alpha1.DynamoGraphDeployment) { d.Status.Rollout.Step = "all" }, "shifting busy; 1 for 5m0s done, 50% until it is promoted done, all now; at or above its floor; fail: Requests that failed 3.0% 0.1% 1%"},
		"it was aborted": {func(d *v1alpha1.DynamoGraphDeployment) {
			d.Status.Rollout.Phase, d.Status.Rollout.Analysis = "Aborted", nil
		}, "aborted bad; 1 for 5m0s now, 50% until it is promoted to come, all to come; at or above its floor"},
		"too little serves, and it says so": {func(d *v1alpha1.DynamoGraphDeployment) {
			d.Status.Rollout.Roles["decode"] = v1alpha1.RolloutRoleStatus{Desired: 4, Floor: 4, Effective: 3}
			d.Annotations, d.Status.Rollout.Analysis = nil, nil
		}, "shifting busy; ; below its floor"},
		"nobody has seen the last change": {func(d *v1alpha1.DynamoGraphDeployment) {
			d.Generation, d.Annotations, d.Status.Rollout.Analysis = 5, nil, nil
		}, "the operator has not seen the last change yet off; ; at or above its floor"},
	} {
		t.Run(rule, func(t *testing.T) {
			dgd := decode[v1alpha1.DynamoGraphDeployment](t, rolling)
			c.change(dgd)
			page := OneRollout(dgd, nil, now)
			var steps []string
			for _, s := range page.Steps {
				steps = append(steps, s.Name+" "+s.State.Word)
			}
			got := page.State.Word + " " + string(page.State.Tone) + "; " + join(steps) + "; " + page.Roles[0].State.Word
			if a := page.Analysis; a != nil {
				got += "; " + a.Verdict.Word + ":"
				for _, r := range a.Rows {
					got += " " + strings.Join([]string{r.Name, r.Target, r.Stable, r.Bound}, " ")
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestGenerationsAreNamedByTheirPart(t *testing.T) {
	page := OneRollout(decode[v1alpha1.DynamoGraphDeployment](t, rolling), nil, now)
	var got []string
	for _, g := range page.Generations {
		got = append(got, g.ID+" "+g.Part+" "+g.Share+" "+g.Roles[0].State.Word)
	}
	if diff := cmp.Diff([]string{"3fa91c02 to arrive at not told starting", "91c0aa17 stable 80% serving", "0badcafe left over not told leaving"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestButtonsCarryWhatWasShown(t *testing.T) {
	page := OneRollout(decode[v1alpha1.DynamoGraphDeployment](t, rolling), nil, now)
	var got []string
	for _, o := range page.Orders {
		got = append(got, o.Name+" "+o.Path)
		if o.Confirm == "" {
			t.Errorf("%s asks nobody", o.Name)
		}
	}
	const at = "/graphs/llm/chat/rollout/orders/"
	want := []string{
		"Promote step 1/2 " + at + "promote?revision=8&step=1%2F2", "Promote all " + at + "promote-all?revision=8&step=1%2F2",
		"Pause " + at + "pause?revision=8&step=1%2F2", "Abort " + at + "abort?revision=8&step=1%2F2", "Undo " + at + "undo?revision=8&step=1%2F2",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestTabsOfAGraph(t *testing.T) {
	dgd := decode[v1alpha1.DynamoGraphDeployment](t, rolling)
	if diff := cmp.Diff([]Tab{{"/graphs/llm/chat", "Graph", true}, {"/graphs/llm/chat/rollout", "Rollout", false}, {"/graphs/llm/chat/scaling", "Scaling", false}}, Tabs(dgd, "Graph")); diff != "" {
		t.Error(diff)
	}
	dgd.Status.Rollout = nil
	if diff := cmp.Diff([]Tab{{"/graphs/llm/chat", "Graph", false}, {"/graphs/llm/chat/scaling", "Scaling", true}}, Tabs(dgd, "Scaling")); diff != "" {
		t.Error(diff)
	}
}

// TestCapacityOverTime: values hold until the next, those of an earlier rollout are left
// out, and the last reaches to now.
func TestCapacityOverTime(t *testing.T) {
	dgd := decode[v1alpha1.DynamoGraphDeployment](t, rolling)
	var moments []Moment
	for _, m := range []struct {
		after     time.Duration
		effective int32
	}{{-time.Minute, 9}, {time.Second, 4}, {2500 * time.Millisecond, 5}} {
		of := dgd.DeepCopy()
		of.Status.Rollout.Roles["decode"] = v1alpha1.RolloutRoleStatus{Desired: 4, Floor: 3, Effective: m.effective}
		moments = append(moments, MomentOf(of, nil, now.Add(m.after)))
	}
	if again := MomentOf(dgd, nil, now.Add(time.Hour)); !again.Same(MomentOf(dgd, nil, now)) || again.Same(moments[2]) {
		t.Error("moments are told apart by when they were, and not by what they show")
	}
	page := OneRollout(dgd, moments, now.Add(10*time.Second))
	f := page.Figures[0]
	var serving []float64
	for _, v := range f.Series[0].Values {
		serving = append(serving, *v)
	}
	begin := float64(now.Unix())
	if diff := cmp.Diff([]float64{4, 5, 5}, serving); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]float64{begin + 1, begin + 2.5, begin + 10}, f.Times); diff != "" || !f.Stepped {
		t.Error(diff)
	}
	if f.Words != "serving 5 replicas, floor 3 replicas, desired 4 replicas" {
		t.Error(f.Words)
	}
}

func TestWantedGrantedReady(t *testing.T) {
	const sleeps = "{type: Dormant, status: 'True', reason: Idle}"
	const limited = "{type: ScalingLimited, status: 'True'}"
	at := metav1.NewTime(now.Add(-2 * time.Minute))
	for rule, c := range map[string]struct {
		conditions string
		explained  scale.ServiceExplanation
		want       ScalingRow
	}{
		"as wanted": {"", scale.ServiceExplanation{Wanted: 4, Granted: 4, Ready: 4, GPUs: 8, By: "kubectl in the graph's spec", At: &at, Startup: &v1alpha1.StartupTimes{P50Seconds: 80, P95Seconds: 95}},
			ScalingRow{Scale: Scale{4, 4, 4}, State: State{"as wanted", Good}, GPUs: 8, By: "kubectl in the graph's spec", Changed: "2m", Start: "1m20s, p95 1m35s"}},
		"more than wanted":      {"", scale.ServiceExplanation{Wanted: 4, Granted: 5, Ready: 4}, ScalingRow{Scale: Scale{4, 5, 4}, State: State{"1 replica to go", Busy}}},
		"on its way":            {"", scale.ServiceExplanation{Wanted: 7, Granted: 7, Ready: 4}, ScalingRow{Scale: Scale{7, 7, 4}, State: State{"3 replicas to come", Busy}}},
		"granted later":         {"", scale.ServiceExplanation{Wanted: 7, Granted: 5, Ready: 4}, ScalingRow{Scale: Scale{7, 5, 4}, State: State{"3 replicas to come", Busy}}},
		"a budget holds":        {limited, scale.ServiceExplanation{Wanted: 7, Granted: 5, Ready: 4}, ScalingRow{Scale: Scale{7, 5, 4}, State: State{"2 replicas not granted", Busy}}},
		"a budget lets go":      {limited, scale.ServiceExplanation{Wanted: 7, Granted: 7, Ready: 4}, ScalingRow{Scale: Scale{7, 7, 4}, State: State{"3 replicas to come", Busy}}},
		"workers of who sleeps": {sleeps, scale.ServiceExplanation{Wanted: 4}, ScalingRow{Scale: Scale{4, 0, 0}, State: State{"asleep", Off}}},
	} {
		t.Run(rule, func(t *testing.T) {
			dgd := decode[v1alpha1.DynamoGraphDeployment](t, "metadata: {name: chat, namespace: llm}\nspec: {services: {decode: {componentType: worker, replicas: 4}}}\nstatus: {services: {decode: {replicas: 0}}, conditions: ["+c.conditions+"]}")
			c.want.Service, c.want.Role, c.explained.Name = "decode", "worker", "decode"
			page := OneScaling(ScalingInput{Graph: dgd, Explained: scale.Explanation{GPUs: 8, Limited: []string{"why"}, Services: []scale.ServiceExplanation{c.explained}}, Now: now})
			if diff := cmp.Diff([]ScalingRow{c.want}, page.Rows); diff != "" {
				t.Error(diff)
			}
			if page.Held != 8 || page.Planner || len(page.Limited) != 1 {
				t.Errorf("%d held, planner %v, limited %v", page.Held, page.Planner, page.Limited)
			}
		})
	}
}

func TestBudgetsAndWhoHoldsThem(t *testing.T) {
	pods := []corev1.Pod{
		gpuPod("llm", "chat", "n1", 2, corev1.PodRunning), gpuPod("llm", "chat", "", 2, corev1.PodPending), gpuPod("llm", "chat", "n2", 8, corev1.PodSucceeded),
		gpuPod("llm", "other", "n1", 5, corev1.PodRunning), gpuPod("lab", "chat", "n2", 1, corev1.PodRunning), gpuPod("llm", "", "n2", 4, corev1.PodRunning), gpuPod("llm", "chat", "n3", 0, corev1.PodRunning),
	}
	for i := range 2 {
		pods[i].Labels[v1alpha1.LabelComponent] = "decode"
	}
	own := Budget{Of: "graph chat", GPUs: 8, Used: 4, Known: true, Holders: []Holder{{Name: "decode", GPUs: 4}}}
	others := []Holder{{"llm/other", "/graphs/llm/other", 5}, {"llm/chat", "/graphs/llm/chat", 4}}
	for rule, c := range map[string]struct {
		annotation string
		configured *budget.Budgets
		everywhere bool
		want       []Budget
	}{
		"its own":                        {"8", nil, false, []Budget{own}},
		"none at all":                    {"", nil, true, []Budget{{Of: "graph chat", Used: 4, Known: true, Holders: own.Holders}}},
		"one that is none has no effect": {"many", nil, true, []Budget{{Of: "graph chat", Used: 4, Known: true, Holders: own.Holders}}},
		"those of the configuration": {"8", &budget.Budgets{Cluster: 12, Namespaces: map[string]int{"llm": 9, "lab": 1}}, true, []Budget{
			own, {Of: "namespace llm", GPUs: 9, Used: 9, Known: true, Holders: others},
			{Of: "all graphs", GPUs: 12, Used: 10, Known: true, Holders: append(others[:2:2], Holder{"lab/chat", "/graphs/lab/chat", 1})},
		}},
		"who sees one namespace does not know what all use": {"8", &budget.Budgets{Cluster: 12}, false, []Budget{
			own, {Of: "namespace llm", Used: 9, Known: true, Holders: others},
			{Of: "all graphs", GPUs: 12, Used: 10, Holders: append(others[:2:2], Holder{"lab/chat", "/graphs/lab/chat", 1})},
		}},
	} {
		t.Run(rule, func(t *testing.T) {
			dgd := decode[v1alpha1.DynamoGraphDeployment](t, "metadata: {name: chat, namespace: llm}")
			page := OneScaling(ScalingInput{Graph: dgd, Explained: scale.Explanation{Budget: c.annotation}, Pods: pods, Configured: c.configured, Everywhere: c.everywhere, Now: now})
			if diff := cmp.Diff(c.want, page.Budgets); diff != "" {
				t.Error(diff)
			}
		})
	}
	if own.Left() != 4 || own.Percent() != 50 || (Budget{Used: 3}).Percent() != 0 || (Budget{GPUs: 2, Used: 3}).Left() != 0 {
		t.Errorf("%d left, %d %%", own.Left(), own.Percent())
	}
}

func TestDecisionsOfAnyPlanner(t *testing.T) {
	for rule, c := range map[string]struct {
		answer string
		want   []Decision
	}{
		"none":                      {"", nil},
		"an empty list":             {"[]", nil},
		"the newest first":          {`[{"at":"1","words":["a","b"],"from":{"decode":1}},{"at":"2","words":["c"],"failed":"no right"}]`, []Decision{{"2", "c\nfailed: no right"}, {"1", "a\nb"}}},
		"what only advises":         {`[{"at":"2026-11-16T12:00:00Z","advisory":true,"words":["grow"],"from":{"decode":1},"to":{"decode":2}}]`, []Decision{{"2026-11-16T12:00:00Z", "grow\nnot written: it only advises"}}},
		"what could not be written": {`[{"at":"2026-11-16T12:00:00Z","failed":"no right","words":["grow","by one"]}]`, []Decision{{"2026-11-16T12:00:00Z", "grow\nby one\nnot written: no right"}}},
		"fields":                    {`{"decisions":[{"time":"t","explanation":"why","replicas":3,"limited":{"by":"budget"}}]}`, []Decision{{"t", "why\nlimited: {\"by\":\"budget\"}\nreplicas: 3"}}},
		"sentences":                 {`["grow", 4]`, []Decision{{"", "4"}, {"", "grow"}}},
		"a document of some form":   {`{"a":1}`, []Decision{{"", "{\n  \"a\": 1\n}"}}},
		"plain text":                {"grow by one\nbecause\n", []Decision{{"", "grow by one\nbecause"}}},
		"a time that is no string":  {`[{"at":5}]`, []Decision{{"", "at: 5"}}},
	} {
		t.Run(rule, func(t *testing.T) {
			if diff := cmp.Diff(c.want, Decisions([]byte(c.answer))); diff != "" {
				t.Error(diff)
			}
		})
	}
	if many := Decisions([]byte("[" + strings.Repeat("1,", 99) + "1]")); len(many) != shownDecisions {
		t.Errorf("%d are shown", len(many))
	}
}
