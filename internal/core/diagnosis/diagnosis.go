// Package diagnosis finds the first cause of a service that is not ready, from its
// pods and what they need, in terms that a person can act on. The same state gives
// the same message: no restart counts and no times. Whether a service is ready is
// for package workload to say.
package diagnosis

import (
	"cmp"
	"slices"

	"github.com/ai-dynamo/grove/operator/api/common"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	lwsv1 "sigs.k8s.io/lws/api/leaderworkerset/v1"

	"github.com/dynamo-operator/dynamo-operator/internal/core/snapshot"
)

// Cause is one thing that keeps a service from being ready.
type Cause struct {
	Reason  Reason
	Message string
	// Pod, Container and Node are where it shows; empty where it is not a pod
	// that shows it. Workload then says who was refused a pod.
	Pod, Container, Node string
	Workload             string
}

// First is the cause to begin with. None is found if every pod is well.
func First(e snapshot.Evidence) (Cause, bool) {
	all := All(e)
	if len(all) == 0 {
		return Cause{}, false
	}
	return all[0], true
}

// All are the causes, at most one a pod, in the order in which they are worth a
// look.
func All(e snapshot.Evidence) []Cause {
	var all []Cause
	for _, r := range e.Refused {
		all = append(all, refused(r))
	}
	pods := current(e.Pods)
	for _, pod := range pods {
		if c, found := ofPod(pod, pods, e); found {
			c.Pod, c.Node = pod.Name, pod.Spec.NodeName
			all = append(all, c)
		}
	}
	for i := range all {
		// Images, commands and paths of probes are the tenant's words too.
		all[i].Message = clip(all[i].Message)
	}
	slices.SortStableFunc(all, func(a, b Cause) int {
		return cmp.Or(cmp.Compare(a.Reason.rank(), b.Reason.rank()), cmp.Compare(a.Pod, b.Pod), cmp.Compare(a.Workload, b.Workload))
	})
	return all
}

// revisions are the labels by which the kinds of workloads mark which version
// of their template a pod was made from.
var revisions = []string{
	appsv1.DefaultDeploymentUniqueLabelKey,
	lwsv1.RevisionKey,
	common.LabelPodTemplateHash,
}

func revision(pod corev1.Pod) string {
	for _, key := range revisions {
		if value := pod.Labels[key]; value != "" {
			return value
		}
	}
	return ""
}

// current leaves out what is on its way out: pods that end because they are to
// end, and those of an older template. Leaders and workers of a group are made
// from templates of their own, so revisions count by the owner they share. Times
// are whole seconds: of revisions that got pods in the same one, all count.
func current(pods []corev1.Pod) []corev1.Pod {
	newest := map[string]metav1.Time{}
	for _, pod := range pods {
		if last, found := newest[role(pod)]; !found || last.Before(&pod.CreationTimestamp) {
			newest[role(pod)] = pod.CreationTimestamp
		}
	}
	type template struct{ role, revision string }
	latest := map[template]bool{}
	for _, pod := range pods {
		if at := newest[role(pod)]; pod.CreationTimestamp.Equal(&at) {
			latest[template{role(pod), revision(pod)}] = true
		}
	}
	var alive []corev1.Pod
	for _, pod := range pods {
		if pod.DeletionTimestamp != nil && !disrupted(pod) {
			continue
		}
		if latest[template{role(pod), revision(pod)}] {
			alive = append(alive, pod)
		}
	}
	return alive
}

// role tells pods apart that are made from different templates at one time.
func role(pod corev1.Pod) string {
	return cmp.Or(pod.Labels[common.LabelPodClique], pod.Labels[lwsv1.SetNameLabelKey])
}

func disrupted(pod corev1.Pod) bool {
	c := condition(pod, corev1.DisruptionTarget)
	return c != nil && c.Status == corev1.ConditionTrue
}

func condition(pod corev1.Pod, kind corev1.PodConditionType) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == kind {
			return &pod.Status.Conditions[i]
		}
	}
	return nil
}

// ofPod walks through a pod's life and stops at the first thing that is wrong.
func ofPod(pod corev1.Pod, others []corev1.Pod, e snapshot.Evidence) (Cause, bool) {
	if c, found := lost(pod); found {
		return c, true
	}
	if pod.Status.Phase == corev1.PodSucceeded || isTrue(pod, corev1.PodReady) {
		return Cause{}, false
	}
	if pod.Spec.NodeName == "" {
		return unplaced(pod, others, e), true
	}
	return unready(pod, e)
}

func isTrue(pod corev1.Pod, kind corev1.PodConditionType) bool {
	c := condition(pod, kind)
	return c != nil && c.Status == corev1.ConditionTrue
}
