package controlplane

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
)

func TestNodesReady(t *testing.T) {
	node := func(name string, ready corev1.ConditionStatus, annotations map[string]string) *corev1.Node {
		return &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: annotations},
			Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}}},
		}
	}
	good := node("node-0", corev1.ConditionTrue, nil)
	for name, tc := range map[string]struct {
		second *corev1.Node
		well   bool
	}{
		"all nodes are ready":                 {node("node-1", corev1.ConditionTrue, nil), true},
		"a node that fell ill is not well":    {node("node-1", corev1.ConditionUnknown, nil), false},
		"a node that was asked to be lost is": {node("node-1", corev1.ConditionUnknown, map[string]string{lostAnnotation: "true"}), true},
		"a node that has no condition is not": {&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			err := nodesReady(fake.NewClientset(good, tc.second), 2)(t.Context())
			if well := err == nil; well != tc.well {
				t.Errorf("nodesReady: %v, want well: %v", err, tc.well)
			}
		})
	}
	if err := nodesReady(fake.NewClientset(good), 2)(t.Context()); err == nil {
		t.Error("a node that does not exist is ready")
	}
}
