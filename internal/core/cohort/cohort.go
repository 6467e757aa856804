// Package cohort decides which engines go with one that ended. In each replica of a
// scaling group, the engines of a component with a failover between pods are
//
//	          engine 0    engine 1, which stands by
//	rank 0    pod 0       pod 1
//	rank 1    pod 0       pod 1
//
// Those of one number are a cohort: each holds a rank of the same model, and none serves
// without the others. Nothing is started again in its pod, so that the cohort is made anew
// as a whole, and stands by in its turn. Servers of weights belong to no cohort.
package cohort

import (
	"time"

	"github.com/ai-dynamo/grove/operator/api/common"
	grovev1alpha1 "github.com/ai-dynamo/grove/operator/api/core/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
)

// pause is how old the engines of a cohort are at least when they are deleted: what ends
// as soon as it starts is not made over and over without one.
const pause = 30 * time.Second

// labelEngine is the number of a pod in its clique. Releases of Grove set it that are newer
// than our module for its API, which has no constant.
var labelEngine = grovev1alpha1.SchemeGroupVersion.Group + "/podclique-pod-index"

// marks are the labels that the pods of a cohort have in common.
var marks = []string{
	v1alpha1.LabelGraphName, v1alpha1.LabelComponent, v1alpha1.LabelEngineGroup,
	common.LabelPodCliqueScalingGroup, common.LabelPodCliqueScalingGroupReplicaIndex, labelEngine,
}

// Of is what tells the cohort of an engine from others of its namespace; false for pods
// that belong to none.
func Of(pod *corev1.Pod) (map[string]string, bool) {
	owner := metav1.GetControllerOf(pod)
	if owner == nil || owner.Kind != "PodClique" || pod.Labels[v1alpha1.LabelEngineGroup] != "true" {
		return nil, false
	}
	if group, err := schema.ParseGroupVersion(owner.APIVersion); err != nil || group.Group != grovev1alpha1.SchemeGroupVersion.Group {
		return nil, false
	}
	labels := map[string]string{}
	for _, mark := range marks {
		if labels[mark] = pod.Labels[mark]; labels[mark] == "" {
			return nil, false
		}
	}
	return labels, true
}

// Ended reports whether an engine of a cohort has, and is still there.
func Ended(pod *corev1.Pod) bool {
	_, member := Of(pod)
	return member && pod.DeletionTimestamp == nil && (pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded)
}

// Lost are the pods of a cohort to be deleted, if one of them has ended: that one last, so
// that who stops in between finds it again. If it is too early, it says how long to wait.
func Lost(pods []corev1.Pod, now time.Time) (lost []*corev1.Pod, wait time.Duration) {
	var ended []*corev1.Pod
	var newest time.Time
	for i := range pods {
		pod := &pods[i]
		if _, member := Of(pod); !member || pod.DeletionTimestamp != nil {
			continue
		}
		if created := pod.CreationTimestamp.Time; created.After(newest) {
			newest = created
		}
		if Ended(pod) {
			ended = append(ended, pod)
		} else {
			lost = append(lost, pod)
		}
	}
	if len(ended) == 0 {
		return nil, 0
	}
	if wait := newest.Add(pause).Sub(now); wait > 0 {
		return nil, min(wait, pause)
	}
	return append(lost, ended...), 0
}
