package status

import (
	"maps"
	"slices"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout"
	"github.com/dynamo-operator/dynamo-operator/internal/core/snapshot"
	"github.com/dynamo-operator/dynamo-operator/internal/core/workload"
)

// NextRestart reads what a restart needs to know off a graph and the snapshot,
// and computes its next step.
//
// While workers are rolled out a restart waits: its turn comes once that has ended.
func NextRestart(dgd *v1alpha1.DynamoGraphDeployment, g *graph.Graph, by workload.GraphBuilder, s snapshot.Snapshot, rolling bool) rollout.Step {
	var services []rollout.Service
	stuck := false
	for i, p := range by.Progress(g, s) {
		c := g.Components[i]
		id, made := by.Mark(g, c, s)
		seen := rollout.Service{Name: c.Name, Made: made, Mark: id, Done: p.Done}
		if p.Stuck {
			seen.Failure, stuck = stalled(p).message, true
		}
		services = append(services, seen)
	}
	// One change at a time where that is the rule, unless the last gets nowhere.
	updater, serial := by.(workload.Updater)
	busy := serial && updater.Updating(g, s) && !stuck
	return rollout.Next(asked(dgd), recorded(dgd.Status.Restart), services, busy || rolling)
}

func asked(dgd *v1alpha1.DynamoGraphDeployment) *rollout.Restart {
	r := dgd.Spec.Restart
	if r == nil || r.ID == "" {
		return nil
	}
	restart := &rollout.Restart{ID: r.ID, Order: slices.Sorted(maps.Keys(dgd.Spec.Services))}
	if r.Strategy != nil {
		restart.Parallel = r.Strategy.Type == v1alpha1.RestartParallel
		if len(r.Strategy.Order) > 0 {
			restart.Order = r.Strategy.Order
		}
	}
	return restart
}

func recorded(r *v1alpha1.RestartStatus) *rollout.Record {
	if r == nil {
		return nil
	}
	return &rollout.Record{ID: r.ObservedID, Phase: rollout.Phase(r.Phase), InProgress: r.InProgress, Message: r.Message}
}

// restartStatus puts a record into the words of the API.
func restartStatus(r *rollout.Record) *v1alpha1.RestartStatus {
	if r == nil {
		return nil
	}
	return &v1alpha1.RestartStatus{
		ObservedID: r.ID, Phase: v1alpha1.RestartPhase(r.Phase), InProgress: r.InProgress, Message: r.Message,
	}
}
