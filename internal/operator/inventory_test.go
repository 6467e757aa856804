package operator

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/operator/metric"
)

func TestAnObjectIsCountedAsReadyInItsOwnGenerationAlone(t *testing.T) {
	graph := func(generation, observed int64, state v1alpha1.GraphState, ready metav1.ConditionStatus) client.Object {
		dgd := &v1alpha1.DynamoGraphDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "a", Generation: generation}}
		dgd.Status.ObservedGeneration, dgd.Status.State = observed, state
		dgd.Status.Conditions = conditions(v1alpha1.ConditionReady, ready, time.Time{})
		return dgd
	}
	component := func(generation, observed int64, available metav1.ConditionStatus) client.Object {
		dcd := &v1alpha1.DynamoComponentDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "a", Generation: generation}}
		dcd.Status.ObservedGeneration = observed
		dcd.Status.Conditions = conditions(v1alpha1.ConditionAvailable, available, time.Time{})
		return dcd
	}
	counted := func(kind, status string, ready bool) metric.Object {
		return metric.Object{Kind: kind, Namespace: "n", Name: "a", Status: status, Ready: ready}
	}
	const dgd, dcd = v1alpha1.KindDynamoGraphDeployment, v1alpha1.KindDynamoComponentDeployment
	cases := map[string]struct {
		object client.Object
		want   metric.Object
	}{
		"a graph that is ready":                       {graph(2, 2, "successful", "True"), counted(dgd, "successful", true)},
		"one that was changed since":                  {graph(3, 2, "successful", "True"), counted(dgd, "pending", false)},
		"one that failed before it was changed":       {graph(3, 2, "failed", "False"), counted(dgd, "failed", false)},
		"one that nobody has looked at":               {graph(1, 0, "", ""), counted(dgd, "unknown", false)},
		"a component that is available":               {component(2, 2, "True"), counted(dcd, "ready", false)},
		"one that was changed since it was available": {component(3, 2, "True"), counted(dcd, "not_ready", false)},
		"one that is not available in its generation": {component(2, 2, "False"), counted(dcd, "not_ready", false)},
	}
	for rule, c := range cases {
		t.Run(rule, func(t *testing.T) {
			if diff := cmp.Diff(c.want, countable(c.object)); diff != "" {
				t.Error("-want +got", diff)
			}
		})
	}
}

func conditions(kind string, status metav1.ConditionStatus, since time.Time) []metav1.Condition {
	return []metav1.Condition{{Type: kind, Status: status, LastTransitionTime: metav1.NewTime(since)}}
}

func TestBecameReady(t *testing.T) {
	born := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	graph := func(state v1alpha1.GraphState, ready metav1.ConditionStatus, since time.Duration) *v1alpha1.DynamoGraphDeployment {
		dgd := &v1alpha1.DynamoGraphDeployment{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(born)}}
		dgd.Status.State = state
		if ready != "" {
			dgd.Status.Conditions = conditions(v1alpha1.ConditionReady, ready, born.Add(since))
		}
		return dgd
	}
	cases := map[string]struct {
		was    *v1alpha1.DynamoGraphDeployment
		is     metav1.ConditionStatus
		want   time.Duration
		became bool
	}{
		"a new graph counts from its creation":               {was: graph("", "", 0), is: "True", want: time.Minute, became: true},
		"one that failed meanwhile counts from then":         {was: graph("pending", "False", 40*time.Second), is: "True", want: 20 * time.Second, became: true},
		"a condition of the first moment is the creation":    {was: graph("pending", "False", time.Second), is: "True", want: time.Minute, became: true},
		"a graph that stays ready has not become it":         {was: graph("successful", "True", 0), is: "True"},
		"a graph that is not ready has not become it either": {was: graph("pending", "False", 0), is: "False"},
	}
	for rule, c := range cases {
		t.Run(rule, func(t *testing.T) {
			got, became := becameReady(c.was, graph("", c.is, time.Minute), born.Add(time.Minute))
			if got != c.want || became != c.became {
				t.Errorf("becameReady = %s, %v, want %s, %v", got, became, c.want, c.became)
			}
		})
	}
}

func TestWhatIsCountedOfARollout(t *testing.T) {
	started, ended := metav1.NewTime(time.Unix(100, 0)), metav1.NewTime(time.Unix(160, 0))
	rollout := func(phase, reason string) *v1alpha1.RolloutStatus {
		return &v1alpha1.RolloutStatus{
			Phase: phase, Reason: reason, StartedAt: &started, ProgressedAt: &ended,
			Roles: map[string]v1alpha1.RolloutRoleStatus{"prefill": {Effective: 2, Floor: 1}, "decode": {Effective: 3, Floor: 3}},
		}
	}
	t.Run("what serves, while it is under way", func(t *testing.T) {
		want := &metric.Rollout{Phase: "Held", Roles: []metric.Role{{Service: "decode", Effective: 3, Floor: 3}, {Service: "prefill", Effective: 2, Floor: 1}}}
		if diff := cmp.Diff(want, rolloutOf(rollout("Held", "StepHold"))); diff != "" {
			t.Error("-want +got", diff)
		}
		if diff := cmp.Diff(&metric.Rollout{Phase: "Completed"}, rolloutOf(rollout("Completed", ""))); diff != "" {
			t.Error("-want +got", diff)
		}
	})
	type end struct {
		Reason string
		Took   time.Duration
		Ended  bool
	}
	for rule, c := range map[string]struct {
		was, is *v1alpha1.RolloutStatus
		want    end
	}{
		"one that is completed":         {rollout("Draining", ""), rollout("Completed", ""), end{"", time.Minute, true}},
		"one that is given up":          {rollout("Aborting", "Regression"), rollout("Aborted", "Regression"), end{"Regression", time.Minute, true}},
		"one that goes on has not":      {rollout("Starting", ""), rollout("Shifting", ""), end{}},
		"one that had ended has before": {rollout("Aborted", "Requested"), rollout("Aborted", "Requested"), end{}},
		"a graph without one has none":  {nil, rollout("Completed", ""), end{}},
	} {
		t.Run(rule, func(t *testing.T) {
			reason, took, ended := rolloutEnded(c.was, c.is)
			if diff := cmp.Diff(c.want, end{reason, took, ended}); diff != "" {
				t.Error("-want +got", diff)
			}
		})
	}
}
