package status

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/fault"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/managed"
	"github.com/dynamo-operator/dynamo-operator/internal/core/snapshot"
	"github.com/dynamo-operator/dynamo-operator/internal/core/workload"
)

// Graph computes the status of a DynamoGraphDeployment from what runs it. An
// error of this reconcile makes it failed, but what the services last showed stays.
func Graph(dgd *v1alpha1.DynamoGraphDeployment, g *graph.Graph, by workload.Builder, s snapshot.Snapshot, restart rollout.Step, generations managed.State, err error, now metav1.Time) v1alpha1.DynamoGraphDeploymentStatus {
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
			name := g.Components[i].Name
			before := dgd.Status.Services[name]
			seen := *replicas(p, &before)
			if !p.Done {
				why := lacking(p, v1alpha1.ReasonServicesNotReady)
				seen.Message = why.message
				waiting = append(waiting, lack{name, why.reason, why.message})
			}
			if c := g.Components[i]; c.Contract == graph.ContractV1 || c.Generation != "" {
				seen.RuntimeNamespace = runtimeNamespace(c, generations)
			}
			if n, counts := s.Granted[name]; counts {
				seen.GrantedReplicas = new(int32(n))
			}
			seen.LimitedBy = s.LimitedBy[name]
			st.Services[name] = overGenerations(seen, name, generations)
			stuck = stuck || p.Stuck
		}
		v.message = fmt.Sprintf("%d of %d services ready", len(g.Components)-len(waiting), len(g.Components))
		if len(waiting) > 0 {
			v = unready(waiting)
			st.State = v1alpha1.GraphStatePending
		}
	}
	if g != nil {
		st.Rollout = rolloutStatus(dgd.Status.Rollout, generations, now)
		st.RollingUpdate = rollingUpdate(dgd.Status.RollingUpdate, st.Rollout)
	}
	rolling, rolls := rolloutStage(st.Rollout, generations)
	if rolls {
		v = condition{false, rolling.reason, rolling.message}
		st.State = v1alpha1.GraphStatePending
		if !rolling.ok {
			st.State = v1alpha1.GraphStateFailed
		}
	}
	if err != nil {
		v = failure(err)
		st.State = failedState(err)
	}
	if on, told := serving(g, st, generations); told {
		setCondition(&st.Conditions, v1alpha1.ConditionServing, on, dgd.Generation, now)
	}
	if g != nil {
		scalingLimited(&st.Conditions, s.Limited, unseen(dgd, g), dgd.Generation, now)
		dormant(&st.Conditions, s.Dormancy, dgd.Generation, now)
		coldStart(&st.Conditions, g, dgd.Generation, now)
		topologyLevels(&st.Conditions, g, by, s, dgd.Generation, now)
	}
	setCondition(&st.Conditions, v1alpha1.ConditionReady, v, dgd.Generation, now)
	if g != nil || err != nil {
		at := stage(dgd, g, v, s, restart, stuck, err)
		if rolls && err == nil {
			at = rolling
		}
		setCondition(&st.Conditions, v1alpha1.ConditionProgressing, at, dgd.Generation, now)
	}
	return st
}

// runtimeNamespace is where a service is found: until the end of a rollout where its
// stable generation is.
func runtimeNamespace(c graph.Component, generations managed.State) string {
	for _, cell := range generations.Rolling() {
		if slices.Contains(cell.Cell.Services, c.Name) && cell.World.Stable != "" {
			return c.DynamoNamespace + "-" + string(cell.World.Stable)
		}
	}
	return c.RuntimeNamespace
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
