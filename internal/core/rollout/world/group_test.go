package world

import (
	"testing"

	"github.com/ai-dynamo/grove/operator/api/common"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	lwsv1 "sigs.k8s.io/lws/api/leaderworkerset/v1"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
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
