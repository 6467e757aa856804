// Package orchestrator chooses the builder of a graph by its provider, and that of
// a component by its size. Nothing else compares providers: what one can do and
// another cannot is an interface of package workload.
package orchestrator

import (
	"time"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/contract"
	"github.com/dynamo-operator/dynamo-operator/internal/core/fault"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/snapshot"
	"github.com/dynamo-operator/dynamo-operator/internal/core/workload"
	"github.com/dynamo-operator/dynamo-operator/internal/core/workload/component"
	"github.com/dynamo-operator/dynamo-operator/internal/core/workload/deployment"
	"github.com/dynamo-operator/dynamo-operator/internal/core/workload/grove"
	"github.com/dynamo-operator/dynamo-operator/internal/core/workload/lws"
)

// providers are all that there are.
var providers = []workload.Provider{workload.ProviderComponent, workload.ProviderGrove}

// Settings are what builders of graphs depend on beside the graph; each takes
// what it needs.
type Settings struct {
	// Graph is the object that components are carried over from.
	Graph    *v1alpha1.DynamoGraphDeployment
	Defaults graph.Defaults
	// TerminationDelay is how long a gang may be short of pods.
	TerminationDelay time.Duration
	// Queue is the KAI queue of the graph; empty without KAI.
	Queue string
	// Deadline is how long pods may make no progress.
	Deadline time.Duration
	// Generations has workers come in those.
	Generations bool
}

// ForGraph is what runs a graph under a provider.
func ForGraph(p workload.Provider, s Settings) workload.GraphBuilder {
	switch p {
	case workload.ProviderGrove:
		return grove.Builder{
			TerminationDelay: s.TerminationDelay, Queue: s.Queue, Deadline: s.Deadline,
			Graph: s.Graph, Defaults: s.Defaults, Generations: s.Generations,
		}
	default:
		return component.Builder{Graph: s.Graph, Defaults: s.Defaults}
	}
}

// ForComponent is what runs a component: a Deployment if it fits on one node,
// LeaderWorkerSets in gangs if it does not.
func ForComponent(c graph.Component, have snapshot.Capabilities, deadline time.Duration) (workload.Builder, error) {
	if !c.Multinode() {
		return deployment.Builder{Deadline: deadline}, nil
	}
	gang := snapshot.APIVolcano
	if contract.Of(c.Contract).Groups.OneSet {
		gang = snapshot.APILeaderWorkerSet // nothing else places its pods
	}
	if have.All(snapshot.APILeaderWorkerSet, gang) {
		return lws.Builder{Deadline: deadline}, nil
	}
	return nil, fault.New(fault.Unsupported, v1alpha1.ReasonOrchestratorUnavailable,
		"service %s spans %d nodes; install LeaderWorkerSet with Volcano, or Grove", c.Name, c.Nodes)
}

// Running is the provider that a graph's children show; empty if there are none.
func Running(s snapshot.Snapshot) workload.Provider {
	for _, object := range s.Owned {
		if p, _, found := maker(object); found {
			return p
		}
	}
	return ""
}

// Elsewhere are the objects of a graph's children that other providers run it by.
func Elsewhere(p workload.Provider, s snapshot.Snapshot) []graph.Ref {
	var refs []graph.Ref
	for _, object := range s.Owned {
		if by, ref, found := maker(object); found && by != p {
			refs = append(refs, ref)
		}
	}
	return refs
}

func maker(object graph.Object) (workload.Provider, graph.Ref, bool) {
	for _, p := range providers {
		if ref, made := ForGraph(p, Settings{}).Made(object); made {
			return p, ref, true
		}
	}
	return "", graph.Ref{}, false
}

// OwnsPod reports whether a pod belongs to a graph itself rather than to one of
// its components, by its labels.
func OwnsPod(labels map[string]string) bool {
	for _, p := range providers {
		if owner, ok := ForGraph(p, Settings{}).(workload.PodOwner); ok && owner.OwnsPod(labels) {
			return true
		}
	}
	return false
}
