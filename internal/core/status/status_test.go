package status

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/diagnosis"
	"github.com/dynamo-operator/dynamo-operator/internal/core/fault"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/managed"
	"github.com/dynamo-operator/dynamo-operator/internal/core/snapshot"
	"github.com/dynamo-operator/dynamo-operator/internal/core/workload"
	"github.com/dynamo-operator/dynamo-operator/internal/core/workload/component"
)

var now = metav1.NewTime(time.Unix(1000, 0))

func component1(generation, observed int64, available metav1.ConditionStatus, message string) *v1alpha1.DynamoComponentDeployment {
	dcd := &v1alpha1.DynamoComponentDeployment{ObjectMeta: metav1.ObjectMeta{Name: "chat-decode", Generation: generation}}
	dcd.Status.ObservedGeneration = observed
	dcd.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionAvailable, Status: available, Message: message}}
	return dcd
}

func TestGraph(t *testing.T) {
	g := &graph.Graph{Name: "chat", Components: []graph.Component{{Name: "decode", ObjectName: "chat-decode", Nodes: 1}}}
	type verdict struct {
		State           v1alpha1.GraphState
		Ready           metav1.ConditionStatus
		Reason, Message string
	}
	cases := map[string]struct {
		owned   []graph.Object
		written []graph.Ref
		err     error
		want    verdict
	}{
		"a component that was written since it was seen is not ready": {
			owned:   []graph.Object{component1(1, 1, metav1.ConditionTrue, "")},
			written: []graph.Ref{{Kind: v1alpha1.KindDynamoComponentDeployment, Name: "chat-decode"}},
			want:    verdict{"pending", "False", v1alpha1.ReasonServicesNotReady, "decode: being updated"},
		},
		"a component that does not exist yet is awaited": {
			want: verdict{"pending", "False", v1alpha1.ReasonServicesNotReady, "decode: not created yet"},
		},
		"an availability of an older generation does not count": {
			owned: []graph.Object{component1(2, 1, metav1.ConditionTrue, "")},
			want:  verdict{"pending", "False", v1alpha1.ReasonServicesNotReady, "decode: not observed yet"},
		},
		"a component's own words reach the graph": {
			owned: []graph.Object{component1(1, 1, metav1.ConditionFalse, "0 of 1 replicas available")},
			want:  verdict{"pending", "False", v1alpha1.ReasonServicesNotReady, "decode: 0 of 1 replicas available"},
		},
		"all components available make the graph successful": {
			owned: []graph.Object{component1(1, 1, metav1.ConditionTrue, "")},
			want:  verdict{"successful", "True", v1alpha1.ReasonAllServicesReady, "1 of 1 services ready"},
		},
		"an error makes it failed": {
			owned: []graph.Object{component1(1, 1, metav1.ConditionTrue, "")},
			err:   errors.New("apply Service lab/x: timeout"),
			want:  verdict{"failed", "False", v1alpha1.ReasonReconcileFailed, "apply Service lab/x: timeout"},
		},
		"waiting for an API is not a failure": {
			err:  fault.New(fault.Unsupported, v1alpha1.ReasonOrchestratorUnavailable, "install LeaderWorkerSet"),
			want: verdict{"pending", "False", v1alpha1.ReasonOrchestratorUnavailable, "install LeaderWorkerSet"},
		},
	}
	for rule, c := range cases {
		t.Run(rule, func(t *testing.T) {
			dgd := &v1alpha1.DynamoGraphDeployment{ObjectMeta: metav1.ObjectMeta{Name: "chat", Generation: 7}}
			s := Graph(dgd, g, component.Builder{}, snapshot.Snapshot{Owned: c.owned, Written: c.written}, rollout.Step{}, managed.State{}, c.err, now)
			ready := s.Conditions[0]
			got := verdict{s.State, ready.Status, ready.Reason, ready.Message}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("status (-want +got):\n%s", diff)
			}
			if s.ObservedGeneration != 7 || ready.ObservedGeneration != 7 {
				t.Errorf("observed generation %d, condition %d, want 7", s.ObservedGeneration, ready.ObservedGeneration)
			}
		})
	}
}

func TestTheSameWorldGivesTheSameStatus(t *testing.T) {
	dcd := component1(1, 1, metav1.ConditionFalse, "")
	p := workload.Progress{Kind: workload.KindDeployment, Name: "chat-decode", Why: "0 of 1 replicas available"}
	dcd.Status = Component(dcd, p, nil, now)
	later := metav1.NewTime(now.Add(time.Hour))
	if diff := cmp.Diff(dcd.Status, Component(dcd, p, nil, later)); diff != "" {
		t.Errorf("time alone changed the status:\n%s", diff)
	}
}

func TestAnErrorLeavesTheLastCountsAlone(t *testing.T) {
	dcd := component1(1, 1, metav1.ConditionTrue, "")
	dcd.Status.Service = &v1alpha1.ServiceReplicaStatus{ComponentKind: "Deployment", ComponentName: "chat-decode", Replicas: 3}
	s := Component(dcd, workload.Progress{}, errors.New("apply: timeout"), now)
	if s.Service == nil || s.Service.Replicas != 3 || s.Service.Message != "apply: timeout" {
		t.Errorf("service status %+v", s.Service)
	}
}

func TestStartsAreRemembered(t *testing.T) {
	pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: now}}
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(now.Add(30 * time.Second))}}
	seen := snapshot.Evidence{Pods: []corev1.Pod{pod}}
	long, short := &v1alpha1.StartupTimes{P50Seconds: 80, P95Seconds: 90, Samples: 4}, &v1alpha1.StartupTimes{P50Seconds: 30, P95Seconds: 30, Samples: 1}
	for _, x := range []struct {
		rule         string
		before, want *v1alpha1.StartupTimes
		p            workload.Progress
	}{
		{"nobody has seen any", nil, nil, workload.Progress{Kind: "Deployment"}},
		{"pods tell", nil, short, workload.Progress{Kind: "Deployment", Seen: seen}},
		{"pods that run now tell more than those of before", long, short, workload.Progress{Kind: "Deployment", Seen: seen}},
		{"after the last pod it is what it was", long, long, workload.Progress{Kind: "Deployment"}},
		{"a component's word reaches its graph", short, long, workload.Progress{Kind: "Deployment", Startup: long}},
	} {
		t.Run(x.rule, func(t *testing.T) {
			dcd := component1(1, 1, metav1.ConditionTrue, "")
			dcd.Status.Service = &v1alpha1.ServiceReplicaStatus{ComponentKind: "Deployment", Startup: x.before}
			if diff := cmp.Diff(x.want, Component(dcd, x.p, nil, now).Service.Startup); diff != "" {
				t.Error(diff)
			}
		})
	}
	dcd := component1(1, 1, metav1.ConditionTrue, "")
	dcd.Status.Service = &v1alpha1.ServiceReplicaStatus{ComponentKind: "Deployment", Startup: long}
	g := &graph.Graph{Name: "chat", Components: []graph.Component{{Name: "decode", ObjectName: "chat-decode", Nodes: 1}}}
	dgd := &v1alpha1.DynamoGraphDeployment{}
	for _, owned := range [][]graph.Object{{dcd}, nil} {
		dgd.Status = Graph(dgd, g, component.Builder{}, snapshot.Snapshot{Owned: owned}, rollout.Step{}, managed.State{}, nil, now)
		if diff := cmp.Diff(long, dgd.Status.Services["decode"].Startup); diff != "" {
			t.Errorf("the graph of %d components: %s", len(owned), diff)
		}
	}
}

// broken is a component whose first cause is known.
func broken(name string, reason diagnosis.Reason, message string) *v1alpha1.DynamoComponentDeployment {
	dcd := &v1alpha1.DynamoComponentDeployment{ObjectMeta: metav1.ObjectMeta{Name: name}}
	dcd.Status.Conditions = []metav1.Condition{{
		Type: v1alpha1.ConditionAvailable, Status: metav1.ConditionFalse, Reason: string(reason), Message: message,
	}}
	return dcd
}

func TestTheFirstCauseOfSeveralServices(t *testing.T) {
	var g graph.Graph
	for _, name := range []string{"a", "b", "c"} {
		g.Components = append(g.Components, graph.Component{Name: name, ObjectName: name, Nodes: 1})
	}
	starting := broken("a", v1alpha1.ReasonDeploymentNotReady, "0 of 1 replicas available: waits for a node")
	cases := map[string]struct {
		owned           []graph.Object
		reason, message string
	}{
		"a fault comes before what takes time": {
			[]graph.Object{starting, broken("b", diagnosis.ContainerCrashed, "exited"), broken("c", diagnosis.ReadinessProbeFailed, "fails")},
			"ContainerCrashed", "b: exited; also not ready: a, c",
		},
		"of faults the one that a pod meets first": {
			[]graph.Object{broken("a", diagnosis.ContainerCrashed, "exited"), broken("b", diagnosis.ImageNotFound, "no image"), broken("c", diagnosis.QuotaExceeded, "no room")},
			"QuotaExceeded", "c: no room; also not ready: a, b",
		},
		"what keeps a service from being made comes first": {
			[]graph.Object{broken("a", diagnosis.QuotaExceeded, "no room"), broken("b", v1alpha1.ReasonOrchestratorUnavailable, "install it"), broken("c", diagnosis.QuotaExceeded, "no room")},
			"OrchestratorUnavailable", "b: install it; also not ready: a, c",
		},
		"what takes time is told of every service": {
			[]graph.Object{starting, broken("b", v1alpha1.ReasonDeploymentNotReady, "0 of 2 replicas available")},
			"ServicesNotReady", "a: 0 of 1 replicas available: waits for a node; b: 0 of 2 replicas available; c: not created yet",
		},
	}
	for rule, c := range cases {
		t.Run(rule, func(t *testing.T) {
			s := Graph(&v1alpha1.DynamoGraphDeployment{}, &g, component.Builder{}, snapshot.Snapshot{Owned: c.owned}, rollout.Step{}, managed.State{}, nil, now)
			if diff := cmp.Diff([]string{c.reason, c.message}, []string{s.Conditions[0].Reason, s.Conditions[0].Message}); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAWorkloadThatIsStuckSaysWhyAndThatItIs(t *testing.T) {
	p := workload.Progress{Kind: workload.KindDeployment, Name: "x", Why: "0 of 1 replicas updated", Stuck: true}
	p.Seen.Refused = []snapshot.Refusal{{Message: `pods "x-1" is forbidden: exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1`}}
	s := Component(&v1alpha1.DynamoComponentDeployment{}, p, nil, now)
	got := map[string]string{}
	for _, c := range s.Conditions {
		got[c.Type] = c.Reason
	}
	want := map[string]string{
		v1alpha1.ConditionAvailable: "QuotaExceeded", v1alpha1.ConditionDynamoComponentReady: "QuotaExceeded", v1alpha1.ConditionProgressing: v1alpha1.ReasonRolloutStuck,
		v1alpha1.ConditionValid: v1alpha1.ReasonValidationPassed,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	const first = "ResourceQuota q leaves no room: asked for pods=1, used pods=1 of pods=1"
	p.Behind = []string{"x-1", "x-2"}
	s = Component(&v1alpha1.DynamoComponentDeployment{}, p, nil, now)
	for kind, want := range map[string]string{
		v1alpha1.ConditionAvailable:   first + "; still as before: x-1, x-2",
		v1alpha1.ConditionProgressing: "0 of 1 replicas updated: " + first + "; still as before: x-1, x-2",
	} {
		if diff := cmp.Diff(want, meta.FindStatusCondition(s.Conditions, kind).Message); diff != "" {
			t.Error(kind, diff)
		}
	}
	p.Stuck = false
	if s = Component(&v1alpha1.DynamoComponentDeployment{Status: s}, p, nil, now); meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionProgressing) != nil {
		t.Errorf("conditions of a workload that goes on: %v", s.Conditions)
	}
}
