package plan

import (
	"fmt"
	"slices"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	breaking "github.com/dynamo-operator/dynamo-operator/internal/core/rollout/change"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/generation"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/revision"
)

// standing is what runs of a graph whose workers are not all those that it asks for: a
// rollout to those is under way, or was aborted.
type standing struct {
	rollout *v1alpha1.RolloutStatus
	// asked is the digest of the workers that the graph asks for.
	asked string
	// stable are the services of the stable generation, as its revision tells them, and
	// revision is the number of that.
	stable   map[string]service
	revision int64
}

// stand finds out what runs; the note says that it cannot.
func (c *comparison) stand() (note string, err error) {
	st := c.seen.graph.Status.Rollout
	if c.renderer.Rules.InPlace || st == nil || st.Phase == "" || st.Phase == string(generation.PhaseCompleted) {
		return "", nil
	}
	of := revision.OfGeneration(c.seen.revisions, st.Stable)
	if of == nil {
		return fmt.Sprintf("the last rollout is %s, and no ControllerRevision tells what generation %q, which was there before, is made of: this plan begins from what the graph asks for", st.Phase, st.Stable), nil
	}
	before, err := revision.Restore(c.seen.graph, of)
	if err != nil {
		return "", err
	}
	s := &standing{rollout: st, revision: of.Revision}
	if s.stable, _, err = services(c.renderer, before, nil, ""); err != nil {
		return "", fmt.Errorf("revision %d: %w", of.Revision, err)
	}
	asked, g, err := services(c.renderer, c.seen.graph, nil, "")
	if err != nil {
		return "", fmt.Errorf("the graph that runs: %w", err)
	}
	s.asked = g.WorkersDigest()
	for name := range st.Roles {
		if len(breaking.Breaking(s.stable[name].component, asked[name].component)) > 0 {
			c.standing = s
		}
	}
	return "", nil // a restart, which has no other version
}

// tell says what a plan begins from, and whether it leads back there.
func (s *standing) tell(back bool) string {
	stays := fmt.Sprintf("generation %s, of revision %d", s.rollout.Stable, s.revision)
	switch {
	case s.aborted() && back:
		return fmt.Sprintf("the rollout of revision %d was aborted (%s), and %s, serves: the manifest asks for that, so the candidate is taken back and no worker is rolled out", s.rollout.Revision, s.rollout.Reason, stays)
	case s.aborted():
		return fmt.Sprintf("the rollout of revision %d was aborted (%s): this plan begins from %s, which serves", s.rollout.Revision, s.rollout.Reason, stays)
	case back:
		return fmt.Sprintf("the rollout of revision %d is %s: the manifest asks for %s, which is gone back to", s.rollout.Revision, s.rollout.Phase, stays)
	default:
		return fmt.Sprintf("the rollout of revision %d is %s: %s, is not gone yet", s.rollout.Revision, s.rollout.Phase, stays)
	}
}

func (s *standing) aborted() bool {
	return s.rollout.Phase == string(generation.PhaseAborting) || s.rollout.Phase == string(generation.PhaseAborted)
}

// kept reports whether the stable generation is what the workers of the graph that runs
// are: others were aborted, and are not tried again, or there are none yet.
func (s *standing) kept() bool { return s.aborted() || len(s.rollout.Generations) < 2 }

// rendered is what runs the services of a graph: those of the stable generation, if it
// asks for workers that are not there.
func (c *comparison) rendered(dgd *v1alpha1.DynamoGraphDeployment, scale map[string]int32, restart string) (map[string]service, *graph.Graph, error) {
	all, g, err := services(c.renderer, dgd, scale, restart)
	if err != nil || !c.standing.asks(g) || !c.standing.kept() {
		return all, g, err
	}
	for name := range c.standing.rollout.Roles {
		kept, there := c.standing.stable[name]
		if !there {
			delete(all, name)
			continue
		}
		kept.component.Replicas = all[name].component.Replicas // which it follows
		all[name] = kept
	}
	return all, g, nil
}

// asks reports whether a graph asks for the workers that the one that runs asks for.
func (s *standing) asks(g *graph.Graph) bool { return s != nil && s.asked == g.WorkersDigest() }

// returns reports whether a cell is asked for as the stable generation has it.
func (s *standing) returns(cell generation.Cell, after map[string]service) bool {
	return s != nil && !slices.ContainsFunc(cell.Services, func(name string) bool {
		if _, rolled := s.rollout.Roles[name]; !rolled {
			return true
		}
		was, there := s.stable[name]
		return !there || len(breaking.Breaking(was.component, after[name].component)) > 0
	})
}

// generations are those of a cell, if there are several.
func (s *standing) generations(cell generation.Cell) []generation.Generation {
	if s == nil {
		return nil
	}
	var all []generation.Generation
	for _, of := range s.rollout.Generations {
		one, there := generation.Generation{ID: generation.ID(of.ID)}, false
		for _, name := range cell.Services {
			r, has := of.Roles[name]
			there = there || has
			one.Roles = append(one.Roles, generation.Replicas{
				Want: int(r.Replicas), Exist: int(r.Replicas + r.Leaving), Ready: int(r.Routable), Routable: int(r.Routable),
			})
		}
		if there {
			all = append(all, one)
		}
	}
	if len(all) < 2 {
		return nil
	}
	return all
}

// back tells what the plan begins from. Services of cells that return to the stable
// generation come off the fields and what they do together: none of their pods is
// replaced, whatever a field would do by itself.
func (c *comparison) back(p *Plan, g *graph.Graph, after map[string]service) {
	if c.standing == nil {
		return
	}
	returns := false
	for _, cell := range generation.Cells(g) {
		if !c.standing.returns(cell, after) || c.standing.asks(g) {
			continue
		}
		returns = true
		p.back = append(p.back, cell.Services...)
		for i := range p.Fields {
			p.Fields[i].Replaces = slices.DeleteFunc(p.Fields[i].Replaces, func(name string) bool { return slices.Contains(cell.Services, name) })
		}
	}
	p.Notes = append(p.Notes, c.standing.tell(returns))
}
