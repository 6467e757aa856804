package observe

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// While a container crashes over and over, what is kept of its pod differs only
// by which run it was.
func TestTrimmingDropsWhatOnlyTimeChanges(t *testing.T) {
	pod := func(minute int, restarts int32, pause string) *corev1.Pod {
		at := metav1.NewTime(time.Unix(int64(60*minute), 0))
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: "p", Annotations: map[string]string{"big": "x"}, ManagedFields: []metav1.ManagedFieldsEntry{{Time: &at}}},
			Spec: corev1.PodSpec{
				Containers: []corev1.Container{{Name: "main", Env: []corev1.EnvVar{{Name: "A", Value: "b"}}}},
				Volumes:    []corev1.Volume{{Name: "scratch"}},
			},
			Status: corev1.PodStatus{
				StartTime:  &at,
				Conditions: []corev1.PodCondition{{Type: corev1.PodReady, LastTransitionTime: at, LastProbeTime: at}},
				ContainerStatuses: []corev1.ContainerStatus{{
					Name: "main", RestartCount: restarts,
					State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: "back-off " + pause}},
					LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
						ExitCode: 1, StartedAt: at, FinishedAt: at, ContainerID: "run", Message: strings.Repeat("x", 2*longestWord),
					}},
				}},
			},
		}
	}
	trim := func(p *corev1.Pod) *corev1.Pod {
		trimmed, err := TrimPod(p)
		if err != nil {
			t.Fatal(err)
		}
		return trimmed.(*corev1.Pod)
	}
	first := trim(pod(1, 1, "10s"))
	if diff := cmp.Diff(first, trim(pod(9, 7, "5m0s"))); diff != "" {
		t.Error(diff)
	}
	if first.Spec.Containers[0].Env != nil || first.Spec.Volumes != nil || first.Annotations != nil || first.ManagedFields != nil {
		t.Errorf("more is kept than is looked at: %+v", first)
	}
	if got := len(first.Status.ContainerStatuses[0].LastTerminationState.Terminated.Message); got != longestWord {
		t.Errorf("%d bytes of last words are kept", got)
	}
	if before := first.Status.ContainerStatuses[0].LastTerminationState.Terminated.ContainerID; before != "run" {
		t.Error("which run it was is not kept")
	}
}

func TestWarningsThatAPodTellsBetterAreNotHeld(t *testing.T) {
	selector := Warnings().String()
	for _, part := range []string{"type=Warning", "reason!=BackOff", "reason!=FailedScheduling"} {
		if !strings.Contains(selector, part) {
			t.Errorf("%s lacks %s", selector, part)
		}
	}
}
