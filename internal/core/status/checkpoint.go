package status

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
)

// notCaptured is why there is no checkpoint to start from.
const notCaptured = "this operator captures no checkpoints"

// Checkpoint computes the status of a DynamoCheckpoint. One that another operator
// captured is left as it is.
func Checkpoint(c *v1alpha1.DynamoCheckpoint, now metav1.Time) v1alpha1.DynamoCheckpointStatus {
	s := *c.Status.DeepCopy()
	message := notCaptured + "; pods start cold"
	if s.Phase == v1alpha1.CheckpointPhaseReady {
		message = "it was captured by another operator; " + notCaptured + " and starts no pods from them, so pods start cold"
	} else {
		s.Phase, s.Message = v1alpha1.CheckpointPhasePending, message
	}
	setCondition(&s.Conditions, v1alpha1.ConditionReady, condition{false, v1alpha1.ReasonColdStart, message}, c.Generation, now)
	return s
}

// coldStart tells of components that are to start from a checkpoint and do not.
func coldStart(conditions *[]metav1.Condition, g *graph.Graph, generation int64, now metav1.Time) {
	var names []string
	for _, c := range g.Components {
		if c.Checkpoint != nil {
			names = append(names, c.Name)
		}
	}
	if len(names) == 0 {
		meta.RemoveStatusCondition(conditions, v1alpha1.ConditionCheckpointed)
		return
	}
	setCondition(conditions, v1alpha1.ConditionCheckpointed, condition{false, v1alpha1.ReasonColdStart,
		fmt.Sprintf("%s start cold: %s, and WaitForCheckpoint does not wait", strings.Join(names, ", "), notCaptured)}, generation, now)
}
