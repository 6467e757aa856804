package graph

import (
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
)

// Where a worker finds out where it is.
const (
	topologyVolume = "topology-labels"
	topologyPath   = "/etc/dynamo/topology"
)

// locate tells a worker within which domain it may send caches, and gives it a file
// with its own place, which is a label of its pod. It is a part of what the graph means:
// what workers were told is compared with that.
func (c *Component) locate(policy *KVTransfer, contract Contract) {
	if policy == nil || contract != ContractV1 || !c.Role.RunsEngine() {
		return
	}
	enforcement := v1alpha1.EnforcementRequired
	if policy.Preferred {
		enforcement = v1alpha1.EnforcementPreferred
	}
	env := []corev1.EnvVar{
		{Name: "DYN_KV_TRANSFER_DOMAIN", Value: policy.Domain},
		{Name: "DYN_KV_TRANSFER_ENFORCEMENT", Value: enforcement},
		{Name: "DYN_TOPOLOGY_ENABLED", Value: "true"},
		{Name: "DYN_TOPOLOGY_MOUNT_PATH", Value: topologyPath},
	}
	if policy.Preferred && policy.Weight != nil {
		env = append(env, corev1.EnvVar{Name: "DYN_KV_TRANSFER_PREFERRED_WEIGHT", Value: strconv.FormatFloat(*policy.Weight, 'f', -1, 64)})
	}
	main, pod := corev1.Container{}, corev1.PodSpec{}
	if c.Main != nil {
		main = *c.Main
	}
	if c.Pod != nil {
		pod = *c.Pod
	}
	main.Env = append(env, main.Env...)
	main.VolumeMounts = append(slices.Clip(main.VolumeMounts), corev1.VolumeMount{Name: topologyVolume, MountPath: topologyPath, ReadOnly: true})
	annotations := map[string]string{}
	maps.Copy(annotations, c.PodAnnotations)
	label := policy.LabelKey
	if label != "" {
		annotations[v1alpha1.AnnotationTopologyLabel] = label
	} else {
		label = v1alpha1.LabelTopologyPrefix + policy.Domain
		annotations[v1alpha1.AnnotationTopologyName] = policy.TopologyName
	}
	source := &corev1.DownwardAPIVolumeSource{Items: []corev1.DownwardAPIVolumeFile{{
		Path: policy.Domain, FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.labels['" + label + "']"},
	}}}
	pod.Volumes = append(slices.Clip(pod.Volumes), corev1.Volume{Name: topologyVolume, VolumeSource: corev1.VolumeSource{DownwardAPI: source}})
	c.Main, c.Pod, c.PodAnnotations = &main, &pod, annotations
}
