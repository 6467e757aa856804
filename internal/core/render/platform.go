package render

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/engine"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/render/pod"
	"github.com/dynamo-operator/dynamo-operator/internal/core/snapshot"
	"github.com/dynamo-operator/dynamo-operator/internal/core/workload"
	"github.com/dynamo-operator/dynamo-operator/internal/core/workload/orchestrator"
)

// Platform is everything beside the graph that its objects depend on: the
// operator's configuration, and facts about the cluster and the namespace.
type Platform struct {
	Defaults              graph.Defaults
	Pod                   pod.Platform
	Roles                 Roles
	GroveTerminationDelay time.Duration
	// ProgressDeadline is how long a workload may make no progress.
	ProgressDeadline time.Duration
	// Generations has workers come in those.
	Generations bool
	// DisruptionBudgets has evictions leave what rollouts have to, for graphs that do not
	// say whether they want that.
	DisruptionBudgets bool
	// NetworkPolicy closes graphs to others; nil leaves that to the cluster.
	NetworkPolicy *NetworkPolicy
	// Activator is the image of what holds requests while a graph wakes; empty where no
	// graph may scale to zero.
	Activator string
	// Queue is the KAI queue of the graph; empty without KAI.
	Queue        string
	Capabilities snapshot.Capabilities
}

// GraphBuilder is what runs a graph under a provider.
func (p Platform) GraphBuilder(dgd *v1alpha1.DynamoGraphDeployment, provider workload.Provider) workload.GraphBuilder {
	return orchestrator.ForGraph(provider, orchestrator.Settings{
		Graph: dgd, Defaults: p.Defaults, TerminationDelay: p.GroveTerminationDelay, Queue: p.Queue, Deadline: p.ProgressDeadline,
		Generations: p.Generations,
	})
}

// pods renders templates for a platform.
func pods(p Platform) workload.Pods {
	return func(c graph.Component, at engine.Group) (corev1.PodTemplateSpec, error) {
		return pod.Template(c, at, p.Pod)
	}
}
