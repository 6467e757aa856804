package snapshot

import "strings"

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
