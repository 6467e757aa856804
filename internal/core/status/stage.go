package status

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/fault"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout"
	"github.com/dynamo-operator/dynamo-operator/internal/core/snapshot"
)

// stage tells how a graph gets on, which its Ready condition alone does not: a
// graph that is not ready may come up for the first time, be repaired, wait for
// somebody, or have failed. It is false only where a person is needed.
func stage(dgd *v1alpha1.DynamoGraphDeployment, g *graph.Graph, ready condition, s snapshot.Snapshot, restart rollout.Step, stuck bool, err error) condition {
	ran := wasComplete(dgd)
	switch {
	case err != nil:
		return halted(err)
	case restart.Record != nil && restart.Record.Phase == rollout.Failed && !ready.ok:
		return condition{false, v1alpha1.StageFailed, fmt.Sprintf("restart %s: %s", restart.Record.ID, restart.Record.Message)}
	case restart.Record != nil && (restart.Record.Phase == rollout.Pending || restart.Record.Phase == rollout.Restarting):
		return condition{true, v1alpha1.StageRestarting, restarting(g, restart)}
	case ready.ok && ran != "" && ran != v1alpha1.StageComplete:
		return condition{true, v1alpha1.StageRepaired, fmt.Sprintf("generation %d runs in full again", dgd.Generation)}
	case ready.ok:
		return condition{true, v1alpha1.StageComplete, fmt.Sprintf("generation %d runs in full", dgd.Generation)}
	case stuck:
		return condition{false, v1alpha1.StageFailed, "no progress for as long as a workload is given: " + ready.message}
	case len(s.Owned) == 0:
		return condition{true, v1alpha1.StageInitializing, "its objects are being made"}
	case ran != "":
		return condition{true, v1alpha1.StageRepairing, fmt.Sprintf("generation %d ran in full and is being repaired", dgd.Generation)}
	default:
		return condition{true, v1alpha1.StageDeploying, fmt.Sprintf("generation %d is being rolled out", dgd.Generation)}
	}
}

// halted is the stage of a graph that an error keeps from going on.
func halted(err error) condition {
	f, known := fault.From(err)
	switch {
	case known && (f.Class == fault.Waiting || f.Class == fault.Unsupported):
		return condition{true, v1alpha1.StageWaiting, f.Message}
	case fault.Retry(err):
		return condition{true, v1alpha1.StageRetrying, "retrying with back-off"}
	default:
		return condition{false, v1alpha1.StageFailed, failure(err).message}
	}
}

// wasComplete is the stage that a graph was last seen in, if its current
// generation had run in full by then.
func wasComplete(dgd *v1alpha1.DynamoGraphDeployment) string {
	last := meta.FindStatusCondition(dgd.Status.Conditions, v1alpha1.ConditionProgressing)
	if last == nil || last.ObservedGeneration != dgd.Generation {
		return ""
	}
	if slices.Contains([]string{v1alpha1.StageComplete, v1alpha1.StageRepairing, v1alpha1.StageRepaired}, last.Reason) {
		return last.Reason
	}
	return ""
}

// restarting says which services a restart is at, and which wait for them.
func restarting(g *graph.Graph, restart rollout.Step) string {
	var waiting []string
	for _, c := range g.Components {
		if restart.Marks[c.Name] != restart.Record.ID {
			waiting = append(waiting, c.Name)
		}
	}
	text := fmt.Sprintf("restart %s is at %s", restart.Record.ID, strings.Join(restart.Record.InProgress, ", "))
	if len(waiting) > 0 {
		text += "; waiting for it: " + strings.Join(waiting, ", ")
	}
	return text
}
