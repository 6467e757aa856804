package graph

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// LooksByPrefix reports whether a component looks for workers in all Dynamo namespaces
// that begin with its own, as those of all generations do, where the contract has
// generations. One that is of a generation sees that alone.
func (c Component) LooksByPrefix() bool {
	return !c.Fronted() && (c.Role == RoleFrontend || c.Role == RoleEPP || c.Role == RoleOther && !c.Adopted && runsFrontend(c.Main))
}

// runsFrontend is true of a container that is a frontend whatever type its author
// gave it: without the prefix it would look for workers where no generation is.
func runsFrontend(main *corev1.Container) bool {
	return main != nil && slices.ContainsFunc(slices.Concat(main.Command, main.Args), func(word string) bool {
		return strings.Contains(word, "dynamo.frontend")
	})
}

// FindsWorkersOf reports whether frontends of the graph find the workers of another one
// too, and send them requests for models that both serve: a prefix ends nowhere, so chat
// finds chat-large. What is in the global Dynamo namespace is meant to be found.
func (g *Graph) FindsWorkersOf(other *Graph) bool {
	if g.Contract != ContractV1 || g.Namespace != other.Namespace || g.Name == other.Name {
		return false
	}
	return slices.ContainsFunc(g.Components, func(front Component) bool {
		return front.LooksByPrefix() && front.DynamoNamespace != globalNamespace && slices.ContainsFunc(other.Components, func(c Component) bool {
			return c.Role.RunsEngine() && c.Discovery == front.Discovery && strings.HasPrefix(c.DynamoNamespace, front.DynamoNamespace)
		})
	})
}
