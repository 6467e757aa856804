package status

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/fault"
	"github.com/dynamo-operator/dynamo-operator/internal/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/rollout"
	"github.com/dynamo-operator/dynamo-operator/internal/snapshot"
	"github.com/dynamo-operator/dynamo-operator/internal/workload"
	"github.com/dynamo-operator/dynamo-operator/internal/workload/grove"
)

// Graph computes the status of a DynamoGraphDeployment from what runs it. An
// error of this pass makes it failed, but what the services last showed stays.
func Graph(dgd *v1alpha1.DynamoGraphDeployment, g *graph.Graph, by workload.Provider, s snapshot.Snapshot, restart rollout.Step, err error, now metav1.Time) v1alpha1.DynamoGraphDeploymentStatus {
	st := *dgd.Status.DeepCopy()
	st.ObservedGeneration = dgd.Generation
	v := verdict{true, v1alpha1.ReasonAllServicesReady, ""}
	st.State = v1alpha1.GraphStateSuccessful
	if g != nil {
		st.Services = map[string]v1alpha1.ServiceReplicaStatus{}
		st.Restart = restartStatus(restart.Record)
		var waiting []lack
		for _, c := range g.Components {
			service, why := serviceOf(g, c, by, s)
			st.Services[c.Name] = service
			if why.message != "" {
				why.service = c.Name
				waiting = append(waiting, why)
			}
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
	set(&st.Conditions, v1alpha1.ConditionReady, v, dgd.Generation, now)
	if g != nil || err != nil {
		set(&st.Conditions, v1alpha1.ConditionProgressing, stage(dgd, g, v, s, restart, err), dgd.Generation, now)
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

// serviceOf reads one service's progress where its provider shows it.
func serviceOf(g *graph.Graph, c graph.Component, by workload.Provider, s snapshot.Snapshot) (service v1alpha1.ServiceReplicaStatus, why lack) {
	if by != workload.ProviderGrove {
		return component(c, s)
	}
	one := *g
	one.Components = []graph.Component{c}
	p := grove.Builder{}.Progress(&one, s)[0]
	service = *replicas(p)
	if !p.Done {
		v := lacking(p, v1alpha1.ReasonServicesNotReady)
		service.Message, why = v.message, lack{reason: v.reason, message: v.message}
	}
	return service, why
}

// component reads one service's progress off its DynamoComponentDeployment. It
// lacks nothing when it is ready. A component that was not made yet shows zero
// replicas of the kind that will run it.
func component(c graph.Component, s snapshot.Snapshot) (service v1alpha1.ServiceReplicaStatus, why lack) {
	service = v1alpha1.ServiceReplicaStatus{
		ComponentKind: v1alpha1.ComponentKindDeployment, ComponentName: c.ObjectName,
	}
	if c.Multinode() {
		service.ComponentKind = v1alpha1.ComponentKindLeaderWorkerSet
	}
	dcd, found := snapshot.Find[*v1alpha1.DynamoComponentDeployment](s, c.ObjectName)
	if !found {
		return service, lack{message: "not created yet"}
	}
	if dcd.Status.Service != nil {
		service = *dcd.Status.Service
	}
	condition := meta.FindStatusCondition(dcd.Status.Conditions, v1alpha1.ConditionAvailable)
	switch {
	case s.Outdated(v1alpha1.KindDynamoComponentDeployment, dcd.Name):
		return service, lack{message: "being updated"}
	case condition == nil || dcd.Status.ObservedGeneration < dcd.Generation:
		return service, lack{message: "not observed yet"}
	case condition.Status != metav1.ConditionTrue:
		return service, lack{reason: condition.Reason, message: condition.Message}
	default:
		return service, lack{}
	}
}
