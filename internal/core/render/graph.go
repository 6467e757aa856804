package render

import (
	"errors"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/workload"
)

// Graph renders the children of a DynamoGraphDeployment: what its components
// share, what its provider runs them by and, where the graph itself owns the pods
// of those, the Services by which others reach them.
func Graph(dgd *v1alpha1.DynamoGraphDeployment, g *graph.Graph, provider workload.Provider, p Platform) ([]graph.Desired, error) {
	if s, on, _ := Dormancy(dgd, g, provider, p); on {
		g = activated(g, p.Activator, s)
	}
	wanted := accounts(g, p.Roles)
	wanted = append(wanted, claims(g)...)
	wanted = append(wanted, adapters(g)...)
	wanted = append(wanted, controlled(Discovery(g)...)...)
	wanted = append(wanted, controlled(activation(g)...)...)
	builder := p.GraphBuilder(dgd, provider)
	_, owns := builder.(workload.PodOwner)
	groups, err := groupObjects(g, p.Capabilities, owns)
	wanted = append(wanted, controlled(groups...)...)
	wanted = append(wanted, controlled(networkPolicies(g, p.NetworkPolicy)...)...)
	wanted = append(wanted, controlled(disruptionBudgets(dgd, g, p.DisruptionBudgets)...)...)
	picker, pickerErr := picker(g, p.Capabilities)
	wanted = append(wanted, controlled(picker...)...)
	// A component that is told of its generation leaves these: they have to be the graph's
	// before.
	fronts, frontErr := fronts(g, p)
	wanted = append(wanted, fronts...)
	workloads, buildErr := builder.Build(g, pods(p))
	wanted, err = append(wanted, retaining(g, workloads)...), errors.Join(err, pickerErr, frontErr, buildErr)
	if owns {
		services, serviceErr := graphServices(g, p)
		wanted, err = append(wanted, services...), errors.Join(err, serviceErr)
	}
	return wanted, err
}

// controlled wants objects that belong to one owner.
func controlled(objects ...graph.Object) []graph.Desired {
	var wanted []graph.Desired
	for _, o := range objects {
		wanted = append(wanted, graph.Desired{Object: o})
	}
	return wanted
}

// retaining wants workloads of a graph, or of a component.
func retaining(g *graph.Graph, workloads []graph.Object) []graph.Desired {
	wanted := controlled(workloads...)
	for i := range wanted {
		wanted[i].RetainTemplates = g.TakenOver != ""
	}
	return wanted
}

// graphServices renders the Services of components that belong to the graph.
func graphServices(g *graph.Graph, p Platform) (wanted []graph.Desired, err error) {
	for _, c := range g.Components {
		if c.Discovery != graph.DiscoveryKubernetes && c.Role != graph.RoleFrontend && c.Role != graph.RoleEPP && c.Ingress == nil {
			continue // nobody looks for it by name
		}
		routes, routeErr := ingress(c, p.Capabilities)
		err = errors.Join(err, routeErr)
		wanted = append(wanted, controlled(graphService(c))...)
		wanted = append(wanted, controlled(routes...)...)
	}
	return append(wanted, modelServices(g.Components)...), err
}
