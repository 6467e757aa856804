package graph

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// maxLabel is the length of a DNS label, and of a label value.
const maxLabel = 63

// ComponentName names every object made for one service of a graph: its
// component, workload, Service, Ingress and scaling adapter.
func ComponentName(graph, service string) string {
	return shorten(graph + "-" + strings.ToLower(service))
}

// DynamoNamespace is the runtime's own name space of a graph. It is a label
// value, so it is shortened like a name.
func DynamoNamespace(namespace, graph string, global bool) string {
	if global {
		return "dynamo"
	}
	return shorten(namespace + "-" + graph)
}

// DiscoveryAccount names the ServiceAccount that pods of a graph use to find
// each other; its Role and RoleBinding derive from it.
func DiscoveryAccount(graph string) string {
	return suffixed(graph, "-k8s-service-discovery", maxName)
}

// DiscoveryRole names the Role behind DiscoveryAccount.
func DiscoveryRole(graph string) string {
	return suffixed(graph, "-k8s-service-discovery-role", maxName)
}

// DiscoveryBinding names the RoleBinding behind DiscoveryAccount.
func DiscoveryBinding(graph string) string {
	return suffixed(graph, "-k8s-service-discovery-binding", maxName)
}

// PickerConfigKey is the key, and the file, of an endpoint picker's configuration.
const PickerConfigKey = "epp-config-dynamo.yaml"

// PickerConfigMap names the ConfigMap of an inline picker configuration.
func PickerConfigMap(graph string) string { return suffixed(graph, "-epp-config", maxName) }

// PickerPool names the InferencePool behind a graph's endpoint picker.
func PickerPool(graph string) string { return suffixed(graph, "-pool", maxName) }

// InsidePolicy names the NetworkPolicy over all pods of a graph.
func InsidePolicy(graph string) string { return suffixed(graph, "-inside", maxName) }

// DoorPolicy names the NetworkPolicy over those that serve others.
func DoorPolicy(graph string) string { return suffixed(graph, "-doors", maxName) }

// ModelHash is the label value by which endpoints of a base model are found.
func ModelHash(model string) string {
	return digest(model)
}

// ModelService names the headless Service over all endpoints of a base model.
func ModelService(model string) string {
	return "dynamo-model-" + ModelHash(model)
}

// maxName is the length of an object name that is a DNS subdomain.
const maxName = 253

// shorten keeps a name that fits, so that names of existing objects never
// change, and replaces the tail of one that does not by a digest of the whole.
func shorten(name string) string {
	return suffixed(name, "", maxLabel)
}

func suffixed(stem, suffix string, limit int) string {
	if len(stem)+len(suffix) <= limit {
		return stem + suffix
	}
	tail := "-" + digest(stem) + suffix
	return strings.TrimRight(stem[:limit-len(tail)], "-.") + tail
}

func digest(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:4])
}
