package validation

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/conversion"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/workload"
	"github.com/dynamo-operator/dynamo-operator/internal/core/workload/orchestrator"
)

// Some releases of the original refuse what others admitted. Here that is admitted
// and told.

// newer warns of settings since January that do not do what they say.
func (w *warnings) newer(dgd *v1alpha1.DynamoGraphDeployment, by Orchestration) {
	spec := field.NewPath("spec")
	s := &dgd.Spec
	w.onGrove(by.Provider, spec, map[string]bool{
		"priorityClassName":  s.PriorityClassName != "",
		"topologyConstraint": s.TopologyConstraint != nil,
	})
	w.unread(dgd, spec)
	annotations := field.NewPath("metadata", "annotations")
	w.words(dgd.Annotations, annotations)
	if dgd.Annotations[v1alpha1.AnnotationVolcanoQueue] != "" {
		w.add(annotations.Key(v1alpha1.AnnotationVolcanoQueue), "has no effect; pods are given no queue of Volcano")
	}
	g, err := graph.FromGraphDeployment(dgd, graph.Defaults{Contract: by.Contract})
	if err != nil {
		return // other rules say why
	}
	w.location(g, by.NodeLabels, spec.Child("experimental", "kvTransferPolicy"))
	for _, c := range g.Components {
		at := spec.Child("services").Key(c.Name)
		w.newerComponent(dgd, c, at)
		if mayBeGroves(by.Provider) && !slices.ContainsFunc(g.Adapters, func(a graph.Adapter) bool { return a.Service == c.Name }) {
			w.gang(c, at.Child("minAvailable"))
		}
		w.onGrove(by.Provider, at, map[string]bool{
			"minAvailable":       c.MinAvailable != nil,
			"topologyConstraint": c.PackDomain != "",
			"gpuMemoryService":   c.GPUMemory != nil && c.GPUMemory.Mode == graph.SharingInterPod,
			"failover":           c.Failover != nil && c.Failover.Mode == graph.SharingInterPod,
		})
	}
}

// unread warns of settings that the original's next release reads, and nobody here.
func (w *warnings) unread(dgd *v1alpha1.DynamoGraphDeployment, spec *field.Path) {
	override := func(given *v1alpha1.ProviderOverride, at *field.Path) {
		if given != nil {
			w.add(at.Child("providerOverride"), "has no effect; topologyConstraint says where pods are packed, and extraPodSpec what else is in them")
		}
	}
	override(dgd.Spec.ProviderOverride, spec)
	for name, s := range dgd.Spec.SortedServices() {
		at := spec.Child("services").Key(name)
		override(s.ProviderOverride, at)
		if m := s.Multinode; m != nil {
			for role, of := range map[string]*v1alpha1.MultinodeRole{"leader": m.Leader, "worker": m.Worker} {
				if of != nil {
					override(of.ProviderOverride, at.Child("multinode", role))
				}
			}
		}
	}
	if _, kept := dgd.Annotations[v1alpha1.AnnotationGraphPayload]; !kept {
		return
	}
	beta, _ := conversion.GraphToBeta(dgd)
	for _, c := range beta.Spec.Components {
		if e := c.Experimental; e != nil && e.Grove != nil && e.Grove.ForceScalingGroup {
			at := spec.Child("components").Key(c.Name).Child("experimental", "grove", "forceScalingGroup")
			w.add(at, "has no effect; a component of one node is a clique of its own")
		}
	}
}

// setByServers are labels of nodes that API servers give to pods themselves, since
// Kubernetes 1.35.
var setByServers = []string{corev1.LabelTopologyZone, corev1.LabelTopologyRegion}

// location warns of workers that are to keep to a domain and never learn theirs. Of a
// topology nobody knows here which labels it is made of.
func (w *warnings) location(g *graph.Graph, shown []string, at *field.Path) {
	const why = "workers find no place in the file that they read it from; "
	switch policy := g.KVTransfer; {
	case policy == nil:
	case g.Contract != graph.ContractV1:
		w.add(at, "has no effect; runtimes before 1.0, by whose contract the graph is run, do not know it")
	case shown == nil: // by whom it is run is not known
	case policy.LabelKey == "" && len(shown) == 0:
		w.add(at.Child("clusterTopologyName"), why+"the operator's topology.nodeLabels lists no label of nodes that pods may have")
	case policy.LabelKey != "" && !slices.Contains(slices.Concat(shown, setByServers), policy.LabelKey):
		w.add(at.Child("labelKey"), why+"the operator's topology.nodeLabels does not list "+policy.LabelKey)
	}
}

// onGrove warns of settings that only Grove honours.
func (w *warnings) onGrove(by workload.Provider, at *field.Path, set map[string]bool) {
	if mayBeGroves(by) {
		return
	}
	for name, given := range set {
		if given {
			w.add(at.Child(name), "has no effect; only Grove honours it, and the graph is not run by Grove")
		}
	}
}

// mayBeGroves reports whether a graph is run by Grove, or nobody knows by whom.
func mayBeGroves(by workload.Provider) bool {
	_, owns := orchestrator.ForGraph(by, orchestrator.Settings{}).(workload.PodOwner)
	return owns || by == ""
}

// gang warns of one that Grove does not take. Without replicas it is told to what was
// made, as the number of an adapter is.
func (w *warnings) gang(c graph.Component, at *field.Path) {
	if c.MinAvailable != nil && c.Replicas > 0 && *c.MinAvailable > c.Replicas && c.Contract == graph.ContractV1 {
		w.add(at, fmt.Sprintf("is more than replicas, %d; Grove refuses that, and the graph has no pods", c.Replicas))
	}
}

func (w *warnings) newerComponent(dgd *v1alpha1.DynamoGraphDeployment, c graph.Component, at *field.Path) {
	gms := at.Child("gpuMemoryService")
	if m := c.GPUMemory; m != nil {
		switch {
		case !c.Role.RunsEngine():
			w.add(gms, "has no effect; only workers have weights to share")
		case c.Resources.GPUs == 0 && len(c.Devices) == 0:
			w.add(gms, "the main container has no GPU whose memory could be shared")
		case m.Mode == graph.SharingInterPod && c.Engine != graph.EngineVLLM:
			w.add(gms.Child("mode"), "only vLLM shares memory among pods")
		}
		for _, client := range m.Clients {
			if !hasContainer(c.Pod, client) {
				w.add(gms.Child("extraClientContainers"), fmt.Sprintf("the pod has no container %s", client))
			}
		}
	}
	if f := c.Failover; f != nil {
		here := at.Child("failover")
		switch {
		case c.GPUMemory == nil:
			w.add(here, "needs gpuMemoryService: shadow engines have no memory of their own")
		case c.GPUMemory.Mode != f.Mode:
			w.add(here.Child("mode"), "is another than that of gpuMemoryService")
		case f.Mode == graph.SharingIntraPod && c.DiscoveryMode != graph.DiscoveryModeContainer:
			w.add(here, fmt.Sprintf("engines of one pod are told apart only with annotation %s: %s on the graph", v1alpha1.AnnotationDiscoveryMode, v1alpha1.DiscoveryModeContainer))
		}
	}
	if s := dgd.Spec.Services[c.Name]; c.Failover != nil && s != nil && s.Failover != nil && s.Failover.NumShadows > c.Failover.Shadows {
		w.add(at.Child("failover", "numShadows"), fmt.Sprintf("%d is not used; one engine of a pod stands by, and more only in pods of their own", s.Failover.NumShadows))
	}
	if c.PackDomain != "" && dgd.Spec.TopologyConstraint == nil {
		w.add(at.Child("topologyConstraint"), "has no effect without a topologyConstraint of the graph, which names the topology")
	}
	w.words(c.ObjectAnnotations(), at.Child("annotations"))
}

// words warns of annotations about the runtime that it does not understand.
func (w *warnings) words(annotations map[string]string, at *field.Path) {
	for key, known := range runtimeWords {
		if value := annotations[key]; value != "" && !slices.Contains(known, value) {
			w.add(at.Key(key), fmt.Sprintf("%q is not known and has no effect; known are %v", value, known))
		}
	}
}

// runtimeWords are the values that annotations about the runtime can have.
var runtimeWords = map[string][]string{
	v1alpha1.AnnotationVLLMExecutor:  {string(graph.ExecutorMP), string(graph.ExecutorRay)},
	v1alpha1.AnnotationDiscoveryMode: {string(graph.DiscoveryModePod), string(graph.DiscoveryModeContainer)},
}

func hasContainer(pod *corev1.PodSpec, name string) bool {
	return pod != nil && slices.ContainsFunc(slices.Concat(pod.Containers, pod.InitContainers), func(c corev1.Container) bool { return c.Name == name })
}
