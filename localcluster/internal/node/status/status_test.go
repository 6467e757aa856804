package status

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const initialised = string(corev1.PodInitialized)

var (
	before = metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	now    = metav1.NewTime(time.Date(2026, 1, 1, 1, 0, 0, 0, time.UTC))
)

func running(ready bool) corev1.ContainerStatus {
	return corev1.ContainerStatus{Ready: ready, Started: new(true), State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}
}

func ended(code int32) corev1.ContainerStatus {
	return corev1.ContainerStatus{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code}}}
}

func backingOff(code int32) corev1.ContainerStatus {
	return corev1.ContainerStatus{
		State:                corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}},
		LastTerminationState: ended(code).State,
	}
}

// pod has the init containers init and side (a sidecar) and the containers a and b.
func pod() *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Generation: 3},
		Spec: corev1.PodSpec{
			InitContainers: []corev1.Container{{Name: "init"}, {Name: "side", RestartPolicy: new(corev1.ContainerRestartPolicyAlways)}},
			Containers:     []corev1.Container{{Name: "a"}, {Name: "b"}},
		},
	}
}

type states = map[string]corev1.ContainerStatus

func TestPhase(t *testing.T) {
	for name, c := range map[string]struct {
		containers states
		ended      bool
		reason     string
		want       corev1.PodPhase
	}{
		"nothing has started":                                 {nil, false, "", corev1.PodPending},
		"an init container runs":                              {states{"init": running(false)}, false, "", corev1.PodPending},
		"an init container backs off":                         {states{"init": backingOff(1)}, false, "", corev1.PodPending},
		"init is through, but the sidecar is not there":       {states{"init": ended(0)}, false, "", corev1.PodPending},
		"init is through, containers are being created":       {states{"init": ended(0), "side": running(true)}, false, "", corev1.PodPending},
		"one container still to come":                         {states{"init": ended(0), "side": running(true), "a": running(true)}, false, "", corev1.PodPending},
		"all run":                                             {states{"init": ended(0), "side": running(true), "a": running(true), "b": running(true)}, false, "", corev1.PodRunning},
		"one backs off":                                       {states{"init": ended(0), "side": running(true), "a": running(true), "b": backingOff(1)}, false, "", corev1.PodRunning},
		"all have stopped, but the pod goes on":               {states{"init": ended(0), "side": running(true), "a": ended(0), "b": ended(1)}, false, "", corev1.PodRunning},
		"ended well":                                          {states{"init": ended(0), "side": ended(143), "a": ended(0), "b": ended(0)}, true, "", corev1.PodSucceeded},
		"ended with a failure":                                {states{"init": ended(0), "side": ended(0), "a": ended(0), "b": ended(1)}, true, "", corev1.PodFailed},
		"ended while backing off from a failure":              {states{"init": ended(0), "side": ended(0), "a": ended(0), "b": backingOff(1)}, true, "", corev1.PodFailed},
		"ended before a container began":                      {states{"init": ended(1)}, true, "", corev1.PodFailed},
		"a verdict on the whole pod outweighs its containers": {states{"init": ended(0), "side": ended(0), "a": ended(0), "b": ended(0)}, true, "DeadlineExceeded", corev1.PodFailed},
	} {
		t.Run(name, func(t *testing.T) {
			got := Of(View{Pod: pod(), Containers: c.containers, Ended: c.ended, Reason: c.reason})
			if got.Phase != c.want {
				t.Errorf("phase %s, want %s", got.Phase, c.want)
			}
		})
	}
}

func TestConditions(t *testing.T) {
	allReady := states{"init": ended(0), "side": running(true), "a": running(true), "b": running(true)}
	for name, c := range map[string]struct {
		view  View
		gates []corev1.PodReadinessGate
		old   []corev1.PodCondition
		want  []string
	}{
		"nothing is there yet": {
			view: View{},
			want: []string{
				"PodReadyToStartContainers=False",
				initialised + "=False ContainersNotInitialized containers with incomplete status: [init side]",
				"ContainersReady=False ContainersNotReady containers with unready status: [side a b]",
				"Ready=False ContainersNotReady containers with unready status: [side a b]",
				"PodScheduled=True",
			},
		},
		"all containers are ready": {
			view: View{Prepared: true, Containers: allReady},
			want: []string{"PodReadyToStartContainers=True", initialised + "=True", "ContainersReady=True", "Ready=True", "PodScheduled=True"},
		},
		"a sidecar that is not ready keeps the pod from it": {
			view: View{Prepared: true, Containers: states{"init": ended(0), "side": running(false), "a": running(true), "b": running(true)}},
			want: []string{
				"PodReadyToStartContainers=True", initialised + "=True",
				"ContainersReady=False ContainersNotReady containers with unready status: [side]",
				"Ready=False ContainersNotReady containers with unready status: [side]",
				"PodScheduled=True",
			},
		},
		"a pod that is stopping is not ready": {
			view: View{Prepared: true, Stopping: true, Containers: allReady},
			want: []string{
				"PodReadyToStartContainers=True", initialised + "=True",
				"ContainersReady=False ContainersNotReady containers with unready status: [side a b]",
				"Ready=False ContainersNotReady containers with unready status: [side a b]",
				"PodScheduled=True",
			},
		},
		"a readiness gate without a condition is closed": {
			view: View{Prepared: true, Containers: allReady}, gates: []corev1.PodReadinessGate{{ConditionType: "gate"}},
			want: []string{
				"PodReadyToStartContainers=True", initialised + "=True", "ContainersReady=True",
				`Ready=False ReadinessGatesNotReady corresponding condition of pod readiness gate "gate" does not exist.`,
				"PodScheduled=True",
			},
		},
		"a readiness gate opens with its condition, which stays": {
			view: View{Prepared: true, Containers: allReady}, gates: []corev1.PodReadinessGate{{ConditionType: "gate"}},
			old:  []corev1.PodCondition{{Type: "gate", Status: corev1.ConditionTrue}},
			want: []string{"gate=True", "PodReadyToStartContainers=True", initialised + "=True", "ContainersReady=True", "Ready=True", "PodScheduled=True"},
		},
		"a pod that is through says so": {
			view: View{Prepared: true, Ended: true, Containers: states{"init": ended(0), "side": ended(0), "a": ended(0), "b": ended(0)}},
			want: []string{"PodReadyToStartContainers=False", initialised + "=True PodCompleted", "ContainersReady=False PodCompleted", "Ready=False PodCompleted", "PodScheduled=True"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c.view.Pod = pod()
			c.view.Pod.Spec.ReadinessGates = c.gates
			c.view.Pod.Status.Conditions = c.old
			var got []string
			for _, cond := range Of(c.view).Conditions {
				got = append(got, strings.TrimSpace(strings.Join([]string{string(cond.Type) + "=" + string(cond.Status), cond.Reason, cond.Message}, " ")))
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestATransitionTimeMovesOnlyWithTheStatus(t *testing.T) {
	p := pod()
	p.Status.Conditions = []corev1.PodCondition{
		{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: before},
		{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: before},
	}
	for _, c := range Of(View{Pod: p, Now: now}).Conditions {
		want := now
		if c.Type == corev1.PodScheduled {
			want = before
		}
		if !c.LastTransitionTime.Equal(&want) {
			t.Errorf("%s: %v, want %v", c.Type, c.LastTransitionTime, want)
		}
	}
}

func TestPatch(t *testing.T) {
	p := pod()
	s := Of(View{Pod: p, Now: now, StartTime: before, PodIP: "10.17.0.2", HostIP: "127.0.0.1"})
	t.Run("a status that did not change needs none", func(t *testing.T) {
		p.Status = s
		again := Of(View{Pod: p, Now: metav1.NewTime(now.Add(time.Hour)), StartTime: before, PodIP: "10.17.0.2", HostIP: "127.0.0.1"})
		if got, err := Patch("u", s, again); err != nil || got != nil {
			t.Errorf("patch %s, %v", got, err)
		}
	})
	t.Run("it holds for this pod only", func(t *testing.T) {
		got, err := Patch("u", corev1.PodStatus{}, corev1.PodStatus{Phase: corev1.PodRunning})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(`{"metadata":{"uid":"u"},"status":{"phase":"Running"}}`, string(got)); diff != "" {
			t.Error(diff)
		}
	})
}
