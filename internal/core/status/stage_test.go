package status

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/fault"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/managed"
	"github.com/dynamo-operator/dynamo-operator/internal/core/snapshot"
	"github.com/dynamo-operator/dynamo-operator/internal/core/workload/component"
)

func TestStages(t *testing.T) {
	g := &graph.Graph{Name: "chat", Components: []graph.Component{
		{Name: "decode", ObjectName: "chat-decode", Nodes: 1}, {Name: "prefill", ObjectName: "chat-decode", Nodes: 1},
	}}
	up := []graph.Object{component1(1, 1, metav1.ConditionTrue, "")}
	down := []graph.Object{component1(1, 1, metav1.ConditionFalse, "0 of 1 replicas available")}
	stuck := component1(1, 1, metav1.ConditionFalse, "0 of 1 replicas available")
	setCondition(&stuck.Status.Conditions, v1alpha1.ConditionProgressing, condition{false, v1alpha1.ReasonRolloutStuck, ""}, 1, now)
	for rule, c := range map[string]struct {
		owned   []graph.Object
		before  string // the stage it was last seen in
		ago     int64  // that many generations ago
		restart *rollout.Record
		err     error
		want    []string
	}{
		"nothing was made yet":              {want: []string{"True", v1alpha1.StageInitializing, "its objects are being made"}},
		"it comes up for the first time":    {owned: down, before: v1alpha1.StageInitializing, want: []string{"True", v1alpha1.StageDeploying, "generation 7 is being rolled out"}},
		"it runs":                           {owned: up, before: v1alpha1.StageDeploying, want: []string{"True", v1alpha1.StageComplete, "generation 7 runs in full"}},
		"it goes on running":                {owned: up, before: v1alpha1.StageComplete, want: []string{"True", v1alpha1.StageComplete, "generation 7 runs in full"}},
		"it ran and lost something":         {owned: down, before: v1alpha1.StageComplete, want: []string{"True", v1alpha1.StageRepairing, "generation 7 ran in full and is being repaired"}},
		"it still lacks it":                 {owned: down, before: v1alpha1.StageRepairing, want: []string{"True", v1alpha1.StageRepairing, "generation 7 ran in full and is being repaired"}},
		"it has it again":                   {owned: up, before: v1alpha1.StageRepairing, want: []string{"True", v1alpha1.StageRepaired, "generation 7 runs in full again"}},
		"it stays repaired":                 {owned: up, before: v1alpha1.StageRepaired, want: []string{"True", v1alpha1.StageRepaired, "generation 7 runs in full again"}},
		"a new spec is no repair":           {owned: down, before: v1alpha1.StageComplete, ago: 1, want: []string{"True", v1alpha1.StageDeploying, "generation 7 is being rolled out"}},
		"a new spec forgets repairs":        {owned: up, before: v1alpha1.StageRepaired, ago: 1, want: []string{"True", v1alpha1.StageComplete, "generation 7 runs in full"}},
		"a workload has given up":           {owned: []graph.Object{stuck}, want: []string{"False", v1alpha1.StageFailed, "no progress for as long as a workload is given: decode: 0 of 1 replicas available; prefill: 0 of 1 replicas available"}},
		"an API is missing":                 {err: fault.New(fault.Unsupported, "X", "install it"), want: []string{"True", v1alpha1.StageWaiting, "install it"}},
		"a passing error":                   {err: errors.New("timeout"), want: []string{"True", v1alpha1.StageRetrying, "retrying with back-off"}},
		"a rule is broken":                  {err: fault.New(fault.Invalid, "X", "fix it"), want: []string{"False", v1alpha1.StageFailed, "fix it"}},
		"an error beside one that retries":  {err: errors.Join(fault.New(fault.Invalid, "X", "fix it"), errors.New("timeout")), want: []string{"True", v1alpha1.StageRetrying, "retrying with back-off"}},
		"services wait for another's turn":  {owned: up, restart: &rollout.Record{ID: "1", Phase: rollout.Restarting, InProgress: []string{"decode"}}, want: []string{"True", v1alpha1.StageRestarting, "restart 1 is at decode; waiting for it: prefill"}},
		"a restart that ended is no stage":  {owned: up, restart: &rollout.Record{ID: "1", Phase: rollout.Completed}, want: []string{"True", v1alpha1.StageComplete, "generation 7 runs in full"}},
		"a restart failed and is still off": {owned: down, restart: &rollout.Record{ID: "1", Phase: rollout.Failed, Message: "decode did not come up again"}, want: []string{"False", v1alpha1.StageFailed, "restart 1: decode did not come up again"}},
	} {
		t.Run(rule, func(t *testing.T) {
			dgd := &v1alpha1.DynamoGraphDeployment{ObjectMeta: metav1.ObjectMeta{Name: "chat", Generation: 7}}
			if c.before != "" {
				setCondition(&dgd.Status.Conditions, v1alpha1.ConditionProgressing, condition{true, c.before, ""}, 7-c.ago, now)
			}
			step := rollout.Step{Record: c.restart, Marks: map[string]string{"decode": "1"}}
			s := Graph(dgd, g, component.Builder{}, snapshot.Snapshot{Owned: c.owned}, step, managed.State{}, c.err, now)
			got := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionProgressing)
			if diff := cmp.Diff(c.want, []string{string(got.Status), got.Reason, got.Message}); diff != "" {
				t.Errorf("stage (-want +got):\n%s", diff)
			}
		})
	}
}
