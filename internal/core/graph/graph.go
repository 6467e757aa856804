// Package graph is what the user meant: an inference graph as a value that does
// not depend on the version of the API it was written in. Roles and engines are
// types, numbers are parsed, environments are merged. Building one touches nothing and cannot fail on a valid object.
//
// A DynamoComponentDeployment is a graph of one component, so both levels of
// the API share everything that is built on this package.
package graph

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Graph is one inference graph.
type Graph struct {
	Name      string
	Namespace string
	Discovery Discovery
	// Contract is what its runtime is started by, and so how it is rendered.
	Contract Contract
	// Generation is the id of its generation of workers; empty under the seed's
	// contract.
	Generation string
	// Adopted is the digest of workers that were taken over and are in no generation
	// yet; empty for all others.
	Adopted string
	// TakenOver is the generation of the user's object with which it was taken over and
	// which it still is of: workloads that the original made for it keep their pod
	// templates. Empty for all others.
	TakenOver string
	// Paired says that frontends come in generations too, each with those of its workers.
	Paired bool
	// Standalone is true for a component without a graph around it: what a
	// graph's components share has to be made for it alone.
	Standalone bool
	// CliqueSet is the name of the PodCliqueSet that runs it under Grove.
	CliqueSet string
	// Components are in the order of the user's list; those of v1alpha1, which has
	// no order, are sorted by name.
	Components []Component
	Claims     []Claim
	Adapters   []Adapter

	// Labels and Annotations are those of the graph's spec, the lowest layer for
	// every child and pod. Components have them already.
	Labels      map[string]string
	Annotations map[string]string
	// PriorityClass, Topology and UpdateStrategy count for Grove alone.
	PriorityClass  string
	Topology       *Topology
	UpdateStrategy string
	// Serving are the replicas of services that serve, where generations are being
	// exchanged; those of all others do.
	Serving map[string]Serving
	// KVTransfer is within which domain caches are sent.
	KVTransfer *KVTransfer
}

// Serving is what serves of a service while its generations are exchanged.
type Serving struct {
	// Desired is what the graph asks for, Replicas what those generations are told
	// together.
	Desired, Replicas int32
	// Generations are those in which no role is missing, sorted; never none. Others are
	// those that exist beside them.
	Generations, Others []string
}

// NeedsSSH reports whether nodes of a group have to reach each other by SSH.
func (g *Graph) NeedsSSH() bool {
	return slices.ContainsFunc(g.Components, func(c Component) bool {
		return c.Multinode() && c.Engine == EngineTRTLLM
	})
}

// Mounts reports whether a component of the graph mounts a volume claim.
func (g *Graph) Mounts(claim string) bool {
	return slices.ContainsFunc(g.Components, func(c Component) bool {
		return slices.ContainsFunc(c.Mounts, func(m Mount) bool { return m.Claim == claim }) ||
			c.Pod != nil && slices.ContainsFunc(c.Pod.Volumes, func(v corev1.Volume) bool {
				return v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ClaimName == claim
			})
	})
}

// Expected are the claims that a graph finds, rather than has made for it.
func (g *Graph) Expected() []string {
	var names []string
	for _, c := range g.Claims {
		if !c.Create {
			names = append(names, c.Name)
		}
	}
	return names
}

// Picker returns the endpoint picker, if the graph has one.
func (g *Graph) Picker() (Component, bool) {
	at := slices.IndexFunc(g.Components, func(c Component) bool { return c.Role == RoleEPP })
	if at < 0 {
		return Component{}, false
	}
	return g.Components[at], true
}

// Discovery is how components find each other at run time.
type Discovery string

const (
	DiscoveryKubernetes Discovery = "kubernetes"
	DiscoveryEtcd       Discovery = "etcd"
)

// Component is one service of a graph.
type Component struct {
	// Name is the service's key in the user's own spelling.
	Name string
	// ObjectName names the objects made for it.
	ObjectName string
	// CliqueSet is the graph's, and Clique the name of its clique or scaling group
	// in it.
	CliqueSet, Clique string
	Namespace         string
	// Graph is the name of the graph it belongs to; a component that stands
	// alone is a graph of its own name.
	Graph           string
	DynamoNamespace string
	// NamespaceLabel is what pods are labelled with for it, and found by. It is another
	// only for what the original made.
	NamespaceLabel string
	Discovery      Discovery

	Role Role
	// Type and SubType are what the user wrote, kept for labels and for the
	// environment: free text beyond the roles that we know.
	Type    string
	SubType string

	Replicas int32
	// Adapted says that a scaling adapter or a budget decides about Replicas, and not the
	// service's own number.
	Adapted bool
	// Activated says that Main and Pod have an activator before the frontend.
	Activated bool
	// Native says that Main runs our planner in place of the user's.
	Native bool
	Nodes  int32
	Engine Engine
	Model  string

	// Labels and Annotations are the user's, for every object of the component;
	// the Pod ones are for pods alone and win there.
	Labels         map[string]string
	Annotations    map[string]string
	PodLabels      map[string]string
	PodAnnotations map[string]string
	// StartAfter are the components that must be ready before this one is first
	// started, sorted.
	StartAfter []string
	// Metrics says whether the pods are to be scraped.
	Metrics bool

	Env           []corev1.EnvVar
	EnvFromSecret string
	Resources     Resources
	Mounts        []Mount
	SharedMemory  SharedMemory
	Liveness      *corev1.Probe
	Readiness     *corev1.Probe

	Ingress *Ingress
	// Picker is the configuration of a gateway's endpoint picker.
	Picker *Picker

	// Main and Pod are the user's overlays over what we render; Pod holds no
	// main container. Where there is a frontend sidecar, Pod holds its container.
	Main *corev1.Container
	Pod  *corev1.PodSpec

	Runtime
}

// Multinode reports whether one replica spans several nodes.
func (c Component) Multinode() bool { return c.Nodes > 1 }

// Engine is the family of the inference engine that a component runs.
type Engine string

const (
	EngineNone   Engine = ""
	EngineVLLM   Engine = "vllm"
	EngineSGLang Engine = "sglang"
	EngineTRTLLM Engine = "trtllm"
)

// Resources are quantities per resource name, ready for a container.
type Resources struct {
	Requests corev1.ResourceList
	Limits   corev1.ResourceList
	Claims   []corev1.ResourceClaim
	// GPUs is how many of them, of whatever type, one pod has.
	GPUs int
}

// Mount is a claim mounted into the main container.
type Mount struct {
	Claim            string
	Path             string
	CompilationCache bool
}

// Picker is where an endpoint picker finds its configuration: in a ConfigMap of
// the user's, or inline, as JSON that is passed on.
type Picker struct {
	ConfigMap, Key string
	Inline         []byte
}

// Claim is a volume claim that a graph uses.
type Claim struct {
	Name         string
	Create       bool
	StorageClass string
	Size         resource.Quantity
	AccessMode   corev1.PersistentVolumeAccessMode
}

// Adapter is the scaling adapter of a service: its first number of replicas.
type Adapter struct {
	Service    string
	ObjectName string
	Replicas   int32
}

// SharedMemory is the size of /dev/shm; nil means that there is none.
type SharedMemory struct {
	Size *resource.Quantity
}
