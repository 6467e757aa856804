package lws

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	lwsv1 "sigs.k8s.io/lws/api/leaderworkerset/v1"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/snapshot"
)

func TestTurns(t *testing.T) {
	set := func(name string, change func(*lwsv1.LeaderWorkerSet)) *lwsv1.LeaderWorkerSet {
		one := &lwsv1.LeaderWorkerSet{ObjectMeta: metav1.ObjectMeta{Name: name, Generation: 2}}
		one.Spec.LeaderWorkerTemplate.Size = new(int32(2))
		one.Status = lwsv1.LeaderWorkerSetStatus{ObservedGeneration: 2, Replicas: 1, UpdatedReplicas: 1, ReadyReplicas: 1, Conditions: []metav1.Condition{
			{Type: string(lwsv1.LeaderWorkerSetAvailable), Status: metav1.ConditionTrue},
		}}
		change(one)
		return one
	}
	serves := func(*lwsv1.LeaderWorkerSet) {}
	for rule, c := range map[string]struct {
		component graph.Component
		live      []graph.Object
		want      []graph.UpdatePolicy // of the PodGroup and the set of the first group, then of the second
	}{
		"groups that all serve take turns": {
			live: []graph.Object{set("a-0", serves), set("a-1", serves)},
			want: []graph.UpdatePolicy{graph.UpdateOneAtATime, graph.UpdateOneAtATime, graph.UpdateOneAtATime, graph.UpdateOneAtATime},
		},
		"a group that serves waits for one that does not": {
			live: []graph.Object{set("a-0", func(s *lwsv1.LeaderWorkerSet) { s.Status.ReadyReplicas = 0 }), set("a-1", serves)},
			want: []graph.UpdatePolicy{graph.UpdateNow, graph.UpdateNow, graph.UpdateNever, graph.UpdateNever},
		},
		"a change that was not observed yet is under way": {
			live: []graph.Object{set("a-0", serves), set("a-1", func(s *lwsv1.LeaderWorkerSet) { s.Generation = 3 })},
			want: []graph.UpdatePolicy{graph.UpdateNever, graph.UpdateNever, graph.UpdateNow, graph.UpdateNow},
		},
		"a group that goes does not serve": {
			live: []graph.Object{set("a-0", func(s *lwsv1.LeaderWorkerSet) { s.DeletionTimestamp = &metav1.Time{} }), set("a-1", serves)},
			want: []graph.UpdatePolicy{graph.UpdateNow, graph.UpdateNow, graph.UpdateNever, graph.UpdateNever},
		},
		"nobody waits who asked for Recreate": {
			component: graph.Component{Annotations: map[string]string{v1alpha1.AnnotationDeploymentStrategy: "Recreate"}},
			live:      []graph.Object{set("a-0", func(s *lwsv1.LeaderWorkerSet) { s.Status.ReadyReplicas = 0 }), set("a-1", serves)},
			want:      []graph.UpdatePolicy{graph.UpdateNow, graph.UpdateNow, graph.UpdateNow, graph.UpdateNow},
		},
		"nobody waits where nobody serves": {
			live: []graph.Object{set("a-0", func(s *lwsv1.LeaderWorkerSet) { s.Status.Conditions = nil })},
			want: []graph.UpdatePolicy{graph.UpdateNow, graph.UpdateNow, graph.UpdateNow, graph.UpdateNow},
		},
	} {
		t.Run(rule, func(t *testing.T) {
			var wanted []graph.Desired
			for _, name := range []string{"a-0", "a-1"} {
				wanted = append(wanted,
					graph.Desired{Object: &PodGroup{ObjectMeta: metav1.ObjectMeta{Name: name}}},
					graph.Desired{Object: set(name, func(s *lwsv1.LeaderWorkerSet) { s.Spec.LeaderWorkerTemplate.Size = new(int32(3)) })})
			}
			var got []graph.UpdatePolicy
			for _, w := range Turns(c.component, wanted, snapshot.Snapshot{Owned: c.live}) {
				got = append(got, w.UpdatePolicy)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error("-want +got", diff)
			}
		})
	}
}
