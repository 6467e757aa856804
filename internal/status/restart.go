package status

import (
	"maps"
	"slices"

	grovev1alpha1 "github.com/ai-dynamo/grove/operator/api/core/v1alpha1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/rollout"
	"github.com/dynamo-operator/dynamo-operator/internal/snapshot"
	"github.com/dynamo-operator/dynamo-operator/internal/workload"
)

// NextRestart reads what a restart needs to know off a graph and the snapshot,
// and computes its next step.
func NextRestart(dgd *v1alpha1.DynamoGraphDeployment, g *graph.Graph, by workload.Provider, s snapshot.Snapshot) rollout.Step {
	var services []rollout.Service
	for _, c := range g.Components {
		_, why := serviceOf(g, c, by, s)
		services = append(services, rollout.Service{
			Name: c.Name, Mark: mark(g, c, by, s), Done: why.message == "", Failure: stuck(c, s),
		})
	}
	return rollout.Next(asked(dgd), recorded(dgd.Status.Restart), services)
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

// mark is the id of the last restart that a service's workload carries.
func mark(g *graph.Graph, c graph.Component, by workload.Provider, s snapshot.Snapshot) string {
	if by != workload.ProviderGrove {
		dcd, found := snapshot.Find[*v1alpha1.DynamoComponentDeployment](s, c.ObjectName)
		if !found {
			return ""
		}
		return dcd.Spec.Annotations[v1alpha1.AnnotationRestartAt]
	}
	set, found := snapshot.Find[*grovev1alpha1.PodCliqueSet](s, g.Name)
	if !found {
		return ""
	}
	for _, clique := range set.Spec.Template.Cliques {
		if clique.Labels[v1alpha1.LabelComponent] == c.Name {
			return clique.Annotations[v1alpha1.AnnotationRestartAt]
		}
	}
	return ""
}

// stuck says why a component will not come up; empty while it may.
func stuck(c graph.Component, s snapshot.Snapshot) string {
	dcd, found := snapshot.Find[*v1alpha1.DynamoComponentDeployment](s, c.ObjectName)
	if !found || dcd.Status.ObservedGeneration < dcd.Generation {
		return ""
	}
	available := meta.FindStatusCondition(dcd.Status.Conditions, v1alpha1.ConditionAvailable)
	if available == nil || !meta.IsStatusConditionFalse(dcd.Status.Conditions, v1alpha1.ConditionProgressing) {
		return ""
	}
	return available.Message
}
