package graph

import (
	"maps"

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
