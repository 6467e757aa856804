package worker

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dynamo-operator/dynamo-operator/localcluster/internal/node/status"
)

type containerStatus = corev1.ContainerStatus

// restore is what remains of the containers of a pod that ran before this
// worker: processes die with their agent, so what ran has ended, as after a
// reboot of the node. What had ended keeps its end.
func restore(pod *corev1.Pod, at metav1.Time) map[string]containerStatus {
	out := map[string]containerStatus{}
	for _, cs := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		switch {
		case status.Finished(pod.Status):
			out[cs.Name] = cs
			continue
		case cs.ContainerID == "":
			continue // never started
		}
		cs.Ready, cs.Started = false, new(false)
		if running := cs.State.Running; running != nil {
			cs.State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
				ExitCode: 137, Reason: "ContainerStatusUnknown", Message: "The process ended together with the node agent",
				StartedAt: running.StartedAt, FinishedAt: at, ContainerID: cs.ContainerID,
			}}
		}
		out[cs.Name] = cs
	}
	return out
}
