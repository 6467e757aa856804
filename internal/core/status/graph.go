package status

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/fault"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout"
	"github.com/dynamo-operator/dynamo-operator/internal/core/snapshot"
	"github.com/dynamo-operator/dynamo-operator/internal/core/workload"
)

// Graph computes the status of a DynamoGraphDeployment from what runs it. An
// error of this reconcile makes it failed, but what the services last showed stays.
func Graph(dgd *v1alpha1.DynamoGraphDeployment, g *graph.Graph, by workload.Builder, s snapshot.Snapshot, restart rollout.Step, err error, now metav1.Time) v1alpha1.DynamoGraphDeploymentStatus {
	st := *dgd.Status.DeepCopy()
	st.ObservedGeneration = dgd.Generation
	v := condition{true, v1alpha1.ReasonAllServicesReady, ""}
	st.State = v1alpha1.GraphStateSuccessful
	var waiting []lack
	stuck := false
	if g != nil {
		st.Services = map[string]v1alpha1.ServiceReplicaStatus{}
		st.Restart = restartStatus(restart.Record)
		for i, p := range by.Progress(g, s) {
			name, seen := g.Components[i].Name, *replicas(p)
			if !p.Done {
				why := lacking(p, v1alpha1.ReasonServicesNotReady)
				seen.Message = why.message
				waiting = append(waiting, lack{name, why.reason, why.message})
			}
			if c := g.Components[i]; c.Contract == graph.ContractV1 {
				seen.RuntimeNamespace = c.RuntimeNamespace
			}
			st.Services[name] = seen
			stuck = stuck || p.Stuck
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

// Due is when the first service of a graph will count as stuck if nothing moves
// until then; zero if none will, or somebody else watches over it.
func Due(g *graph.Graph, by workload.Builder, s snapshot.Snapshot) time.Time {
	var first time.Time
	if g == nil {
		return first
	}
	for _, p := range by.Progress(g, s) {
		if first.IsZero() || (!p.Due.IsZero() && p.Due.Before(first)) {
			first = p.Due
		}
	}
	return first
}
