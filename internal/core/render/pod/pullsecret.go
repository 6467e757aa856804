package pod

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/dynamo-operator/dynamo-operator/internal/core/snapshot"
)

// addPullSecrets appends the Secrets that the images of a pod need to those
// that the user lists.
func addPullSecrets(s *corev1.PodSpec, known snapshot.PullSecrets) {
	s.ImagePullSecrets = slices.Clip(s.ImagePullSecrets)
	for _, c := range slices.Concat(s.InitContainers, s.Containers) {
		if c.Image == "" {
			continue
		}
		for _, name := range known[snapshot.Registry(c.Image)] {
			ref := corev1.LocalObjectReference{Name: name}
			if !slices.Contains(s.ImagePullSecrets, ref) {
				s.ImagePullSecrets = append(s.ImagePullSecrets, ref)
			}
		}
	}
}
