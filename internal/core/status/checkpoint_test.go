package status

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/managed"
	"github.com/dynamo-operator/dynamo-operator/internal/core/snapshot"
	"github.com/dynamo-operator/dynamo-operator/internal/core/workload/component"
)

var noon = metav1.NewTime(time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC))

func TestACheckpointSaysThatNothingCapturesIt(t *testing.T) {
	cases := map[string]struct{ before, after string }{
		"one that is new waits":                             {"", v1alpha1.CheckpointPhasePending},
		"one that another operator was capturing waits":     {"Creating", v1alpha1.CheckpointPhasePending},
		"one that another operator captured stays as ready": {v1alpha1.CheckpointPhaseReady, v1alpha1.CheckpointPhaseReady},
	}
	for rule, c := range cases {
		t.Run(rule, func(t *testing.T) {
			checkpoint := &v1alpha1.DynamoCheckpoint{}
			checkpoint.Generation, checkpoint.Status.Phase = 3, c.before
			s := Checkpoint(checkpoint, noon)
			ready := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionReady)
			if s.Phase != c.after || ready == nil || ready.Status != metav1.ConditionFalse || ready.Reason != v1alpha1.ReasonColdStart || ready.ObservedGeneration != 3 || ready.Message == "" {
				t.Errorf("%+v", s)
			}
			checkpoint.Status = s
			if again := Checkpoint(checkpoint, metav1.Now()); !again.Conditions[0].LastTransitionTime.Equal(&noon) {
				t.Error("it turned without a reason")
			}
		})
	}
}

func TestAGraphSaysWhichComponentsStartCold(t *testing.T) {
	dgd := &v1alpha1.DynamoGraphDeployment{}
	g := &graph.Graph{Components: []graph.Component{{Name: "Frontend"}, {Name: "Decode", Runtime: graph.Runtime{Checkpoint: &graph.Checkpoint{Wait: true}}}}}
	dgd.Status = Graph(dgd, g, component.Builder{}, snapshot.Snapshot{}, rollout.Step{}, managed.State{}, nil, noon)
	cold := meta.FindStatusCondition(dgd.Status.Conditions, v1alpha1.ConditionCheckpointed)
	if cold == nil || cold.Status != metav1.ConditionFalse || cold.Reason != v1alpha1.ReasonColdStart || cold.Message != "Decode start cold: this operator captures no checkpoints, and WaitForCheckpoint does not wait" {
		t.Fatalf("%+v", cold)
	}
	g.Components[1].Checkpoint = nil
	if s := Graph(dgd, g, component.Builder{}, snapshot.Snapshot{}, rollout.Step{}, managed.State{}, nil, noon); meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionCheckpointed) != nil {
		t.Error("a graph that asks for none has the condition")
	}
}
