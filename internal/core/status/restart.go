package status

import (
	"maps"
	"slices"

	grovev1alpha1 "github.com/ai-dynamo/grove/operator/api/core/v1alpha1"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout"
	"github.com/dynamo-operator/dynamo-operator/internal/core/snapshot"
	"github.com/dynamo-operator/dynamo-operator/internal/core/workload"
	"github.com/dynamo-operator/dynamo-operator/internal/core/workload/grove"
)

// NextRestart reads what a restart needs to know off a graph and the snapshot,
// and computes its next step.
func NextRestart(dgd *v1alpha1.DynamoGraphDeployment, g *graph.Graph, by Orchestration, s snapshot.Snapshot) rollout.Step {
	var services []rollout.Service
	stuck := false
	for _, c := range g.Components {
		seen := serviceOf(g, c, by, s)
		id, made := mark(g, c, by.Provider, s)
		services = append(services, rollout.Service{
			Name: c.Name, Made: made, Mark: id, Done: seen.lack.message == "", Failure: seen.stuck,
		})
		stuck = stuck || seen.stuck != ""
	}
	// One change of a PodCliqueSet at a time, unless the last one gets nowhere.
	busy := by.Provider == workload.ProviderGrove && grove.Updating(g, s) && !stuck
	return rollout.Next(asked(dgd), recorded(dgd.Status.Restart), services, busy)
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

// mark is the id of the last restart that a service's workload carries, if that
// was made.
func mark(g *graph.Graph, c graph.Component, by workload.Provider, s snapshot.Snapshot) (id string, made bool) {
	if by != workload.ProviderGrove {
		dcd, found := snapshot.Find[*v1alpha1.DynamoComponentDeployment](s, c.ObjectName)
		if !found {
			return "", false
		}
		return dcd.Spec.Annotations[v1alpha1.AnnotationRestartAt], true
	}
	set, found := snapshot.Find[*grovev1alpha1.PodCliqueSet](s, g.CliqueSet)
	if !found {
		return "", false
	}
	for _, clique := range set.Spec.Template.Cliques {
		if clique.Labels[v1alpha1.LabelComponent] == c.Name {
			return clique.Annotations[v1alpha1.AnnotationRestartAt], true
		}
	}
	return "", false
}
