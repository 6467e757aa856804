package view

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
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

func TestWhoDecidesHowMany(t *testing.T) {
	adapter := func(text string) []v1alpha1.DynamoGraphDeploymentScalingAdapter {
		return []v1alpha1.DynamoGraphDeploymentScalingAdapter{*decode[v1alpha1.DynamoGraphDeploymentScalingAdapter](t, text)}
	}
	const active = "metadata: {namespace: llm, name: chat-decode}\nspec: {replicas: 7, dgdRef: {name: chat, serviceName: decode}}\nstatus: {lastScaleTime: '2026-11-16T11:58:00Z', conditions: [{type: Active, status: '%', message: it is disabled}]}"
	for rule, c := range map[string]struct {
		adapters []v1alpha1.DynamoGraphDeploymentScalingAdapter
		want     ScalingRow
	}{
		"the spec":                          {nil, ScalingRow{Scale: Scale{4, 5, 4}, State: State{"1 replica to go", Busy}, By: "the graph's spec"}},
		"an adapter":                        {adapter(strings.ReplaceAll(active, "%", "True")), ScalingRow{Scale: Scale{7, 5, 4}, State: State{"3 replicas to come", Busy}, By: "scaling adapter chat-decode", Changed: "2m"}},
		"an adapter that has nothing to do": {adapter(strings.ReplaceAll(active, "%", "False")), ScalingRow{Scale: Scale{4, 5, 4}, State: State{"1 replica to go", Busy}, By: "the graph's spec", Note: "scaling adapter chat-decode decides nothing: it is disabled", Changed: "2m"}},
		"not that of another graph":         {adapter(strings.ReplaceAll(strings.ReplaceAll(active, "%", "True"), "name: chat,", "name: other,")), ScalingRow{Scale: Scale{4, 5, 4}, State: State{"1 replica to go", Busy}, By: "the graph's spec"}},
	} {
		t.Run(rule, func(t *testing.T) {
			c.want.Service, c.want.Role = "decode", "worker"
			page := OneScaling(ScalingInput{Graph: decode[v1alpha1.DynamoGraphDeployment](t, rolling), Adapters: c.adapters, Now: now})
			if diff := cmp.Diff([]ScalingRow{c.want}, page.Rows); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestDecisionsOfAnyPlanner(t *testing.T) {
	for rule, c := range map[string]struct {
		answer string
		want   []Decision
	}{
		"none":                     {"", nil},
		"an empty list":            {"[]", nil},
		"the newest first":         {`[{"at":"1","words":["a","b"],"from":{"decode":1}},{"at":"2","words":["c"],"failed":"no right"}]`, []Decision{{"2", "c\nfailed: no right"}, {"1", "a\nb"}}},
		"fields":                   {`{"decisions":[{"time":"t","explanation":"why","replicas":3,"limited":{"by":"budget"}}]}`, []Decision{{"t", "why\nlimited: {\"by\":\"budget\"}\nreplicas: 3"}}},
		"sentences":                {`["grow", 4]`, []Decision{{"", "4"}, {"", "grow"}}},
		"a document of some form":  {`{"a":1}`, []Decision{{"", "{\n  \"a\": 1\n}"}}},
		"plain text":               {"grow by one\nbecause\n", []Decision{{"", "grow by one\nbecause"}}},
		"a time that is no string": {`[{"at":5}]`, []Decision{{"", "at: 5"}}},
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
