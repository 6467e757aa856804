package component

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/snapshot"
	"github.com/dynamo-operator/dynamo-operator/internal/core/workload"
)

func live(name string, change func(*v1alpha1.DynamoComponentDeployment)) *v1alpha1.DynamoComponentDeployment {
	dcd := &v1alpha1.DynamoComponentDeployment{ObjectMeta: metav1.ObjectMeta{Name: name, Generation: 2}}
	dcd.Spec.Annotations = map[string]string{v1alpha1.AnnotationRestartAt: "7"}
	dcd.Status = v1alpha1.DynamoComponentDeploymentStatus{
		ObservedGeneration: 2,
		Service:            &v1alpha1.ServiceReplicaStatus{ComponentKind: "Deployment", ComponentName: name, Replicas: 3, UpdatedReplicas: 2, ReadyReplicas: new(int32(1))},
		Conditions:         []metav1.Condition{{Type: v1alpha1.ConditionAvailable, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonDeploymentReady}},
	}
	change(dcd)
	return dcd
}

func ready(*v1alpha1.DynamoComponentDeployment) {}

func failing(dcd *v1alpha1.DynamoComponentDeployment) {
	dcd.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionAvailable, Status: metav1.ConditionFalse, Reason: "ImageNotFound", Message: "no image"}}
}

func TestProgressIsWhatTheComponentSays(t *testing.T) {
	g := &graph.Graph{Components: []graph.Component{{Name: "A", ObjectName: "g-a", Nodes: 1}}}
	counted := func(p workload.Progress) workload.Progress {
		p.Kind, p.Name, p.Replicas, p.Updated, p.Ready = workload.KindDeployment, "g-a", 3, 2, new(int32(1))
		return p
	}
	for rule, c := range map[string]struct {
		owned   []graph.Object
		written []graph.Ref
		want    workload.Progress
	}{
		"one that is not there was not created": {want: workload.Progress{Kind: workload.KindDeployment, Name: "g-a", Why: "not created yet"}},
		"one that is available is done":         {owned: []graph.Object{live("g-a", ready)}, want: counted(workload.Progress{Done: true})},
		"its own reason is kept":                {owned: []graph.Object{live("g-a", failing)}, want: counted(workload.Progress{Reason: "ImageNotFound", Why: "no image"})},
		"one that makes no progress is stuck": {
			owned: []graph.Object{live("g-a", func(dcd *v1alpha1.DynamoComponentDeployment) {
				failing(dcd)
				dcd.Status.Conditions = append(dcd.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionProgressing, Status: metav1.ConditionFalse})
			})},
			want: counted(workload.Progress{Reason: "ImageNotFound", Why: "no image", Stuck: true}),
		},
		"what it says of an older generation does not count": {
			owned: []graph.Object{live("g-a", func(dcd *v1alpha1.DynamoComponentDeployment) { dcd.Generation = 3 })},
			want:  counted(workload.Progress{Why: "not observed yet"}),
		},
		"nor what it said before it was written": {
			owned:   []graph.Object{live("g-a", failing)},
			written: []graph.Ref{{Kind: v1alpha1.KindDynamoComponentDeployment, Name: "g-a"}},
			want:    counted(workload.Progress{Why: "being updated"}),
		},
	} {
		t.Run(rule, func(t *testing.T) {
			got := Builder{}.Progress(g, snapshot.Snapshot{Owned: c.owned, Written: c.written})
			if diff := cmp.Diff([]workload.Progress{c.want}, got); diff != "" {
				t.Error("-want +got", diff)
			}
		})
	}
}

func TestComponentsAreMadeInOrder(t *testing.T) {
	g := &graph.Graph{Components: []graph.Component{
		{Name: "A", ObjectName: "g-a", StartAfter: []string{"B"}}, {Name: "B", ObjectName: "g-b"},
	}}
	for rule, c := range map[string]struct {
		owned []graph.Object
		want  []string
		why   string
	}{
		"one waits for another that is not there": {want: []string{"g-b", "other"}, why: "waiting for B to be ready"},
		"or not ready":                    {owned: []graph.Object{live("g-b", failing)}, want: []string{"g-b", "other"}, why: "waiting for B to be ready"},
		"until that is ready":             {owned: []graph.Object{live("g-b", ready)}, want: []string{"g-a", "g-b", "other"}, why: "not created yet"},
		"what was started is not stopped": {owned: []graph.Object{live("g-a", failing), live("g-b", failing)}, want: []string{"g-a", "g-b", "other"}, why: "no image"},
	} {
		t.Run(rule, func(t *testing.T) {
			s := snapshot.Snapshot{Owned: c.owned}
			desired := []graph.Desired{{Object: live("g-a", ready)}, {Object: live("g-b", ready)}, {Object: &v1alpha1.DynamoModel{ObjectMeta: metav1.ObjectMeta{Name: "other"}}}}
			var got []string
			for _, d := range (Builder{}).InOrder(g, desired, s) {
				got = append(got, d.GetName())
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error("-want +got", diff)
			}
			if p := (Builder{}).Progress(g, s)[0]; p.Why != c.why {
				t.Errorf("says %q, want %q", p.Why, c.why)
			}
		})
	}
}

func TestTheMarkOfARestartIsReadOffTheComponent(t *testing.T) {
	s := snapshot.Snapshot{Owned: []graph.Object{live("g-a", ready)}}
	for name, want := range map[string]string{"g-a": "7", "g-b": ""} {
		id, made := Builder{}.Mark(nil, graph.Component{ObjectName: name}, s)
		if id != want || made != (want != "") {
			t.Errorf("%s carries %q, made %v", name, id, made)
		}
	}
}

func TestTheMarkOfARestartIsReadBackUnderEveryContract(t *testing.T) {
	for _, contract := range []graph.Contract{"", graph.ContractV1} {
		t.Run(string(contract), func(t *testing.T) {
			dgd := &v1alpha1.DynamoGraphDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "g"}}
			dgd.Spec.Services = map[string]*v1alpha1.SharedSpec{"a": {ComponentType: "frontend"}, "b": {ComponentType: "worker"}}
			b := Builder{Graph: dgd, Defaults: graph.Defaults{Discovery: graph.DiscoveryKubernetes, Contract: graph.ContractRules{Forced: contract}}}
			g, err := graph.FromGraphDeployment(dgd, b.Defaults)
			if err != nil {
				t.Fatal(err)
			}
			made, err := b.Build(g.WithMarks(map[string]string{"a": "1"}), nil)
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]string{}
			for _, c := range g.Components {
				id, there := b.Mark(g, c, snapshot.Snapshot{Owned: made})
				if !there {
					t.Errorf("%s was not made", c.Name)
				}
				got[c.Name] = id
			}
			if diff := cmp.Diff(map[string]string{"a": "1", "b": ""}, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
