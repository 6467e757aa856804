package lws

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	lwsv1 "sigs.k8s.io/lws/api/leaderworkerset/v1"

	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/snapshot"
)

func TestGroupsThatMakeNoProgress(t *testing.T) {
	const deadline = 10 * time.Minute
	at := func(minute int) metav1.Time { return metav1.Unix(int64(minute)*60, 0) }
	c := graph.Component{Name: "a", ObjectName: "a", Replicas: 2, Nodes: 2}
	// Each set runs from minute 0 on, and the first was told something else at
	// minute 20 which it did not come to so far.
	sets := func() (changed, other *lwsv1.LeaderWorkerSet) {
		var both []*lwsv1.LeaderWorkerSet
		for i := range c.Replicas {
			set := &lwsv1.LeaderWorkerSet{ObjectMeta: metav1.ObjectMeta{Name: Name(c, i), Generation: 1, CreationTimestamp: at(0)}}
			set.Spec.LeaderWorkerTemplate.Size = new(c.Nodes)
			set.Status = lwsv1.LeaderWorkerSetStatus{ObservedGeneration: 1, Replicas: 1, UpdatedReplicas: 1, ReadyReplicas: 1}
			set.Status.Conditions = []metav1.Condition{{Type: string(lwsv1.LeaderWorkerSetAvailable), Status: metav1.ConditionTrue, LastTransitionTime: at(1)}}
			both = append(both, set)
		}
		both[0].Generation, both[0].Status.ObservedGeneration = 2, 2
		both[0].Status.ReadyReplicas = 0
		both[0].ManagedFields = []metav1.ManagedFieldsEntry{
			{Manager: "dynamo-operator", Operation: metav1.ManagedFieldsOperationApply, Time: new(at(20))},
			{Manager: "lws", Operation: metav1.ManagedFieldsOperationUpdate, Subresource: "status", Time: new(at(35))},
		}
		return both[0], both[1]
	}
	type verdict struct {
		Stuck   bool
		Due     int // the minute
		Updated int32
		Behind  []string
		Why     string
	}
	waits := []graph.Ref{{Kind: "LeaderWorkerSet", Name: "a-1"}}
	for rule, c2 := range map[string]struct {
		now       int
		postponed []graph.Ref
		written   []graph.Ref
		change    func(changed, other *lwsv1.LeaderWorkerSet)
		want      verdict
	}{
		"time is given": {
			now: 29, postponed: waits,
			want: verdict{Due: 30, Updated: 1, Behind: []string{"a-1"}, Why: "group a-0 is not ready"},
		},
		"time is up, whatever the counts did meanwhile": {
			now: 30, postponed: waits,
			want: verdict{Stuck: true, Updated: 1, Behind: []string{"a-1"}, Why: "group a-0 is not ready"},
		},
		"another group that got somewhere is progress": {
			now: 30, change: func(_, other *lwsv1.LeaderWorkerSet) {
				other.Status.Conditions[0].LastTransitionTime = at(25)
			},
			want: verdict{Due: 35, Updated: 2, Why: "group a-0 is not ready"},
		},
		"another change is a new beginning, also before it is seen": {
			now: 50, postponed: waits, written: []graph.Ref{{Kind: "LeaderWorkerSet", Name: "a-0"}},
			want: verdict{Due: 60, Updated: 1, Behind: []string{"a-1"}, Why: "LeaderWorkerSet a-0 is being updated"},
		},
		"a set that nobody looks after gets nowhere": {
			now: 50, change: func(changed, _ *lwsv1.LeaderWorkerSet) { changed.Status.ObservedGeneration = 1 },
			want: verdict{Stuck: true, Updated: 2, Why: "LeaderWorkerSet a-0 has not been observed yet"},
		},
		"what is done is never late": {
			now: 50, change: func(changed, _ *lwsv1.LeaderWorkerSet) { changed.Status.ReadyReplicas = 1 },
			want: verdict{Updated: 2},
		},
		"a group that is to change is not done": {
			now: 25, postponed: waits, change: func(changed, _ *lwsv1.LeaderWorkerSet) { changed.Status.ReadyReplicas = 1 },
			want: verdict{Due: 30, Updated: 1, Behind: []string{"a-1"}, Why: "groups change one after the other"},
		},
	} {
		t.Run(rule, func(t *testing.T) {
			changed, other := sets()
			if c2.change != nil {
				c2.change(changed, other)
			}
			s := snapshot.Snapshot{Taken: at(c2.now).Time, Owned: []graph.Object{changed, other}, Postponed: c2.postponed, Written: c2.written}
			p := Builder{Deadline: deadline}.Progress(&graph.Graph{Components: []graph.Component{c}}, s)[0]
			got := verdict{Stuck: p.Stuck, Updated: p.Updated, Behind: p.Behind, Why: p.Why}
			if !p.Due.IsZero() {
				got.Due = int(p.Due.Unix() / 60)
			}
			if diff := cmp.Diff(c2.want, got); diff != "" {
				t.Error("-want +got", diff)
			}
			if p.Done != (c2.want.Why == "") {
				t.Errorf("done %v", p.Done)
			}
		})
	}
}
