package observe

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
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
				Conditions: []corev1.PodCondition{{Type: corev1.ContainersReady, LastTransitionTime: at, LastProbeTime: at}},
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

// TestPortsThatHaveANameAreKept: a rollout asks pods what they have counted at those.
func TestPortsThatHaveANameAreKept(t *testing.T) {
	trimmed, err := TrimPod(&corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{
		{Name: "main", Ports: []corev1.ContainerPort{{ContainerPort: 5600}, {Name: "system", ContainerPort: 9191, Protocol: corev1.ProtocolTCP, HostIP: "10.0.0.1"}}},
		{Name: "other", Ports: []corev1.ContainerPort{{ContainerPort: 5601}}},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	want := []corev1.Container{{Name: "main", Ports: []corev1.ContainerPort{{Name: "system", ContainerPort: 9191}}}, {Name: "other"}}
	if diff := cmp.Diff(want, trimmed.(*corev1.Pod).Spec.Containers); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestThePriorityOfAPodIsKept: graphs are ordered by it where GPUs are short.
func TestThePriorityOfAPodIsKept(t *testing.T) {
	trimmed, err := TrimPod(&corev1.Pod{Spec: corev1.PodSpec{Priority: new(int32(7)), PriorityClassName: "high"}})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(corev1.PodSpec{Priority: new(int32(7))}, trimmed.(*corev1.Pod).Spec); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
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

// TestAPodOrWarningOfATenantIsHeldInBounds: every field that a tenant can make
// large is.
func TestAPodOrWarningOfATenantIsHeldInBounds(t *testing.T) {
	large := strings.Repeat("x", 1<<20)
	probe := &corev1.Probe{ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{large}}}}
	event := func(kind string) *corev1.Event {
		return &corev1.Event{
			ObjectMeta:     metav1.ObjectMeta{Namespace: "n", Name: "e", Annotations: map[string]string{"a": large}},
			InvolvedObject: corev1.ObjectReference{Kind: kind, Name: large, FieldPath: large, UID: types.UID(large)}, Reason: large, Message: large,
		}
	}
	for rule, c := range map[string]struct {
		object any
		trim   func(any) (any, error)
		most   int
	}{
		"labels":                      {&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Labels: map[string]string{large: ""}}}, TrimPod, 1 << 10},
		"a probe":                     {&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{ReadinessProbe: probe}}}}, TrimPod, 1 << 10},
		"a warning of a pod":          {event("Pod"), TrimWarning, 5*longestWord + 1<<10},
		"a warning of something else": {event("Widget"), TrimWarning, 1 << 10},
		"of a kind with a long name":  {event(large), TrimWarning, 1 << 10},
	} {
		t.Run(rule, func(t *testing.T) {
			once, err := c.trim(c.object)
			if err != nil {
				t.Fatal(err)
			}
			if size := once.(interface{ Size() int }).Size(); size > c.most {
				t.Errorf("%d bytes are held", size)
			}
			twice, err := c.trim(once)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(once, twice); diff != "" {
				t.Errorf("an informer transforms twice (-once +twice):\n%s", diff)
			}
		})
	}
}
