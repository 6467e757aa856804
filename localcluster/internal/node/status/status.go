// Package status turns what is known of a pod's containers into the status that
// a kubelet would report: phase, conditions and container states.
//
// It is pure. It decides nothing about what should happen next, and leaves alone
// the parts of the status that others own: their conditions, the QoS class.
package status

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// View is what the agent knows of a pod.
type View struct {
	Pod        *corev1.Pod                       // newest API object; its status is what was last reported
	Containers map[string]corev1.ContainerStatus // of all kinds; one that is missing has not been looked at yet
	PodIP      string
	HostIP     string
	StartTime  metav1.Time
	Now        metav1.Time

	Prepared bool // volumes and address are there
	Stopping bool // asked to end
	Ended    bool // nothing runs, and nothing will

	// Verdict of the agent on the whole pod, such as DeadlineExceeded.
	Reason, Message string
}

// Reasons of waiting containers before their first start.
const (
	ReasonContainerCreating = "ContainerCreating"
	ReasonPodInitializing   = "PodInitializing"
)

// Of is the pod's status.
func Of(v View) corev1.PodStatus {
	spec := &v.Pod.Spec
	s := *v.Pod.Status.DeepCopy()
	uninitialized := uninitialized(spec.InitContainers, v.Containers)
	s.InitContainerStatuses = collect(spec.InitContainers, v, ReasonPodInitializing)
	waiting := ReasonContainerCreating
	if len(uninitialized) > 0 {
		waiting = ReasonPodInitializing
	}
	s.ContainerStatuses = collect(spec.Containers, v, waiting)

	s.ObservedGeneration = v.Pod.Generation
	s.StartTime = &v.StartTime
	s.HostIP, s.HostIPs = v.HostIP, []corev1.HostIP{{IP: v.HostIP}}
	if v.PodIP != "" {
		s.PodIP, s.PodIPs = v.PodIP, []corev1.PodIP{{IP: v.PodIP}}
	}
	s.Phase = phase(spec, v, s.InitContainerStatuses, s.ContainerStatuses)
	s.Reason, s.Message = v.Reason, v.Message
	setConditions(&s, v, uninitialized)
	return s
}

// Finished reports a pod that will not run any more.
func Finished(s corev1.PodStatus) bool {
	return s.Phase == corev1.PodSucceeded || s.Phase == corev1.PodFailed
}

// Sidecar reports an init container that keeps running beside the others.
func Sidecar(c corev1.Container) bool {
	return c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
}

func collect(containers []corev1.Container, v View, waiting string) []corev1.ContainerStatus {
	var out []corev1.ContainerStatus
	for _, c := range containers {
		cs, ok := v.Containers[c.Name]
		if !ok {
			cs = corev1.ContainerStatus{
				Image: c.Image, Started: new(false),
				State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: waiting}},
			}
		}
		cs.Name = c.Name
		if v.Stopping || v.Ended {
			cs.Ready = false
		}
		out = append(out, cs)
	}
	return out
}

// uninitialized lists the init containers that others still wait for.
func uninitialized(containers []corev1.Container, known map[string]corev1.ContainerStatus) []string {
	var open []string
	for _, c := range containers {
		cs := known[c.Name]
		done := cs.State.Terminated != nil && cs.State.Terminated.ExitCode == 0
		if Sidecar(c) {
			done = cs.Started != nil && *cs.Started || cs.State.Terminated != nil
		}
		if !done {
			open = append(open, c.Name)
		}
	}
	return open
}

// phase follows the kubelet: a container that waits for its restart counts as
// one that has stopped.
func phase(spec *corev1.PodSpec, v View, inits, apps []corev1.ContainerStatus) corev1.PodPhase {
	if v.Reason != "" && v.Ended {
		return corev1.PodFailed
	}
	var waiting, running, stopped, succeeded int
	for _, cs := range apps {
		end := cs.State.Terminated
		switch {
		case cs.State.Running != nil:
			running++
		case end != nil:
			stopped++
		case cs.LastTerminationState.Terminated != nil:
			stopped++
			end = cs.LastTerminationState.Terminated
		default:
			waiting++
		}
		if end != nil && end.ExitCode == 0 {
			succeeded++
		}
	}
	if v.Ended {
		if waiting == 0 && stopped == succeeded {
			return corev1.PodSucceeded
		}
		return corev1.PodFailed
	}
	for i, cs := range inits {
		switch {
		case Sidecar(spec.InitContainers[i]):
			if cs.State.Running == nil && cs.LastTerminationState.Terminated == nil && cs.State.Terminated == nil {
				return corev1.PodPending
			}
		case cs.State.Terminated == nil || cs.State.Terminated.ExitCode != 0:
			return corev1.PodPending
		}
	}
	if waiting > 0 {
		return corev1.PodPending
	}
	return corev1.PodRunning
}

func setConditions(s *corev1.PodStatus, v View, uninitialized []string) {
	set := func(t corev1.PodConditionType, ok bool, reason, message string) {
		c := corev1.PodCondition{Type: t, Status: corev1.ConditionFalse, Reason: reason, Message: message, LastTransitionTime: v.Now, ObservedGeneration: v.Pod.Generation}
		if ok {
			c.Status = corev1.ConditionTrue
		}
		i := slices.IndexFunc(s.Conditions, func(old corev1.PodCondition) bool { return old.Type == t })
		if i < 0 {
			s.Conditions = append(s.Conditions, c)
			return
		}
		if s.Conditions[i].Status == c.Status {
			c.LastTransitionTime = s.Conditions[i].LastTransitionTime
		}
		c.LastProbeTime = s.Conditions[i].LastProbeTime
		s.Conditions[i] = c
	}

	set(corev1.PodReadyToStartContainers, v.Prepared && !v.Ended, "", "")
	if len(uninitialized) > 0 {
		set(corev1.PodInitialized, false, "ContainersNotInitialized", "containers with incomplete status: ["+strings.Join(uninitialized, " ")+"]")
	} else {
		set(corev1.PodInitialized, true, completed(s.Phase), "")
	}

	ready, reason, message := containersReady(s, v)
	set(corev1.ContainersReady, ready, reason, message)
	if ready {
		ready, reason, message = gatesOpen(v.Pod.Spec.ReadinessGates, s.Conditions)
	}
	set(corev1.PodReady, ready, reason, message)
	set(corev1.PodScheduled, true, "", "")
	if v.Reason == "Evicted" {
		set(corev1.DisruptionTarget, true, corev1.PodReasonTerminationByKubelet, v.Message)
	}
}

// completed is the reason that success itself gives to some conditions.
func completed(p corev1.PodPhase) string {
	if p == corev1.PodSucceeded {
		return "PodCompleted"
	}
	return ""
}

func containersReady(s *corev1.PodStatus, v View) (bool, string, string) {
	switch s.Phase {
	case corev1.PodSucceeded:
		return false, "PodCompleted", ""
	case corev1.PodFailed:
		return false, "PodFailed", ""
	}
	var unready []string
	for i, cs := range s.InitContainerStatuses {
		if Sidecar(v.Pod.Spec.InitContainers[i]) && !cs.Ready {
			unready = append(unready, cs.Name)
		}
	}
	for _, cs := range s.ContainerStatuses {
		if !cs.Ready {
			unready = append(unready, cs.Name)
		}
	}
	if len(unready) > 0 {
		return false, "ContainersNotReady", "containers with unready status: [" + strings.Join(unready, " ") + "]"
	}
	return true, "", ""
}

func gatesOpen(gates []corev1.PodReadinessGate, conditions []corev1.PodCondition) (bool, string, string) {
	var closed []string
	for _, g := range gates {
		i := slices.IndexFunc(conditions, func(c corev1.PodCondition) bool { return c.Type == g.ConditionType })
		switch {
		case i < 0:
			closed = append(closed, fmt.Sprintf("corresponding condition of pod readiness gate %q does not exist.", g.ConditionType))
		case conditions[i].Status != corev1.ConditionTrue:
			closed = append(closed, fmt.Sprintf("the status of pod readiness gate %q is not \"True\", but %v", g.ConditionType, conditions[i].Status))
		}
	}
	if len(closed) > 0 {
		return false, "ReadinessGatesNotReady", strings.Join(closed, ", ")
	}
	return true, "", ""
}
