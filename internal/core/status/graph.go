package status

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/fault"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout"
	"github.com/dynamo-operator/dynamo-operator/internal/core/snapshot"
	"github.com/dynamo-operator/dynamo-operator/internal/core/workload"
	"github.com/dynamo-operator/dynamo-operator/internal/core/workload/grove"
)

// Graph computes the status of a DynamoGraphDeployment from what runs it. An
// error of this reconcile makes it failed, but what the services last showed stays.
func Graph(dgd *v1alpha1.DynamoGraphDeployment, g *graph.Graph, by Orchestration, s snapshot.Snapshot, restart rollout.Step, err error, now metav1.Time) v1alpha1.DynamoGraphDeploymentStatus {
	st := *dgd.Status.DeepCopy()
	st.ObservedGeneration = dgd.Generation
	v := condition{true, v1alpha1.ReasonAllServicesReady, ""}
	st.State = v1alpha1.GraphStateSuccessful
	var waiting []lack
	stuck := false
	if g != nil {
		st.Services = map[string]v1alpha1.ServiceReplicaStatus{}
		st.Restart = restartStatus(restart.Record)
		held := Waiting(g, by, s)
		for _, c := range g.Components {
			seen := serviceOf(g, c, by, s)
			if before := held[c.Name]; len(before) > 0 {
				seen = seen.held(before)
			}
			if c.Contract == graph.ContractV1 {
				seen.replicas.RuntimeNamespace = c.RuntimeNamespace
			}
			st.Services[c.Name] = seen.replicas
			if seen.lack.message != "" {
				seen.lack.service = c.Name
				waiting = append(waiting, seen.lack)
			}
			stuck = stuck || seen.stuck != ""
		}
		v.message = fmt.Sprintf("%d of %d services ready", len(g.Components)-len(waiting), len(g.Components))
		if len(waiting) > 0 {
			v = unready(waiting)
			st.State = v1alpha1.GraphStatePending
		}
	}
	if err != nil {
		v = failure(err)
		st.State = failedState(err)
	}
	if g != nil {
		coldStart(&st.Conditions, g, dgd.Generation, now)
	}
	setCondition(&st.Conditions, v1alpha1.ConditionReady, v, dgd.Generation, now)
	if g != nil || err != nil {
		setCondition(&st.Conditions, v1alpha1.ConditionProgressing, stage(dgd, g, v, s, restart, stuck, err), dgd.Generation, now)
	}
	return st
}

// failedState keeps a graph that waits for somebody else pending: it did not
// fail, and it goes on by itself.
func failedState(err error) v1alpha1.GraphState {
	if f, known := fault.From(err); known && (f.Class == fault.Waiting || f.Class == fault.Unsupported) {
		return v1alpha1.GraphStatePending
	}
	return v1alpha1.GraphStateFailed
}

// Orchestration is what runs a graph, and how long its pods may make no progress.
type Orchestration struct {
	Provider workload.Provider
	Deadline time.Duration
}

// Due is when a service of a graph will count as stuck if nothing moves until
// then; zero if none will, or its component watches over it.
func (o Orchestration) Due(g *graph.Graph, s snapshot.Snapshot) time.Time {
	if o.Provider != workload.ProviderGrove || g == nil {
		return time.Time{}
	}
	var first time.Time
	for _, p := range (grove.Builder{Deadline: o.Deadline}).Progress(g, s) {
		if first.IsZero() || (!p.Due.IsZero() && p.Due.Before(first)) {
			first = p.Due
		}
	}
	return first
}

// service is what was seen of one service.
type service struct {
	replicas v1alpha1.ServiceReplicaStatus
	// lack is what it misses.
	lack lack
	// stuck says why it will not come up; empty while it may.
	stuck string
}

// serviceOf reads one service's progress where its provider shows it.
func serviceOf(g *graph.Graph, c graph.Component, by Orchestration, s snapshot.Snapshot) service {
	if by.Provider != workload.ProviderGrove {
		return component(c, s)
	}
	one := *g
	one.Components = []graph.Component{c}
	p := grove.Builder{Deadline: by.Deadline}.Progress(&one, s)[0]
	seen := service{replicas: *replicas(p)}
	if !p.Done {
		v := lacking(p, v1alpha1.ReasonServicesNotReady)
		seen.replicas.Message, seen.lack = v.message, lack{reason: v.reason, message: v.message}
	}
	if p.Stuck {
		seen.stuck = stalled(p).message
	}
	return seen
}

// component reads one service's progress off its DynamoComponentDeployment. It
// lacks nothing when it is ready. A component that was not made yet shows zero
// replicas of the kind that will run it.
func component(c graph.Component, s snapshot.Snapshot) service {
	seen := service{replicas: v1alpha1.ServiceReplicaStatus{
		ComponentKind: v1alpha1.ComponentKindDeployment, ComponentName: c.ObjectName,
	}}
	if c.Multinode() {
		seen.replicas.ComponentKind = v1alpha1.ComponentKindLeaderWorkerSet
	}
	dcd, found := snapshot.Find[*v1alpha1.DynamoComponentDeployment](s, c.ObjectName)
	if !found {
		seen.lack.message = "not created yet"
		return seen
	}
	if dcd.Status.Service != nil {
		seen.replicas = *dcd.Status.Service
	}
	condition := meta.FindStatusCondition(dcd.Status.Conditions, v1alpha1.ConditionAvailable)
	switch {
	case s.Outdated(v1alpha1.KindDynamoComponentDeployment, dcd.Name):
		seen.lack.message = "being updated"
	case condition == nil || dcd.Status.ObservedGeneration < dcd.Generation:
		seen.lack.message = "not observed yet"
	case condition.Status != metav1.ConditionTrue:
		seen.lack = lack{reason: condition.Reason, message: condition.Message}
	}
	if condition != nil && dcd.Status.ObservedGeneration >= dcd.Generation && meta.IsStatusConditionFalse(dcd.Status.Conditions, v1alpha1.ConditionProgressing) {
		seen.stuck = condition.Message
	}
	return seen
}
