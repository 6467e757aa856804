package graph

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Runtime is what the contract of 1.x runtimes asks of a component beyond that of
// the seed, under which none of it has an effect.
type Runtime struct {
	Contract Contract
	// Generation is the id of the generation of workers that the component belongs
	// to; empty for components that are no workers, unless they are frontends of a paired
	// graph.
	Generation string
	// Adopted says that the workers of its graph were taken over and are in no
	// generation yet.
	Adopted bool
	// RuntimeNamespace is the Dynamo namespace that its pods register in: that of
	// its generation, if it has one.
	RuntimeNamespace string
	// ServiceName names its Service, which knows no dots.
	ServiceName string
	// Class is set on workers of a graph that has an endpoint picker.
	Class string

	// FrontendSidecar names the container of Pod that is a frontend for this
	// component alone; empty if there is none.
	FrontendSidecar string
	GPUMemory       *GPUMemory
	Failover        *Failover
	// Checkpoint is nil unless it is enabled.
	Checkpoint *Checkpoint
	// PackDomain is the level of the graph's topology within which the pods of a
	// replica are; empty for none of its own.
	PackDomain string
	// MinAvailable is how many replicas a gang needs to start.
	MinAvailable *int32
	// Version is the user's word for the version of the runtime in the image.
	Version string
	// Devices are what the main container claims by dynamic resource allocation.
	Devices []DeviceClaim
	// Executor is how the nodes of a vLLM group are joined.
	Executor Executor
	// DiscoveryMode is what registers; empty where the user does not say.
	DiscoveryMode DiscoveryMode
}

// Executor is how the nodes of a vLLM group are joined.
type Executor string

const (
	ExecutorMP  Executor = "mp"
	ExecutorRay Executor = "ray"
)

// DiscoveryMode is what registers where components find each other by Kubernetes.
type DiscoveryMode string

const (
	DiscoveryModePod       DiscoveryMode = "pod"
	DiscoveryModeContainer DiscoveryMode = "container"
)

// SharingMode is where the engines are that share GPU memory.
type SharingMode string

const (
	SharingIntraPod SharingMode = "IntraPod"
	SharingInterPod SharingMode = "InterPod"
)

// GPUMemory shares the weights in GPU memory among engines.
type GPUMemory struct {
	Mode        SharingMode
	DeviceClass string
	// Clients are further containers of the pod that use the memory.
	Clients []string
}

// Failover keeps shadow engines ready.
type Failover struct {
	Mode    SharingMode
	Shadows int32
}

// Checkpoint is the user's wish to start pods from a snapshot. Nothing captures
// one, so they start cold.
type Checkpoint struct {
	// Ref names a DynamoCheckpoint; empty asks for one to be made.
	Ref string
	// Wait asks that no pod starts before there is one.
	Wait bool
}

// Topology packs a graph into a domain of a cluster topology.
type Topology struct {
	Name string
	// Domain is a level of it; empty leaves that to the components.
	Domain string
}

// KVTransfer is within which domain KV caches are sent.
type KVTransfer struct {
	// LabelKey is the label of nodes that holds the domain, or else TopologyName the
	// topology that knows it.
	LabelKey, TopologyName string
	Domain                 string
	// Preferred is false where the domain is required.
	Preferred bool
	// Weight of the preference.
	Weight *float64
}

// DeviceClaim is a claim to devices: a template that one is made from for each pod,
// or one that exists.
type DeviceClaim struct {
	// Name is the pod's for it, and Request the part of it that the container uses;
	// empty for all.
	Name, Request string
	// Template or Claim is the name of the object.
	Template, Claim string
}

// deviceClaims are those of a pod that one of its containers uses.
func deviceClaims(pod *corev1.PodSpec, used []corev1.ResourceClaim) []DeviceClaim {
	if pod == nil {
		return nil
	}
	var claims []DeviceClaim
	for _, u := range used {
		at := slices.IndexFunc(pod.ResourceClaims, func(c corev1.PodResourceClaim) bool { return c.Name == u.Name })
		if at < 0 {
			continue
		}
		c := pod.ResourceClaims[at]
		claims = append(claims, DeviceClaim{
			Name: u.Name, Request: u.Request,
			Template: deref(c.ResourceClaimTemplateName, ""), Claim: deref(c.ResourceClaimName, ""),
		})
	}
	return claims
}

// Waits reports whether workers of a group have to wait for their leader.
func (g *Graph) Waits() bool {
	return slices.ContainsFunc(g.Components, func(c Component) bool {
		return c.Multinode() && c.Engine == EngineVLLM && c.Executor == ExecutorMP
	})
}

// SharesMemory reports whether a component shares the memory of GPUs, within its pods or
// among them. Only engines have weights to share.
func (c Component) SharesMemory() bool {
	return c.Contract == ContractV1 && c.GPUMemory != nil && c.Role.RunsEngine()
}

// SharesWithinPods reports whether containers of a pod share it with each other.
func (c Component) SharesWithinPods() bool {
	return c.SharesMemory() && c.GPUMemory.Mode == SharingIntraPod
}

// SharesAcrossPods reports whether pods do, which only Grove can arrange.
func (c Component) SharesAcrossPods() bool {
	return c.SharesMemory() && c.GPUMemory.Mode == SharingInterPod
}
