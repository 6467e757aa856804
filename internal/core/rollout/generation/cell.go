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
	// Paired says that the entries are frontends of the generation's own.
	Paired bool
}

// String names a cell by its services.
func (c Cell) String() string { return strings.Join(c.Services, "+") }

// Cells are the cells of a graph. Workers that split the work are one cell, which
// decode enters or, where nothing says that it decodes, whoever does not say what it
// does. Workers that do all of the work are one cell as well: the router takes them
// for one pool, so each of them enters it. In a paired graph all are one cell with the
// frontends, which are its entries.
func Cells(g *graph.Graph) []Cell {
	if g.Paired {
		return []Cell{pairedCell(g)}
	}
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
		cells = append(cells, Cell{Services: slices.Sorted(slices.Values(c.Services)), Entries: slices.Sorted(slices.Values(c.Entries))})
	}
	return cells
}

func pairedCell(g *graph.Graph) Cell {
	c := Cell{Paired: true}
	for _, of := range g.Components {
		if g.InGeneration(of) {
			c.Services = append(c.Services, of.Name)
		}
		if of.Role == graph.RoleFrontend {
			c.Entries = append(c.Entries, of.Name)
		}
	}
	slices.Sort(c.Services)
	slices.Sort(c.Entries)
	return c
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
