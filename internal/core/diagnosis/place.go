package diagnosis

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/ai-dynamo/grove/operator/api/common"
	corev1 "k8s.io/api/core/v1"
	lwsv1 "sigs.k8s.io/lws/api/leaderworkerset/v1"

	"github.com/dynamo-operator/dynamo-operator/internal/core/snapshot"
)

var (
	verdict      = regexp.MustCompile(`^(\d+)/(\d+) nodes are available: (.*)$`)
	claimMissing = regexp.MustCompile(`persistentvolumeclaim "([^"]+)" not found`)
	lacking      = regexp.MustCompile(`Insufficient ([^\s,]+)`)
	// roomless is how schedulers say it that put no count of nodes first: kube-scheduler
	// without any node, Volcano and KAI. Groups that wait for their pods are not meant.
	roomless = regexp.MustCompile(`(?i)no nodes available to schedule|nodes are unavailable: |no nodes with enough resources|resources were not found for pod`)
)

const unbound = "unbound immediate PersistentVolumeClaims"

// lost reads whether a pod that had a place was taken from it.
func lost(pod corev1.Pod) (Cause, bool) {
	if c := condition(pod, corev1.DisruptionTarget); c != nil && c.Status == corev1.ConditionTrue {
		switch c.Reason {
		case corev1.PodReasonPreemptionByScheduler:
			return Cause{Reason: Preempted, Message: fmt.Sprintf("a pod of higher priority took its place on node %s", pod.Spec.NodeName)}, true
		case "DeletionByTaintManager":
			return nodeLost(pod), true
		}
	}
	if pod.Status.Phase == corev1.PodFailed {
		return failed(pod)
	}
	// A node that does not answer leaves the containers as they were last seen;
	// what the cluster then changes is the pod's own readiness.
	ready, containers := condition(pod, corev1.PodReady), condition(pod, corev1.ContainersReady)
	if ready != nil && ready.Status == corev1.ConditionFalse && containers != nil && containers.Status == corev1.ConditionTrue &&
		len(pod.Spec.ReadinessGates) == 0 && pod.DeletionTimestamp == nil {
		return nodeLost(pod), true
	}
	return Cause{}, false
}

func nodeLost(pod corev1.Pod) Cause {
	return Cause{Reason: NodeLost, Message: fmt.Sprintf("node %s does not answer", pod.Spec.NodeName)}
}

// failed reads a pod that its node gave up; its workload makes another.
func failed(pod corev1.Pod) (Cause, bool) {
	message := strings.TrimSpace(pod.Status.Message)
	switch pod.Status.Reason {
	case "":
		return Cause{}, false // its containers tell
	case "NodeLost":
		return nodeLost(pod), true
	case "Evicted":
		first, _, _ := strings.Cut(message, ". ") // what follows are figures
		return Cause{Reason: Evicted, Message: clip("its node evicted the pod: " + cmp.Or(strings.TrimSuffix(first, "."), "no reason given"))}, true
	default:
		return Cause{Reason: NodeRefused, Message: clip(fmt.Sprintf("its node refused the pod (%s): %s", pod.Status.Reason, message))}, true
	}
}

// unplaced reads why a pod has no node.
func unplaced(pod corev1.Pod, others []corev1.Pod, e snapshot.Evidence) Cause {
	c := condition(pod, corev1.PodScheduled)
	if c == nil || c.Status != corev1.ConditionFalse {
		return Cause{Reason: Starting, Message: "waits for a node"}
	}
	if c.Reason == corev1.PodReasonSchedulingGated {
		return Cause{Reason: Starting, Message: "waits until its scheduling gates are lifted"}
	}
	if m := claimMissing.FindStringSubmatch(c.Message); m != nil {
		return Cause{Reason: ClaimNotFound, Message: fmt.Sprintf("PersistentVolumeClaim %s does not exist", m[1])}
	}
	if strings.Contains(c.Message, unbound) {
		return unboundClaim(pod, e.Unbound)
	}
	why := scheduler(pod, c.Message)
	if group := gangOf(pod); group != "" {
		if short, size := shortage(group, others); size > 1 {
			return Cause{Reason: GangIncomplete, Message: clip(fmt.Sprintf("group %s is short by %d of %d pods: each %s", group, short, size, why))}
		}
	}
	return Cause{Reason: Unschedulable, Message: clip(why)}
}

// unboundClaim picks the first claim of a pod that has no volume.
func unboundClaim(pod corev1.Pod, claims []snapshot.Claim) Cause {
	for _, v := range pod.Spec.Volumes {
		if v.PersistentVolumeClaim == nil {
			continue
		}
		i := slices.IndexFunc(claims, func(c snapshot.Claim) bool { return c.Name == v.PersistentVolumeClaim.ClaimName })
		if i < 0 {
			continue
		}
		switch claim := claims[i]; {
		case claim.ClassAbsent:
			return Cause{Reason: StorageClassNotFound, Message: fmt.Sprintf(
				"PersistentVolumeClaim %s asks for StorageClass %s, which does not exist", claim.Name, claim.Class)}
		case claim.Class == "":
			return Cause{Reason: ClaimNotBound, Message: fmt.Sprintf(
				"PersistentVolumeClaim %s has no volume and names no StorageClass to make one", claim.Name)}
		default:
			return Cause{Reason: ClaimNotBound, Message: fmt.Sprintf(
				"PersistentVolumeClaim %s has no volume: StorageClass %s made none yet", claim.Name, claim.Class)}
		}
	}
	return Cause{Reason: ClaimNotBound, Message: "a PersistentVolumeClaim of the pod has no volume"}
}

// NoRoom reports whether a message of ours is that no node has room for a pod. Who reads a
// status has its words alone.
func NoRoom(message string) bool { return strings.Contains(message, fit) }

// fit is what all that scheduler says of nodes without room has in it.
const fit = " nodes fit: "

// scheduler puts what the scheduler says into fewer words: what is needed, how
// many nodes fit, why the others do not.
func scheduler(pod corev1.Pod, message string) string {
	m := verdict.FindStringSubmatch(strings.TrimSpace(message))
	if m == nil {
		text := strings.TrimSuffix(strings.TrimSpace(message), ".")
		if roomless.MatchString(text) {
			return "no" + fit + text
		}
		return text
	}
	why, _, _ := strings.Cut(m[3], ". ") // what follows is about preemption
	text := fmt.Sprintf("%s of %s"+fit+"%s", m[1], m[2], strings.TrimSuffix(why, "."))
	var needs []string
	for _, found := range lacking.FindAllStringSubmatch(why, -1) {
		name := corev1.ResourceName(strings.TrimSuffix(found[1], "."))
		if q, asked := requests(pod)[name]; asked {
			needs = append(needs, q+" "+string(name))
		}
	}
	if len(needs) == 0 {
		return text
	}
	return fmt.Sprintf("needs %s; %s", strings.Join(needs, ", "), text)
}

// requests sums what the containers of a pod ask for.
func requests(pod corev1.Pod) map[corev1.ResourceName]string {
	sum := corev1.ResourceList{}
	for _, c := range pod.Spec.Containers {
		for name, q := range c.Resources.Requests {
			total := sum[name]
			total.Add(q)
			sum[name] = total
		}
	}
	text := map[corev1.ResourceName]string{}
	for name, q := range sum {
		text[name] = q.String()
	}
	return text
}

// gangOf names the group of pods that a pod is useless without.
func gangOf(pod corev1.Pod) string {
	switch {
	case pod.Labels[lwsv1.SetNameLabelKey] != "":
		return pod.Labels[lwsv1.SetNameLabelKey]
	case pod.Labels[common.LabelPodCliqueScalingGroup] != "":
		return pod.Labels[common.LabelPodCliqueScalingGroup] + "-" + cmp.Or(pod.Labels[common.LabelPodCliqueScalingGroupReplicaIndex], "0")
	default:
		return ""
	}
}

// shortage counts the pods of a group that have no place, made or not.
func shortage(group string, pods []corev1.Pod) (short, size int) {
	seen := 0
	for _, pod := range pods {
		if gangOf(pod) != group || pod.DeletionTimestamp != nil {
			continue
		}
		seen++
		if pod.Spec.NodeName == "" {
			short++
		}
		if n, err := strconv.Atoi(pod.Annotations[lwsv1.SizeAnnotationKey]); err == nil {
			size = max(size, n)
		}
	}
	size = max(size, seen)
	return short + size - seen, size
}
