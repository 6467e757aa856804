// Package workload is the seam between a component and the orchestrator that
// runs its pods. Each orchestrator implements Builder in a folder of its own;
// the shapes of foreign kinds stay there.
package workload

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/dynamo-operator/dynamo-operator/internal/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/snapshot"
)

// Builder turns a component into the objects of one orchestrator, and reads
// back how far those objects are.
type Builder interface {
	// Build returns the objects that run the component, in the order in which
	// they are to be made.
	Build(c graph.Component, pod corev1.PodTemplateSpec) ([]graph.Object, error)
	// Progress reports what the snapshot shows of them.
	Progress(c graph.Component, s snapshot.Snapshot) Progress
}

// Kind is the kind of object that runs a component's pods.
type Kind string

const (
	KindDeployment      Kind = "Deployment"
	KindLeaderWorkerSet Kind = "LeaderWorkerSet"
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
}
