package pod

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// PullSecrets maps the host of a registry to the Secrets of a namespace that
// hold credentials for it, sorted.
type PullSecrets map[string][]string

// Registry is the host that an image is pulled from. A first part without a dot
// or a port is not a host but an organisation of the default registry.
func Registry(image string) string {
	first, _, several := strings.Cut(image, "/")
	if !several || (!strings.ContainsAny(first, ".:") && first != "localhost") {
		return "docker.io"
	}
	return NormalRegistry(first)
}

// NormalRegistry gives the one registry that has several names a single one.
func NormalRegistry(host string) string {
	switch host {
	case "index.docker.io", "registry-1.docker.io":
		return "docker.io"
	default:
		return host
	}
}

// addPullSecrets appends the Secrets that the images of a pod need to those
// that the user lists.
func addPullSecrets(s *corev1.PodSpec, known PullSecrets) {
	for _, c := range slices.Concat(s.InitContainers, s.Containers) {
		if c.Image == "" {
			continue
		}
		for _, name := range known[Registry(c.Image)] {
			ref := corev1.LocalObjectReference{Name: name}
			if !slices.Contains(s.ImagePullSecrets, ref) {
				s.ImagePullSecrets = append(s.ImagePullSecrets, ref)
			}
		}
	}
}
