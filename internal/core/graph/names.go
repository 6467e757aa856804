package graph

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"
)

// maxLabel is the length of a DNS label, and of a label value.
const maxLabel = 63

// ComponentName names every object made for one service of a graph: its
// component, workload, Ingress and scaling adapter. Its Service has a name of its own.
func ComponentName(graph, service string) string {
	return shorten(graph + "-" + strings.ToLower(service))
}

// GenerationName names every object made for one service of a graph in a later
// generation of its workers. The first has plain names.
func GenerationName(graph, service, generation string) string {
	return suffixed(graph+"-"+strings.ToLower(service), "-"+generation, maxLabel)
}

// maxGroupName leaves a LeaderWorkerSet room for what its controller and that of
// StatefulSets append: the workers of a set are a StatefulSet <set>-0, whose pods
// carry the label controller-revision-hash=<set>-0-<hash>, and a hash has up to
// ten digits. Without that label there are no workers.
const maxGroupName = maxLabel - len("-0") - len("-4294967295")

// GroupName names the LeaderWorkerSet and the PodGroup of replica i of a component
// that spans nodes. A LeaderWorkerSet has a Service of its name, which knows no dots.
func GroupName(component string, i int32) string {
	return suffixed(serviceName(component), "-"+strconv.Itoa(int(i)), maxGroupName)
}

// Grove names pods by their PodCliqueSet, scaling group and clique, and refuses a
// set in which those names are longer together than maxCliqueNames. The set's is
// shortened first, down to minCliqueSet.
const (
	maxCliqueNames = 45
	minCliqueSet   = 8
)

// Cliques of a component that spans nodes are in a scaling group of its name.
const (
	leaderSuffix = "-ldr"
	workerSuffix = "-wkr"
)

// LeaderClique and WorkerClique name the cliques of a component that spans nodes.
func (c Component) LeaderClique() string { return c.Clique + leaderSuffix }

// WorkerClique is the other of the two.
func (c Component) WorkerClique() string { return c.Clique + workerSuffix }

// nameCliques names what Grove runs a graph by. Names that fit are those of the
// graph and its services, so that names of existing objects never change; a set
// cannot get or lose cliques, so neither do the others while it exists.
func (g *Graph) nameCliques() {
	longest := 0
	for i := range g.Components {
		g.Components[i].Clique = strings.ToLower(g.Components[i].Name)
		longest = max(longest, g.Components[i].cliqueNames())
	}
	g.CliqueSet = cliqueSet(g.Name, max(maxCliqueNames-longest, minCliqueSet))
	room := maxCliqueNames - len(g.CliqueSet)
	for i := range g.Components {
		c := &g.Components[i]
		c.CliqueSet = g.CliqueSet
		switch {
		case c.cliqueNames() <= room:
		case c.Multinode() || c.SharesAcrossPods():
			c.Clique = suffixed(c.Clique, "", (room-(c.cliqueNames()-2*len(c.Clique)))/2)
		default:
			c.Clique = suffixed(c.Clique, "", room)
		}
	}
}

// GenerationSet names the PodCliqueSet of a graph's workers in a later generation; the
// first is in the graph's own. The name is empty where there is no room for it beside
// those of the workers' cliques.
func (g *Graph) GenerationSet(generation string) string {
	longest := 0
	for _, c := range g.Components {
		if c.Role.RunsEngine() {
			longest = max(longest, c.cliqueNames())
		}
	}
	room := maxCliqueNames - longest - len("-"+generation)
	if room < minCliqueSet {
		return ""
	}
	return cliqueSet(strings.ReplaceAll(g.Name, ".", "-"), room) + "-" + generation
}

// cliqueNames is how long the names of a component's scaling group and longest
// clique are together.
func (c Component) cliqueNames() int {
	switch {
	case c.SharesAcrossPods():
		return 2*len(c.Clique) + len("-gms-") + len(strconv.Itoa(int(c.Nodes)-1))
	case c.Multinode():
		return len(c.Clique) + len(c.LeaderClique())
	default:
		return len(c.Clique)
	}
}

// cliqueSet shortens a name as later versions of the original operator do, so that
// what runs under it can be taken over.
func cliqueSet(graph string, room int) string {
	if len(graph) <= room {
		return graph
	}
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(graph)) // a hash takes everything
	tail := fmt.Sprintf("-%04x", uint16(hash.Sum32()))
	return graph[:room-len(tail)] + tail
}

// globalNamespace is the Dynamo namespace that graphs can share.
const globalNamespace = "dynamo"

// DynamoNamespace is the runtime's own name space of a graph. It is a label
// value, so it is shortened like a name.
func DynamoNamespace(namespace, graph string, global bool) string {
	if global {
		return globalNamespace
	}
	return shorten(namespace + "-" + strings.ReplaceAll(graph, ".", "-"))
}

// ServiceName names the Service of one service of a graph, where it is found.
func ServiceName(graph, service string) string { return serviceName(ComponentName(graph, service)) }

// serviceName names the Service of a component: a Service knows no dots.
func serviceName(object string) string { return strings.ReplaceAll(object, ".", "-") }

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

// ActivationName names the Lease by which a graph that scales to zero is woken, and the
// account, Role and RoleBinding behind it.
func ActivationName(graph string) string { return suffixed(graph, "-activation", maxName) }

// RevisionName names the ControllerRevision of a graph's spec by a hash of that.
func RevisionName(graph, hash string) string { return suffixed(graph, "-"+hash, maxName) }

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

// RoutePolicy names the NetworkPolicy over others that are reached by a route.
func RoutePolicy(graph string) string { return suffixed(graph, "-routes", maxName) }

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

// LabelValue is a name as far as a label has room for it.
func LabelValue(name string) string { return shorten(name) }

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

// WaitScript names the ConfigMap with the script by which the workers of a graph's
// groups wait for their leaders.
func WaitScript(graph string) string { return suffixed(graph, "-wait-leader-script", maxName) }

// DeviceTemplate names the template of the claims by which pods of a component get
// the GPUs whose memory they share.
func DeviceTemplate(graph, component string) string {
	return suffixed(graph+"-"+strings.ToLower(component), "-gpu", maxName)
}
