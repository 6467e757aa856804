package generation

import (
	"slices"
	"strings"

	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
)

// Cell is a set of a graph's services that need each other: they have a generation
// in common, and a floor.
type Cell struct {
	// Services and Entries, those by whose number traffic divides, are sorted.
	Services, Entries []string
}

// String names a cell by its services.
func (c Cell) String() string { return strings.Join(c.Services, "+") }

// Cells are the cells of a graph. Workers that split the work are one cell, which
// decode enters or, where nothing says that it decodes, whoever does not say what it
// does. Workers that do all of the work are one cell as well: the router takes them
// for one pool, so each of them enters it.
func Cells(g *graph.Graph) []Cell {
	by := map[graph.Role][]string{}
	for _, c := range g.Components {
		if c.Role.RunsEngine() {
			by[Part(c)] = append(by[Part(c)], c.Name)
		}
	}
	whole := by[graph.RoleWorker]
	delete(by, graph.RoleWorker)
	entries := by[graph.RoleDecode]
	var split []string
	for _, names := range by {
		split = append(split, names...)
	}
	if len(split) > 0 && len(entries) == 0 {
		entries, split, whole = whole, append(split, whole...), nil
	}
	var cells []Cell
	for _, c := range []Cell{{Services: split, Entries: entries}, {Services: whole, Entries: whole}} {
		if len(c.Services) == 0 {
			continue
		}
		if len(c.Entries) == 0 {
			c.Entries = c.Services // such as prefill alone: nobody divides its traffic
		}
		cells = append(cells, Cell{slices.Sorted(slices.Values(c.Services)), slices.Sorted(slices.Values(c.Entries))})
	}
	return cells
}

// Part is what a worker does; other words, such as encode, are support.
func Part(c graph.Component) graph.Role {
	switch {
	case c.Role != graph.RoleWorker:
		return c.Role
	case c.SubType == "":
		return graph.RoleWorker
	default:
		return graph.Role(c.SubType)
	}
}
