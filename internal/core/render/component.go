// Package render turns a graph into the Kubernetes objects it needs. It is pure:
// the same graph gives the same objects in the same order, on a cluster, in a
// test and on a laptop.
package render

import (
	"cmp"
	"errors"

	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/snapshot"
	"github.com/dynamo-operator/dynamo-operator/internal/core/workload"
	"github.com/dynamo-operator/dynamo-operator/internal/core/workload/orchestrator"
)

// defaultAccount is said aloud: pods of earlier operators have it, and leaving
// it out would replace them.
const defaultAccount = "default"

// Component renders the children of a DynamoComponentDeployment, which is a
// graph of one component: its workload, and the Services by which others reach
// it. One that stands alone gets what a graph makes for its components as well. A
// workload that cannot be rendered does not keep the rest from existing; its error
// comes back beside them.
func Component(g *graph.Graph, p Platform) ([]graph.Desired, error) {
	p.Pod.Account = cmp.Or(p.Pod.Account, defaultAccount)
	var wanted []graph.Desired
	var aloneErr error
	if g.Standalone {
		wanted, aloneErr = alone(g, p)
	}
	workloads, err := workloads(g, p)
	err = errors.Join(aloneErr, err)
	wanted = append(wanted, retaining(g, workloads)...)
	for _, c := range g.Components {
		if c.Fronted() {
			continue // its graph makes them, for the frontends of all generations
		}
		wanted = append(wanted, controlled(Service(c))...)
		routes, routeErr := ingress(c, p.Capabilities)
		wanted = append(wanted, controlled(routes...)...)
		err = errors.Join(err, routeErr)
	}
	return append(wanted, modelServices(g.Components)...), err
}

// alone renders what pods of a component refer to and a graph makes for them:
// accounts with their rights, and what an endpoint picker reads and picks from. The
// SSH key of MPI groups is random, so it is not rendered.
func alone(g *graph.Graph, p Platform) ([]graph.Desired, error) {
	wanted := append(accounts(g, p.Roles), controlled(Discovery(g)...)...)
	groups, err := groupObjects(g, p.Capabilities, false)
	wanted = append(wanted, controlled(groups...)...)
	picker, pickerErr := picker(g, p.Capabilities)
	return append(wanted, controlled(picker...)...), errors.Join(err, pickerErr)
}

func workloads(g *graph.Graph, p Platform) ([]graph.Object, error) {
	builder, err := orchestrator.ForComponent(g.Components[0], p.Capabilities, p.ProgressDeadline)
	if err != nil {
		return nil, err
	}
	return builder.Build(g, pods(p))
}

// Progress reads how far a component's workload is; nothing is known of one
// that no orchestrator can run.
func Progress(g *graph.Graph, s snapshot.Snapshot, p Platform) workload.Progress {
	builder, err := orchestrator.ForComponent(g.Components[0], p.Capabilities, p.ProgressDeadline)
	if err != nil {
		return workload.Progress{}
	}
	return builder.Progress(g, s)[0]
}
