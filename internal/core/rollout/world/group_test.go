package world

import (
	"strconv"
	"testing"
	"time"

	"github.com/ai-dynamo/grove/operator/api/common"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	lwsv1 "sigs.k8s.io/lws/api/leaderworkerset/v1"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/generation"
	"github.com/dynamo-operator/dynamo-operator/internal/core/workload"
)

// TestPodsOfOneReplicaCountOnce: those of a group of nodes, whoever makes it.
func TestPodsOfOneReplicaCountOnce(t *testing.T) {
	pod := func(name string, labels ...string) corev1.Pod {
		p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{v1alpha1.LabelComponent: "decode", v1alpha1.LabelGeneration: "a"}}}
		for i := 0; i < len(labels); i += 2 {
			p.Labels[labels[i]] = labels[i+1]
		}
		return p
	}
	for name, c := range map[string]struct {
		pods []corev1.Pod
		want []int
	}{
		"pods by themselves": {[]corev1.Pod{pod("a"), pod("b")}, []int{1, 1}},
		"a LeaderWorkerSet": {[]corev1.Pod{
			pod("a", lwsv1.SetNameLabelKey, "s", lwsv1.GroupIndexLabelKey, "0"), pod("b", lwsv1.SetNameLabelKey, "s", lwsv1.GroupIndexLabelKey, "0"),
			pod("c", lwsv1.SetNameLabelKey, "s", lwsv1.GroupIndexLabelKey, "1"),
		}, []int{2, 1}},
		"a scaling group of Grove": {[]corev1.Pod{
			pod("a", common.LabelPodCliqueScalingGroup, "s", common.LabelPodCliqueScalingGroupReplicaIndex, "0"),
			pod("b", common.LabelPodCliqueScalingGroup, "s", common.LabelPodCliqueScalingGroupReplicaIndex, "1"),
			pod("c", common.LabelPodCliqueScalingGroup, "s", common.LabelPodCliqueScalingGroupReplicaIndex, "0"),
		}, []int{2, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []int
			for _, g := range groups(c.pods, "a", "decode") {
				got = append(got, len(g))
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestReadyReplicasAreKnownByOrdinal: where those with the highest go first.
func TestReadyReplicasAreKnownByOrdinal(t *testing.T) {
	now := time.Unix(10000, 0)
	set, group := lwsv1.SetNameLabelKey, lwsv1.GroupIndexLabelKey
	scaling, index := common.LabelPodCliqueScalingGroup, common.LabelPodCliqueScalingGroupReplicaIndex
	for name, c := range map[string]struct {
		labels [][]string
		want   []int
	}{
		"pods by themselves have none": {[][]string{nil, nil, nil}, nil},
		"groups of a LeaderWorkerSet":  {[][]string{{set, "s", group, "0"}, {set, "s", group, "10"}, {set, "s", group, "2"}}, []int{2, 10}},
		"sets of one group": {[][]string{
			{set, "s-0", group, "0", v1alpha1.LabelGroupInstance, "0"}, {set, "s-1", group, "0", v1alpha1.LabelGroupInstance, "1"}, {set, "s-2", group, "0", v1alpha1.LabelGroupInstance, "2"},
		}, []int{1, 2}},
		"a scaling group of Grove": {[][]string{{scaling, "s", index, "0"}, {scaling, "s", index, "1"}, {scaling, "s", index, "2"}}, []int{1, 2}},
	} {
		t.Run(name, func(t *testing.T) {
			decode := graph.Component{Name: "decode", Role: graph.RoleDecode, Replicas: 3}
			g := &graph.Graph{Contract: graph.ContractV1, Components: []graph.Component{decode}}
			s := Sight{Now: now}
			for i, labels := range c.labels {
				p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: strconv.Itoa(i), Labels: map[string]string{v1alpha1.LabelComponent: "decode"}}}
				for j := 0; j < len(labels); j += 2 {
					p.Labels[labels[j]] = labels[j+1]
				}
				if i > 0 { // the first is not ready
					p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(now.Add(-time.Minute))}}
				}
				s.Pods = append(s.Pods, p)
			}
			seen := Cells(g, []workload.Member{{Service: "decode", Stored: decode, Replicas: 3}}, Rules{})[0].World(g, s).Generations[0].Roles[0]
			want := generation.Replicas{Want: 3, Exist: 3, Ready: 2, Routable: 2, Ordinals: c.want}
			if diff := cmp.Diff(want, seen); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
