// Package workload is the interface between a graph and the orchestrator that runs
// its pods. Each orchestrator implements Builder in a folder of its own; the
// shapes of foreign kinds stay there.
package workload

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/dynamo-operator/dynamo-operator/internal/core/engine"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/snapshot"
)

// Builder turns the components of a graph into the objects of one orchestrator,
// and reads back how far those objects are.
type Builder interface {
	// Build returns the objects that run the components, in the order in which
	// they are to be made.
	Build(g *graph.Graph, pods Pods) ([]graph.Object, error)
	// Progress reports what the snapshot shows of each component, in the order
	// of the components.
	Progress(g *graph.Graph, s snapshot.Snapshot) []Progress
}

// Pods renders the pod template of a component for a place in its group.
type Pods func(c graph.Component, at engine.Group) (corev1.PodTemplateSpec, error)

// Kind is the kind of object that runs a component's pods.
type Kind string

const (
	KindDeployment            Kind = "Deployment"
	KindLeaderWorkerSet       Kind = "LeaderWorkerSet"
	KindPodClique             Kind = "PodClique"
	KindPodCliqueScalingGroup Kind = "PodCliqueScalingGroup"
)

// Progress is how far a component's workload is.
type Progress struct {
	Kind Kind
	Name string
	// Replicas exist, Updated of them are of the current spec.
	Replicas, Updated int32
	// Ready and Available are nil where the orchestrator does not count them.
	Ready, Available *int32
	// Done is true when the current spec runs in full and nothing of an older
	// one is left. Otherwise Why says what is missing.
	Done bool
	Why  string
	// Waiting are services that have to be ready before this one is started.
	Waiting []string
	// Stuck is true when the workload has made no progress for as long as it is
	// given. Due is when it will be, if nothing moves until then; zero where the
	// orchestrator itself tells.
	Stuck bool
	Due   time.Time
	// Behind are groups that run an older spec until it is their turn.
	Behind []string
	// Seen is what is known of the pods, for whoever asks why.
	Seen snapshot.Evidence
}
