package graph

import (
	"maps"
	"slices"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
)

// WithMarks is the graph with the mark of its last restart on each service that
// has one. A mark that changes replaces the service's pods; one that stays keeps
// them.
func (g *Graph) WithMarks(marks map[string]string) *Graph {
	marked := *g
	marked.Components = make([]Component, len(g.Components))
	for i, c := range g.Components {
		if mark := marks[c.Name]; mark != "" {
			c.Annotations = maps.Clone(c.Annotations)
			if c.Annotations == nil {
				c.Annotations = map[string]string{}
			}
			c.Annotations[v1alpha1.AnnotationRestartAt] = mark
		}
		marked.Components[i] = c
	}
	return &marked
}

// Scaled is the graph with the number of replicas that its scaling adapters ask
// for, by service. Services without an adapter keep the user's number.
func (g *Graph) Scaled(replicas map[string]int32) *Graph {
	scaled := *g
	scaled.Components = make([]Component, len(g.Components))
	for i, c := range g.Components {
		if n, asked := replicas[c.Name]; asked {
			c.Replicas, c.Adapted = n, true
		}
		scaled.Components[i] = c
	}
	return &scaled
}

// Limited is the graph with no more replicas than were granted, by service. Services of
// which nothing is said keep their number.
func (g *Graph) Limited(granted map[string]int) *Graph {
	if len(granted) == 0 {
		return g
	}
	limited := *g
	limited.Components = slices.Clone(g.Components)
	for i := range limited.Components {
		c := &limited.Components[i]
		if n, said := granted[c.Name]; said && n < int(c.Replicas) {
			c.Replicas, c.Adapted = int32(n), true
		}
	}
	return &limited
}

// Asleep is the graph while nobody asks for its workers. That is no number of theirs:
// whoever sets it goes on doing so.
func (g *Graph) Asleep() *Graph {
	asleep := *g
	asleep.Components = slices.Clone(g.Components)
	for i := range asleep.Components {
		if c := &asleep.Components[i]; c.Role.RunsEngine() {
			c.Replicas, c.Adapted = 0, true
		}
	}
	return &asleep
}

// WithoutIngress is the graph when none of its components is to be reached from
// outside.
func (g *Graph) WithoutIngress() *Graph {
	closed := *g
	closed.Components = slices.Clone(g.Components)
	for i := range closed.Components {
		closed.Components[i].Ingress = nil
	}
	return &closed
}
