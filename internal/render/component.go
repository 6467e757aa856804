// Package render turns a graph into the Kubernetes objects it needs. It is pure:
// the same graph gives the same objects in the same order, on a cluster, in a
// test and on a laptop.
package render

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/backend"
	"github.com/dynamo-operator/dynamo-operator/internal/fault"
	"github.com/dynamo-operator/dynamo-operator/internal/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/render/pod"
	"github.com/dynamo-operator/dynamo-operator/internal/snapshot"
	"github.com/dynamo-operator/dynamo-operator/internal/workload"
	"github.com/dynamo-operator/dynamo-operator/internal/workload/deployment"
)

// Orchestrator picks the builder of a component's workload.
func Orchestrator(c graph.Component) (workload.Builder, error) {
	if c.Multinode() {
		return nil, fault.New(fault.Unsupported, v1alpha1.ReasonOrchestratorUnavailable,
			"it spans %d nodes, which needs LeaderWorkerSet or Grove", c.Nodes)
	}
	return deployment.Builder{}, nil
}

// Component renders the children of a DynamoComponentDeployment, which is a
// graph of one component: its workload, and the Service by which others reach
// it. A workload that cannot be rendered does not keep the rest from existing;
// its error comes back beside them.
func Component(g *graph.Graph, p pod.Platform) ([]graph.Object, error) {
	var objects []graph.Object
	if g.Standalone {
		objects = Discovery(g)
	}
	workloads, err := workloads(g, p)
	objects = append(objects, workloads...)
	for _, c := range g.Components {
		objects = append(objects, Service(c))
	}
	return objects, err
}

func workloads(g *graph.Graph, p pod.Platform) ([]graph.Object, error) {
	orchestrator, err := Orchestrator(g.Components[0])
	if err != nil {
		return nil, err
	}
	return orchestrator.Build(g, func(c graph.Component, at backend.Group) (corev1.PodTemplateSpec, error) {
		return pod.Template(c, at, p)
	})
}

// Progress reads how far a component's workload is; nothing is known of one
// that no orchestrator can run.
func Progress(g *graph.Graph, s snapshot.Snapshot) workload.Progress {
	orchestrator, err := Orchestrator(g.Components[0])
	if err != nil {
		return workload.Progress{}
	}
	return orchestrator.Progress(g, s)[0]
}
