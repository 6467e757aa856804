package node

import corev1 "k8s.io/api/core/v1"

// Kinds whose change a pod wants to hear of.
const (
	kindConfigMap = "ConfigMap"
	kindSecret    = "Secret"
)

// reference names an object that a pod reads.
type reference struct{ kind, namespace, name string }

// references lists the ConfigMaps and Secrets of a pod.
func references(pod *corev1.Pod) map[reference]bool {
	out := map[reference]bool{}
	add := func(kind, name string) { out[reference{kind, pod.Namespace, name}] = true }
	for _, v := range pod.Spec.Volumes {
		if v.ConfigMap != nil {
			add(kindConfigMap, v.ConfigMap.Name)
		}
		if v.Secret != nil {
			add(kindSecret, v.Secret.SecretName)
		}
		if v.Projected == nil {
			continue
		}
		for _, s := range v.Projected.Sources {
			if s.ConfigMap != nil {
				add(kindConfigMap, s.ConfigMap.Name)
			}
			if s.Secret != nil {
				add(kindSecret, s.Secret.Name)
			}
		}
	}
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for _, c := range list {
			for _, from := range c.EnvFrom {
				if from.ConfigMapRef != nil {
					add(kindConfigMap, from.ConfigMapRef.Name)
				}
				if from.SecretRef != nil {
					add(kindSecret, from.SecretRef.Name)
				}
			}
			for _, v := range c.Env {
				if v.ValueFrom != nil && v.ValueFrom.ConfigMapKeyRef != nil {
					add(kindConfigMap, v.ValueFrom.ConfigMapKeyRef.Name)
				}
				if v.ValueFrom != nil && v.ValueFrom.SecretKeyRef != nil {
					add(kindSecret, v.ValueFrom.SecretKeyRef.Name)
				}
			}
		}
	}
	return out
}
