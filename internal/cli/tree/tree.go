// Package tree draws a graph and what runs for it as lines of text.
package tree

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/conversion"
	"github.com/dynamo-operator/dynamo-operator/internal/core/dormancy"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
)

// Lines draws graph → services → pods. Pods may be those of a whole namespace;
// those of other graphs are left out.
func Lines(dgd *v1alpha1.DynamoGraphDeployment, pods []corev1.Pod) []string {
	lines := []string{fmt.Sprintf("%s  %s", dgd.Name, State(dgd))}
	names := conversion.Order(dgd)
	for i, name := range names {
		branch, trunk := "├─", "│ "
		if i == len(names)-1 {
			branch, trunk = "└─", "  "
		}
		lines = append(lines, fmt.Sprintf("%s %s  %s", branch, name, service(dgd.Status.Services, name)))
		mine := PodsOf(dgd.Name, name, pods)
		for j, pod := range mine {
			twig := "├─"
			if j == len(mine)-1 {
				twig = "└─"
			}
			lines = append(lines, fmt.Sprintf("%s  %s %s", trunk, twig, podLine(pod)))
		}
	}
	return lines
}

// Word is what the version that a graph was written as calls its parts.
func Word(dgd *v1alpha1.DynamoGraphDeployment) string {
	if conversion.WrittenAs(dgd) == conversion.Beta {
		return "component"
	}
	return "service"
}

// State is the one word that says most about a graph.
func State(dgd *v1alpha1.DynamoGraphDeployment) string {
	ready := meta.FindStatusCondition(dgd.Status.Conditions, v1alpha1.ConditionReady)
	if ready == nil {
		return "not seen yet"
	}
	if ready.Status == metav1.ConditionTrue {
		if dormancy.Told(dgd.Status.Conditions) == dormancy.Dormant {
			return "asleep"
		}
		return "ready"
	}
	return string(dgd.Status.State)
}

func service(services map[string]v1alpha1.ServiceReplicaStatus, name string) string {
	s, seen := services[name]
	if !seen {
		return "…"
	}
	line := fmt.Sprintf("%s %s  %d/%d ready", s.ComponentKind, s.ComponentName, ptr.Deref(s.ReadyReplicas, 0), s.Replicas)
	if s.Message != "" {
		line += "  (" + s.Message + ")"
	}
	return line
}

// PodsOf are the pods of one service, in the order of their names.
func PodsOf(graph, service string, pods []corev1.Pod) []corev1.Pod {
	var mine []corev1.Pod
	for _, p := range pods {
		if p.Labels[v1alpha1.LabelGraphName] == graph && p.Labels[v1alpha1.LabelComponent] == service {
			mine = append(mine, p)
		}
	}
	slices.SortFunc(mine, func(a, b corev1.Pod) int { return cmp.Compare(a.Name, b.Name) })
	return mine
}

func podLine(p corev1.Pod) string {
	return fmt.Sprintf("%s  %s  %s", p.Name, cmp.Or(p.Spec.NodeName, "no node"), PodState(p))
}

// PodState is the one word that says most about a pod.
func PodState(p corev1.Pod) string {
	if p.DeletionTimestamp != nil {
		return "Terminating"
	}
	for _, s := range p.Status.ContainerStatuses {
		if w := s.State.Waiting; w != nil && w.Reason != "" {
			return w.Reason
		}
	}
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
			return "Ready"
		}
	}
	return string(p.Status.Phase)
}

// GPUs are those that a pod holds: all of its containers' limits, and of init
// containers those that go on running.
func GPUs(pod corev1.Pod) int {
	count := int64(0)
	for _, c := range pod.Spec.Containers {
		count += gpusOf(c.Resources)
	}
	for _, c := range pod.Spec.InitContainers {
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			count += gpusOf(c.Resources)
		}
	}
	return int(count)
}

func gpusOf(r corev1.ResourceRequirements) int64 {
	count := int64(0)
	for name, quantity := range r.Limits {
		if graph.IsGPU(name) {
			count += quantity.Value()
		}
	}
	return count
}

// Ended reports whether a pod is done, and gives back what it was given.
func Ended(pod corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// Holds reports whether a pod has what it was given: it has a node, and has not ended.
func Holds(pod corev1.Pod) bool { return pod.Spec.NodeName != "" && !Ended(pod) }
