// Package topologylabel decides which labels of its node a pod is given. A graph with a
// policy for transfers of KV caches has its workers read their place from a label of
// their pod; where that comes from an annotation of the pod says.
package topologylabel

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/guard"
)

// Annotations are those by which a pod asks.
var Annotations = []string{v1alpha1.AnnotationTopologyLabel, v1alpha1.AnnotationTopologyName}

// Shown keeps labels of nodes that the installation does not list from pods: whoever
// writes a pod chooses what it asks for.
const Shown guard.Guard = "node-labels"

// Level is a domain of a topology, and the label of nodes that holds it.
type Level struct{ Domain, Key string }

// Asks reports whether a pod that has a node asks for labels of it, and of which
// topology; none if it names a label.
func Asks(pod *corev1.Pod) (topology string, asks bool) {
	if pod.Spec.NodeName == "" || pod.DeletionTimestamp != nil {
		return "", false
	}
	topology = pod.Annotations[v1alpha1.AnnotationTopologyName]
	return topology, topology != "" || pod.Annotations[v1alpha1.AnnotationTopologyLabel] != ""
}

// Missing are the labels that a pod asks for, does not have, and may have of its node.
// What the pod has stays: API servers set some of them, and selectors use others.
func Missing(pod *corev1.Pod, node map[string]string, levels []Level, shown []string) map[string]string {
	missing := map[string]string{}
	add := func(label, key string) {
		value, known := node[key]
		_, has := pod.Labels[label]
		if known && !has && (slices.Contains(shown, key) || Shown.Off()) {
			missing[label] = value
		}
	}
	if key := pod.Annotations[v1alpha1.AnnotationTopologyLabel]; key != "" {
		add(key, key)
	}
	for _, level := range levels {
		add(v1alpha1.LabelTopologyPrefix+level.Domain, level.Key)
	}
	return missing
}
