package tree

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
)

func TestLines(t *testing.T) {
	dgd := &v1alpha1.DynamoGraphDeployment{
		ObjectMeta: metav1.ObjectMeta{Name: "chat"},
		Spec:       v1alpha1.DynamoGraphDeploymentSpec{Services: map[string]*v1alpha1.SharedSpec{"decode": nil, "Frontend": nil}},
		Status: v1alpha1.DynamoGraphDeploymentStatus{
			State:      v1alpha1.GraphStatePending,
			Conditions: []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse}},
			Services: map[string]v1alpha1.ServiceReplicaStatus{
				"Frontend": {ComponentKind: "Deployment", ComponentName: "chat-frontend", Replicas: 1, ReadyReplicas: new(int32(1))},
				"decode":   {ComponentKind: "Deployment", ComponentName: "chat-decode", Replicas: 2, Message: "0 of 2 replicas available"},
			},
		},
	}
	pod := func(name, graph, service, node string, status corev1.PodStatus) corev1.Pod {
		return corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
				v1alpha1.LabelGraphName: graph, v1alpha1.LabelComponent: service,
			}},
			Spec: corev1.PodSpec{NodeName: node}, Status: status,
		}
	}
	pods := []corev1.Pod{
		pod("chat-decode-b", "chat", "decode", "", corev1.PodStatus{Phase: corev1.PodPending}),
		pod("chat-decode-a", "chat", "decode", "node-1", corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{
			{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"}}},
		}}),
		pod("chat-frontend-a", "chat", "Frontend", "node-0", corev1.PodStatus{Conditions: []corev1.PodCondition{
			{Type: corev1.PodReady, Status: corev1.ConditionTrue},
		}}),
		pod("other", "another", "decode", "node-0", corev1.PodStatus{}),
	}
	want := []string{
		"chat  pending",
		"├─ Frontend  Deployment chat-frontend  1/1 ready",
		"│   └─ chat-frontend-a  node-0  Ready",
		"└─ decode  Deployment chat-decode  0/2 ready  (0 of 2 replicas available)",
		"    ├─ chat-decode-a  node-1  ImagePullBackOff",
		"    └─ chat-decode-b  no node  Pending",
	}
	if diff := cmp.Diff(want, Lines(dgd, pods)); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
}

func TestTheStateOfAGraph(t *testing.T) {
	for rule, c := range map[string]struct {
		conditions []metav1.Condition
		want       string
	}{
		"nobody looked":              {nil, "not seen yet"},
		"ready":                      {[]metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue}}, "ready"},
		"one that sleeps":            {[]metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue}, {Type: v1alpha1.ConditionDormant, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonIdle}}, "asleep"},
		"one that serves":            {[]metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue}, {Type: v1alpha1.ConditionDormant, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonActive}}, "ready"},
		"one that sleeps and is ill": {[]metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse}, {Type: v1alpha1.ConditionDormant, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonIdle}}, "pending"},
	} {
		t.Run(rule, func(t *testing.T) {
			got := State(&v1alpha1.DynamoGraphDeployment{Status: v1alpha1.DynamoGraphDeploymentStatus{State: v1alpha1.GraphStatePending, Conditions: c.conditions}})
			if got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}
