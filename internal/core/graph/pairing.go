package graph

import (
	"cmp"
	"slices"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
)

// Pair is the graph with its frontends in the generation of its workers: the recorded
// one or, if nothing is recorded, that of its children. Under the seed's contract, which
// has no generations otherwise, workers join it here too; the first has no id there, and
// is as all graphs of that contract are.
func (g *Graph) Pair(annotations map[string]string, running Running) *Graph {
	paired := *g
	paired.Paired = true
	paired.Components = slices.Clone(g.Components)
	if g.Contract != ContractV1 {
		paired.Generation = recordedGeneration(annotations)
		if !running.Plain {
			paired.Generation = cmp.Or(paired.Generation, running.Generation)
		}
	}
	for i := range paired.Components {
		c := &paired.Components[i]
		if !paired.InGeneration(*c) || g.Contract == ContractV1 && c.Role != RoleFrontend {
			continue
		}
		if g.Adopted == "" {
			c.join(paired.Generation)
		}
		if name := running.Names[c.Name]; name != "" {
			c.rename(name)
		}
	}
	return &paired
}

// InGeneration reports whether a component comes in the generations of a graph: workers
// do and, in a paired graph, frontends.
func (g *Graph) InGeneration(c Component) bool {
	return c.Role.RunsEngine() || g.Paired && c.Role == RoleFrontend
}

// Unpairable is why frontends of a graph cannot come in generations; empty if they can.
func (g *Graph) Unpairable() string {
	has := func(of func(Component) bool) bool { return slices.ContainsFunc(g.Components, of) }
	_, picker := g.Picker()
	switch {
	case !has(func(c Component) bool { return c.Role == RoleFrontend }):
		return "the graph has no frontend"
	case !has(func(c Component) bool { return c.Role.RunsEngine() }):
		return "the graph has no workers"
	case picker:
		return "an endpoint picker looks for the workers of all generations"
	case has(func(c Component) bool { return g.InGeneration(c) && c.DynamoNamespace == globalNamespace }):
		return "frontends in the global Dynamo namespace see all others"
	default:
		return ""
	}
}

// readPairing reads off a child whether frontends come in generations: one of them
// does, or the graph has taken the Service in front of them.
func (r *Running) readPairing(child Object, id string) {
	r.Paired = r.Paired || FrontOf(child)
	if dcd, ok := child.(*v1alpha1.DynamoComponentDeployment); ok {
		role := RoleOf(string(dcd.Spec.ComponentType))
		r.Paired = r.Paired || role == RoleFrontend && id != ""
		r.Plain = r.Plain || role.RunsEngine() && id == ""
	}
}

// FrontOf reports whether an object is what the frontends of all generations of a graph
// are reached by: it is the graph's, and none of their components'.
func FrontOf(object Object) bool {
	return object.GetAnnotations()[v1alpha1.AnnotationRolloutIsolation] == v1alpha1.IsolationPaired
}

// Fronted reports whether a component is reached by what its graph makes for the
// frontends of all generations.
func (c Component) Fronted() bool { return c.Role == RoleFrontend && c.Generation != "" }
