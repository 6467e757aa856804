// Package world reads what the planner of rollouts has to know off a graph and what was
// seen of it: which generations of its workers there are, which of them the graph asks
// for, and how much of each serves. It decides nothing.
package world

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/change"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/generation"
	"github.com/dynamo-operator/dynamo-operator/internal/core/workload"
)

// Cell is a cell of a graph with the generations that there are of it.
type Cell struct {
	generation.Cell
	// Spec is the generation that the graph asks for. Before it is started it does not
	// exist.
	Spec generation.ID
	// Live are those that exist, sorted.
	Live []generation.ID
	// Fields are those for which Spec is none of the live ones.
	Fields []string
	// Isolated says that what workers would notice starts a generation, as a restart does.
	Isolated bool

	recorded generation.ID
	members  map[generation.ID]map[string]workload.Member
	// left are what runs services that the graph does not have any more.
	left  []workload.Member
	named func(service, generation string, first bool) graph.Membership
}

// Rules are what the generations of a graph depend on beside the graph.
type Rules struct {
	// Isolated has a change that workers would tell each other start a generation; if
	// not, it is carried out in place, in the generation that runs.
	Isolated bool
	// Recorded is the generation that the graph has on record as its own.
	Recorded generation.ID
	// Named is what workers are called in a generation.
	Named func(service, generation string, first bool) graph.Membership
}

// Cells are those of a graph whose workers we made, under the contract that keeps
// generations apart, or paired, which needs no such contract. Others are replaced in place, as are whole services that come or
// go: a cell that has other roles than before has nothing to be compared with.
func Cells(g *graph.Graph, members []workload.Member, r Rules) []Cell {
	if g.Contract != graph.ContractV1 && !g.Paired {
		return nil
	}
	var cells []Cell
	for _, of := range generation.Cells(g) {
		c := Cell{Cell: of, Isolated: r.Isolated, recorded: r.Recorded, members: map[generation.ID]map[string]workload.Member{}, named: r.Named}
		foreign := false
		for _, m := range members {
			if !slices.ContainsFunc(g.Components, func(o graph.Component) bool { return o.Name == m.Service }) {
				c.left = append(c.left, m)
			}
			if !slices.Contains(of.Services, m.Service) {
				continue
			}
			id := generation.ID(m.Generation)
			if c.members[id] == nil {
				c.members[id] = map[string]workload.Member{}
			}
			c.members[id][m.Service] = m
			foreign = foreign || m.Foreign
		}
		if foreign {
			continue
		}
		c.Live = slices.Sorted(maps.Keys(c.members))
		c.Spec, c.Fields = c.asked(g, r)
		cells = append(cells, c)
	}
	return cells
}

// asked is the generation that a graph asks for: the one that was told the same, as far
// as workers tell each other, or else a new one.
func (c Cell) asked(g *graph.Graph, r Rules) (generation.ID, []string) {
	if len(c.Live) == 0 {
		return generation.ID(g.Generation), nil
	}
	var breaking []string
	for _, id := range c.inOrder(r.Recorded) {
		fields := c.breaking(g, id)
		if len(fields) == 0 {
			return id, nil
		}
		if breaking == nil {
			breaking = fields
		}
	}
	if !r.Isolated {
		return c.inOrder(r.Recorded)[0], nil
	}
	id := generation.ID(g.WorkersDigest())
	for slices.Contains(c.Live, id) {
		id = generation.ID(graph.ModelHash(string(id))) // it was told something else since
	}
	return id, breaking
}

// RestartField stands for a restart among the fields for which there is a generation.
const RestartField = "restart"

// Restartable reports whether a restart can begin: no other version is on its way.
func (c Cell) Restartable() bool {
	return c.Isolated && slices.Contains(c.Live, c.Spec) && (c.Spec == c.recorded || len(c.Live) == 1)
}

// Restarted is the cell of a graph that asks for its workers to be restarted: one more
// generation that is told the same, made for that restart. One that is not made yet will
// be made for it as it is.
func (c Cell) Restarted(g *graph.Graph, restart string) Cell {
	if !slices.Contains(c.Live, c.Spec) {
		return c
	}
	if id, there := c.MadeFor(g, restart); there {
		c.Spec = id
		return c
	}
	if !c.Restartable() {
		return c
	}
	c.Spec, c.Fields = RestartID(g, restart), []string{RestartField}
	for slices.Contains(c.Live, c.Spec) {
		c.Spec = generation.ID(graph.ModelHash(string(c.Spec)))
	}
	return c
}

// RestartID is the generation that is made for a restart, if no live one has that name.
func RestartID(g *graph.Graph, restart string) generation.ID {
	return generation.ID(graph.ModelHash(g.WorkersDigest() + "/" + restart))
}

// MadeFor is the live generation that was made for a restart, if it is as the graph asks.
func (c Cell) MadeFor(g *graph.Graph, restart string) (generation.ID, bool) {
	for _, id := range c.inOrder(c.recorded) {
		marked := !slices.ContainsFunc(c.Members(id), func(m workload.Member) bool { return mark(m) != restart })
		if (marked || id == RestartID(g, restart)) && c.Same(g, id) {
			return id, true
		}
	}
	return "", false
}

// Same reports whether a graph asks for nothing that a live generation was not told.
func (c Cell) Same(g *graph.Graph, id generation.ID) bool {
	return slices.Contains(c.Live, id) && len(c.breaking(g, id)) == 0
}

// Marks are the restarts that the services of the generation that is asked for were made
// for, or are: those that are still to be made, as the others, or for the one that is
// asked for.
func (c Cell) Marks(restart string) map[string]string {
	if others := c.Members(c.Spec); len(others) > 0 {
		restart = mark(others[0])
	}
	marks := map[string]string{}
	for _, service := range c.Services {
		marks[service] = restart
		if m, there := c.members[c.Spec][service]; there {
			marks[service] = mark(m)
		}
	}
	return marks
}

// mark is the restart that a worker was made for.
func mark(m workload.Member) string {
	return m.Stored.ObjectAnnotations()[v1alpha1.AnnotationRestartAt]
}

// inOrder are the live generations, the recorded one first.
func (c Cell) inOrder(recorded generation.ID) []generation.ID {
	ids := slices.Clone(c.Live)
	slices.SortStableFunc(ids, func(a, b generation.ID) int {
		return cmp.Compare(rank(a == recorded), rank(b == recorded))
	})
	return ids
}

func rank(first bool) int {
	if first {
		return 0
	}
	return 1
}

// breaking are the fields for which a graph asks for another generation than one.
func (c Cell) breaking(g *graph.Graph, id generation.ID) []string {
	var all []string
	for _, wanted := range g.Components {
		m, there := c.members[id][wanted.Name]
		if !there {
			continue
		}
		for _, field := range change.Breaking(m.Stored, wanted) {
			all = append(all, wanted.Name+": "+field)
		}
	}
	return all
}

// Rolling reports whether generations are being replaced, or would have to be: anything
// but one that is the graph's own.
func (c Cell) Rolling() bool {
	return len(c.Live) > 1 || len(c.Live) == 1 && c.Live[0] != c.Spec
}

// Member is what runs a service in a generation, if that was made.
func (c Cell) Member(id generation.ID, service string) (workload.Member, bool) {
	m, there := c.members[id][service]
	return m, there
}

// Members are what runs a generation, in the order of the services.
func (c Cell) Members(id generation.ID) []workload.Member {
	var all []workload.Member
	for _, service := range c.Services {
		if m, there := c.members[id][service]; there {
			all = append(all, m)
		}
	}
	return all
}

// Left are what runs services in a generation that the graph does not have any more. The
// others of it may need them to the end; nothing is asked for there that would replace them.
func (c Cell) Left(id generation.ID) []workload.Member {
	if id == c.Spec {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(c.left), func(m workload.Member) bool { return m.Generation != string(id) })
}

// Made is when the first of what runs a generation was made; the zero time if that is
// not known.
func (c Cell) Made(id generation.ID) time.Time {
	var first time.Time
	for _, m := range c.members[id] {
		if at := m.Object.GetCreationTimestamp().Time; first.IsZero() || at.Before(first) {
			first = at
		}
	}
	return first
}

// Memberships are the names that services have in a generation: those that they have,
// or such as the others have. The first generation has plain ones.
func (c Cell) Memberships(id generation.ID) map[string]graph.Membership {
	plain := len(c.Live) == 0
	for service, m := range c.members[id] {
		plain = plain || m.Name == c.named(service, string(id), true)
	}
	all := map[string]graph.Membership{}
	for _, service := range c.Services {
		m := c.named(service, string(id), plain)
		if there, ok := c.members[id][service]; ok {
			m = there.Name
		}
		all[service] = m
	}
	return all
}
