package status

import (
	"maps"
	"slices"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/generation"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/world"
	"github.com/dynamo-operator/dynamo-operator/internal/core/snapshot"
	"github.com/dynamo-operator/dynamo-operator/internal/core/workload"
)

// Workers are the cells of a graph's workers that are exchanged by generations, and those
// of these that were aborted, with the reason.
type Workers struct {
	Cells   []world.Cell
	Aborted map[generation.ID]string
}

// NextRestart reads what a restart needs to know off a graph and the snapshot,
// and computes its next step, and the cells as they are asked for with it.
//
// Workers of a cell are restarted together, by one more generation of it: their turn is
// that of the first of them, and they are through when that generation alone is left.
// While another version of workers is rolled out a restart waits: its turn comes once
// that has ended.
func NextRestart(dgd *v1alpha1.DynamoGraphDeployment, g *graph.Graph, by workload.GraphBuilder, s snapshot.Snapshot, w Workers) (rollout.Step, []world.Cell) {
	wanted := asked(dgd)
	memberships, rolling := map[string]graph.Membership{}, false
	for _, c := range w.Cells {
		maps.Copy(memberships, c.Memberships(c.Spec))
		_, aborted := w.Aborted[c.Spec]
		rolling = rolling || c.Rolling() && !c.Restartable() && (!aborted || len(c.Live) > 1)
	}
	now := g.InGenerations(memberships)
	var services []rollout.Service
	stuck := false
	for i, p := range by.Progress(now, s) {
		c := now.Components[i]
		id, made := by.Mark(now, c, s)
		seen := rollout.Service{Name: c.Name, Made: made, Mark: id, Done: p.Done}
		if p.Stuck {
			seen.Failure, stuck = stalled(p).message, true
		}
		if at := slices.IndexFunc(w.Cells, func(of world.Cell) bool { return of.Isolated && slices.Contains(of.Services, c.Name) }); at >= 0 && wanted != nil {
			seen = w.restarting(seen, w.Cells[at], g, wanted.ID)
		}
		services = append(services, seen)
	}
	// One change at a time where that is the rule, unless the last gets nowhere.
	updater, serial := by.(workload.Updater)
	busy := serial && updater.Updating(now, s) && !stuck
	step := rollout.Next(wanted, recorded(dgd.Status.Restart), services, busy || rolling)
	return step, w.restarted(g, wanted, step.Marks)
}

// restarting is what was seen of a service whose cell is restarted by a generation.
func (w Workers) restarting(seen rollout.Service, cell world.Cell, g *graph.Graph, id string) rollout.Service {
	seen.Made, seen.With = len(cell.Live) > 0, cell.Services
	if of, there := cell.MadeFor(g, id); there {
		seen.Mark = id
		seen.Done = seen.Done && len(cell.Live) == 1 && cell.Live[0] == of
	}
	if why, aborted := w.Aborted[cell.Restarted(g, id).Spec]; aborted && cell.Restartable() {
		seen.Mark, seen.Done, seen.Failure = id, false, why
	}
	return seen
}

// restarted are the cells as a step of a restart asks for them. It has the marks of the
// workers as these were made: another mark is another generation.
func (w Workers) restarted(g *graph.Graph, wanted *rollout.Restart, marks map[string]string) []world.Cell {
	id := ""
	if wanted != nil {
		id = wanted.ID
	}
	cells := slices.Clone(w.Cells)
	for i, c := range cells {
		if !c.Isolated {
			continue
		}
		if id != "" && slices.ContainsFunc(c.Services, func(service string) bool { return marks[service] == id }) {
			cells[i] = c.Restarted(g, id)
		}
		maps.Copy(marks, cells[i].Marks(id))
	}
	return cells
}

func asked(dgd *v1alpha1.DynamoGraphDeployment) *rollout.Restart {
	r := dgd.Spec.Restart
	if r == nil || r.ID == "" {
		return nil
	}
	restart := &rollout.Restart{ID: r.ID, Order: slices.Sorted(maps.Keys(dgd.Spec.Services))}
	if r.Strategy != nil {
		restart.Parallel = r.Strategy.Type == v1alpha1.RestartParallel
		if len(r.Strategy.Order) > 0 {
			restart.Order = r.Strategy.Order
		}
	}
	return restart
}

func recorded(r *v1alpha1.RestartStatus) *rollout.Record {
	if r == nil {
		return nil
	}
	return &rollout.Record{ID: r.ObservedID, Phase: rollout.Phase(r.Phase), InProgress: r.InProgress, Message: r.Message}
}

// restartStatus puts a record into the words of the API.
func restartStatus(r *rollout.Record) *v1alpha1.RestartStatus {
	if r == nil {
		return nil
	}
	return &v1alpha1.RestartStatus{
		ObservedID: r.ID, Phase: v1alpha1.RestartPhase(r.Phase), InProgress: r.InProgress, Message: r.Message,
	}
}
