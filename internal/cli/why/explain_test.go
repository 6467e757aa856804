package why

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/snapshot"
)

func TestExplain(t *testing.T) {
	crashed := snapshot.Evidence{Pods: []corev1.Pod{{
		ObjectMeta: metav1.ObjectMeta{Name: "llm-decode-1"},
		Spec:       corev1.PodSpec{NodeName: "node-1", Containers: []corev1.Container{{Name: "main"}}},
		Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{
			Name: "main", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, Message: "boom"}},
		}}},
	}}}
	full := snapshot.Evidence{Refused: []snapshot.Refusal{{
		By: "Deployment/llm-decode", Message: `pods "x" is forbidden: exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1`,
	}}}
	graph := func(reason, message string, status metav1.ConditionStatus) *v1alpha1.DynamoGraphDeployment {
		return &v1alpha1.DynamoGraphDeployment{
			ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "llm"},
			Spec: v1alpha1.DynamoGraphDeploymentSpec{Services: map[string]*v1alpha1.SharedSpec{
				"decode": {}, "prefill": {},
			}},
			Status: v1alpha1.DynamoGraphDeploymentStatus{
				Conditions: []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: status, Reason: reason, Message: message}},
				Services: map[string]v1alpha1.ServiceReplicaStatus{
					"decode": {ComponentKind: "Deployment", ComponentName: "llm-decode", Replicas: 1, ReadyReplicas: new(int32(0))},
				},
			},
		}
	}
	waiting := graph("ServicesNotReady", "decode: 0 of 1 replicas available", metav1.ConditionFalse)
	cases := map[string]struct {
		found finding
		want  string
	}{
		"from the graph to the container": {
			finding{waiting, map[string]snapshot.Evidence{"decode": crashed}}, `
graph llm
└─ service decode  0/1 ready
   └─ Deployment llm-decode
      └─ pod llm-decode-1  on node-1
         └─ container main
cause: ContainerCrashed: container main exited with code 1: boom
what to do: read the container's log: kubectl logs -n lab llm-decode-1 -c main --previous`,
		},
		"the first cause first, the others in a line": {
			finding{waiting, map[string]snapshot.Evidence{"decode": crashed, "prefill": full}}, `
graph llm
└─ service prefill  0/0 ready
   └─ Deployment llm-decode cannot make pods
cause: QuotaExceeded: ResourceQuota q leaves no room: asked for pods=1, used pods=1 of pods=1
what to do: ask for less, free what the namespace uses, or have its ResourceQuota raised
also not ready: service decode: container main exited with code 1: boom`,
		},
		"what the operator says where no pod says anything": {
			finding{graph("OrchestratorUnavailable", "decode: install LeaderWorkerSet", metav1.ConditionFalse), nil}, `
graph llm
cause: OrchestratorUnavailable: decode: install LeaderWorkerSet
what to do: install what the message names; the graph goes on by itself`,
		},
		"a graph that is ready": {
			finding{graph("AllServicesReady", "2 of 2 services ready", metav1.ConditionTrue), nil}, `
graph llm is ready: 2 of 2 services ready`,
		},
		"a graph that nobody looked at": {
			finding{&v1alpha1.DynamoGraphDeployment{ObjectMeta: metav1.ObjectMeta{Name: "llm", Generation: 1}}, nil}, `
graph llm: the operator has not looked at its latest version yet
what to do: see that the operator runs: kubectl -n dynamo-system get pods`,
		},
	}
	for rule, c := range cases {
		t.Run(rule, func(t *testing.T) {
			if diff := cmp.Diff(strings.TrimPrefix(c.want, "\n"), strings.Join(explain(c.found).Lines(), "\n")); diff != "" {
				t.Error(diff)
			}
		})
	}
}
