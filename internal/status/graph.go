package status

import (
	"fmt"
	"strings"

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
		var waiting []string
		for _, c := range g.Components {
			service, why := serviceOf(g, c, by, s)
			st.Services[c.Name] = service
			if why != "" {
				waiting = append(waiting, fmt.Sprintf("%s: %s", c.Name, why))
			}
		}
		v.message = fmt.Sprintf("%d of %d services ready", len(g.Components)-len(waiting), len(g.Components))
		if len(waiting) > 0 {
			v = verdict{false, v1alpha1.ReasonServicesNotReady, strings.Join(waiting, "; ")}
			st.State = v1alpha1.GraphStatePending
		}
	}
	if err != nil {
		v = failure(err)
		st.State = failedState(err)
	}
	set(&st.Conditions, v1alpha1.ConditionReady, v, dgd.Generation, now)
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
func serviceOf(g *graph.Graph, c graph.Component, by workload.Provider, s snapshot.Snapshot) (service v1alpha1.ServiceReplicaStatus, why string) {
	if by != workload.ProviderGrove {
		return component(c, s)
	}
	one := *g
	one.Components = []graph.Component{c}
	p := grove.Builder{}.Progress(&one, s)[0]
	service = *replicas(p)
	service.Message = p.Why
	return service, p.Why
}

// component reads one service's progress off its DynamoComponentDeployment. Why
// is empty when it is ready. A component that was not made yet shows zero
// replicas of the kind that will run it.
func component(c graph.Component, s snapshot.Snapshot) (service v1alpha1.ServiceReplicaStatus, why string) {
	service = v1alpha1.ServiceReplicaStatus{
		ComponentKind: v1alpha1.ComponentKindDeployment, ComponentName: c.ObjectName,
	}
	if c.Multinode() {
		service.ComponentKind = v1alpha1.ComponentKindLeaderWorkerSet
	}
	dcd, found := snapshot.Find[*v1alpha1.DynamoComponentDeployment](s, c.ObjectName)
	if !found {
		return service, "not created yet"
	}
	if dcd.Status.Service != nil {
		service = *dcd.Status.Service
	}
	condition := meta.FindStatusCondition(dcd.Status.Conditions, v1alpha1.ConditionAvailable)
	switch {
	case s.Outdated(v1alpha1.KindDynamoComponentDeployment, dcd.Name):
		return service, "being updated"
	case condition == nil || dcd.Status.ObservedGeneration < dcd.Generation:
		return service, "not observed yet"
	case condition.Status != metav1.ConditionTrue:
		return service, condition.Message
	default:
		return service, ""
	}
}
