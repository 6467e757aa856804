package status

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/managed"
	"github.com/dynamo-operator/dynamo-operator/internal/core/snapshot"
	"github.com/dynamo-operator/dynamo-operator/internal/core/workload/component"
)

func TestAGraphSaysWhatLimitsItsScaling(t *testing.T) {
	const blind = `{"reason":"MetricsUnavailable","words":["prefill 2, decode 1","nothing was seen for 3 ticks"]}`
	const short = "decode has 3 of 9 replicas"
	for rule, c := range map[string]struct {
		plan, limited   string
		unplanned       bool
		reason, message string
	}{
		"nothing does":                                {},
		"a plan of a planner that sees does not":      {plan: `{"reason":"NeedGrew","words":["prefill 2, decode 1"]}`},
		"a plan that is none does not":                {plan: "{"},
		"a plan that no planner has written does not": {plan: `{"reason":"MetricsUnavailable","words":["` + strings.Repeat("x", 4000) + `"]}`},
		"a budget":                    {limited: short, reason: v1alpha1.ReasonBudgetExhausted, message: short},
		"a planner that sees nothing": {plan: blind, reason: v1alpha1.ReasonMetricsUnavailable, message: "the planner changes nothing: nothing was seen for 3 ticks"},
		"both, the budget first":      {plan: blind, limited: short, reason: v1alpha1.ReasonBudgetExhausted, message: short + "; the planner changes nothing: nothing was seen for 3 ticks"},
		"a planner that the graph no longer has does not": {plan: blind, unplanned: true},
	} {
		t.Run(rule, func(t *testing.T) {
			dgd := &v1alpha1.DynamoGraphDeployment{}
			dgd.Annotations = map[string]string{v1alpha1.AnnotationScalePlan: c.plan}
			g := &graph.Graph{Components: []graph.Component{{Name: "Planner", Role: graph.RolePlanner}}}
			if c.unplanned {
				g.Components = nil
			}
			dgd.Status = Graph(dgd, g, component.Builder{}, snapshot.Snapshot{Limited: c.limited}, rollout.Step{}, managed.State{}, nil, noon)
			var got []string
			if is := meta.FindStatusCondition(dgd.Status.Conditions, v1alpha1.ConditionScalingLimited); is != nil {
				got = []string{string(is.Status), is.Reason, is.Message}
			}
			var want []string
			if c.reason != "" {
				want = []string{"True", c.reason, c.message}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAGraphTellsWhatBudgetsGrant(t *testing.T) {
	g := &graph.Graph{Components: []graph.Component{{Name: "decode", Role: graph.RoleDecode}, {Name: "frontend", Role: graph.RoleFrontend}}}
	now := Graph(&v1alpha1.DynamoGraphDeployment{}, g, component.Builder{}, snapshot.Snapshot{Granted: map[string]int{"decode": 0}}, rollout.Step{}, managed.State{}, nil, noon)
	if n := now.Services["decode"].GrantedReplicas; n == nil || *n != 0 {
		t.Errorf("decode is granted %v", n)
	}
	if n := now.Services["frontend"].GrantedReplicas; n != nil {
		t.Errorf("the frontend counts against no budget, and is granted %d", *n)
	}
}

func TestAGraphTellsWhoseBudgetLimitsAService(t *testing.T) {
	g := &graph.Graph{Components: []graph.Component{{Name: "decode", Role: graph.RoleDecode}, {Name: "prefill", Role: graph.RolePrefill}}}
	dgd := &v1alpha1.DynamoGraphDeployment{}
	for _, want := range []string{"namespace lab", ""} { // the last is not kept
		limits := map[string]string{}
		if want != "" {
			limits["decode"] = want
		}
		dgd.Status = Graph(dgd, g, component.Builder{}, snapshot.Snapshot{LimitedBy: limits}, rollout.Step{}, managed.State{}, nil, noon)
		if got := dgd.Status.Services["decode"].LimitedBy; got != want {
			t.Errorf("decode is limited by %q, want %q", got, want)
		}
		if got := dgd.Status.Services["prefill"].LimitedBy; got != "" {
			t.Errorf("prefill is limited by %q, and nothing limits it", got)
		}
	}
}
