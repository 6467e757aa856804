// Package managed decides what one reconcile does about the generations of a graph's
// workers: which are rendered, which stay as they are stored, which get another number
// of replicas, and what is put on record. It is pure, and remembers nothing: what it
// needs from earlier is on the objects, or in the status.
//
//	spec changes --> revision --> steps of the planner --> one generation left --> completed
//	                                └--no progress, crashes, a user--> aborted --> steps back
package managed

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/analysis"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/generation"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/policy"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/revision"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/world"
	"github.com/dynamo-operator/dynamo-operator/internal/core/workload"
)

// Input is what was seen of a graph.
type Input struct {
	Owner *v1alpha1.DynamoGraphDeployment
	// Graph has the replicas that adapters ask for.
	Graph *graph.Graph
	Cells []world.Cell
	Sight world.Sight
	// Policy is what the graph's annotations say.
	Policy    policy.Policy
	Revisions []*appsv1.ControllerRevision
	// Requests is what was seen of the requests of candidates, by the name of their cell.
	Requests map[string]analysis.Series
	// Whole says that a generation is made in one piece.
	Whole bool
	// Behind says that the last step is not seen yet: no other is taken before.
	Behind bool
	// Ready tells whether every service of a graph runs in full.
	Ready    func(*graph.Graph) bool
	Settings Settings
}

// Settings are the operator's.
type Settings struct {
	// ProgressDeadline is how long a rollout may make no progress.
	ProgressDeadline time.Duration
	// HistoryLimit is how many revisions are kept.
	HistoryLimit int
}

// Decision is what is done.
type Decision struct {
	// Graph has every worker in the generation that is rendered, with the replicas that
	// the graph asks for.
	Graph *graph.Graph
	// Told are the replicas that workers of rolling cells have, or get by this step; a
	// service that is not in it is not rendered.
	Told map[string]int32
	// Rolling are the services of cells whose generations are being replaced.
	Rolling []string
	// Keep are objects that stay though they are not rendered.
	Keep []graph.Object
	// Stay is what runs the generations that stay.
	Stay []workload.Member
	// Resize are objects that stay as they are stored, but for their replicas, and Scale
	// such as others have made from those.
	Resize, Scale []workload.Rescaling
	// Expect are the replicas that a step has told: a world that does not show them is
	// too old for another.
	Expect []Expectation
	// Record are revisions to be written, Retract annotations of the graph that were
	// carried out and would be again.
	Record  []Recording
	Retract []string

	State State
}

// Expectation is what a worker was told in a generation.
type Expectation struct {
	Service, Generation string
	Replicas            int32
	// Object is the name of the child that tells it; empty where something that others
	// have made was told.
	Object string
}

// Recording is a revision to be made, or to be changed.
type Recording struct {
	Revision *appsv1.ControllerRevision
	New      bool
}

// State is how far the rollouts of a graph are.
type State struct {
	Cells []CellState
	// Failure is why the candidate is aborted, or held.
	Failure Failure
	// Judgement is what its requests come to; nil if they are not compared.
	Judgement *analysis.Judgement
	// Live are the generations that there are, sorted.
	Live []string
	// Revision is the number of what is rolled out.
	Revision int64
}

// Failure is why a candidate failed; none if it is empty.
type Failure struct {
	Reason  analysis.AbortReason
	Message string
}

// CellState is how far one cell is. Of one that is not rolling there is only the cell.
type CellState struct {
	Cell  world.Cell
	World generation.World
	Step  generation.Step
	// Position is the step of the rollout that the cell is at.
	Position policy.Position
	// Failing are replicas that do not come up, by generation and service.
	Failing map[generation.ID]map[string]int
	// Revisions are the numbers of those of the generations.
	Revisions map[generation.ID]int64
}

// Active reports whether a generation is on its way in or out.
func (s State) Active() bool {
	return slices.ContainsFunc(s.Cells, func(c CellState) bool {
		return c.Cell.Rolling() && c.Step.Phase != generation.PhaseAborted
	})
}

// Rolling are the cells whose generations are being replaced, or stay against the spec.
func (s State) Rolling() []CellState {
	var all []CellState
	for _, c := range s.Cells {
		if c.Cell.Rolling() {
			all = append(all, c)
		}
	}
	return all
}

// Next decides. A graph without cells, such as one whose workers are replaced in place,
// is left as it is.
func Next(in Input) Decision {
	d := Decision{Graph: in.Graph, Told: map[string]int32{}}
	if len(in.Cells) == 0 {
		for _, r := range in.Revisions { // what is not rolled out now was, and may be again
			d.Keep = append(d.Keep, r)
		}
		return d
	}
	memberships := map[string]graph.Membership{}
	stepped := false
	for _, cell := range in.Cells {
		state := CellState{Cell: cell}
		shown := cell.Spec
		if cell.Rolling() {
			state = in.roll(cell, &d)
			d.Rolling = append(d.Rolling, cell.Services...)
			if shown = state.World.Target(); shown == cell.Spec {
				for _, m := range cell.Members(shown) {
					d.Told[m.Service] = m.Told()
				}
			}
			d.keep(cell, in.Sight)
			if !stepped && !in.Behind && len(d.Record) == 0 {
				if stepped = d.take(state, in); stepped {
					in.handOver(state, &d)
				}
			}
		}
		maps.Copy(memberships, cell.Memberships(shown))
		for _, id := range cell.Live {
			d.State.Live = append(d.State.Live, string(id))
		}
		d.State.Cells = append(d.State.Cells, state)
	}
	slices.Sort(d.State.Live)
	d.State.Live = slices.Compact(d.State.Live)
	d.Graph = in.Graph.InGenerations(memberships)
	d.Graph.Generation = in.stable(d.State)
	for i := range d.Graph.Components {
		c := &d.Graph.Components[i]
		if slices.Contains(d.Rolling, c.Name) {
			c.StartAfter = nil // it was started long ago
		}
		if _, member := memberships[c.Name]; member && c.ObjectName != graph.ComponentName(in.Graph.Name, c.Name) {
			c.Annotations = settling(*c)
		}
	}
	if len(d.Rolling) == 0 {
		for _, id := range d.State.Live {
			if of := revision.OfGeneration(in.Revisions, id); of != nil {
				d.State.Revision = max(d.State.Revision, of.Revision)
			}
		}
	}
	d.settle(in)
	return d
}

// settling are the annotations of a worker in a later generation: its Deployment counts
// a pod as available when we do. The first generation stays as it was made before there
// was anything to roll out.
func settling(c graph.Component) map[string]string {
	if c.Multinode() || c.ObjectAnnotations()[v1alpha1.AnnotationMinReadySeconds] != "" {
		return c.Annotations
	}
	with := maps.Clone(c.Annotations)
	if with == nil {
		with = map[string]string{}
	}
	with[v1alpha1.AnnotationMinReadySeconds] = world.LeastReady
	return with
}

// roll is one cell whose generations are being replaced.
func (in Input) roll(cell world.Cell, d *Decision) CellState {
	state := CellState{Cell: cell, World: cell.World(in.Graph, in.Sight), Failing: map[generation.ID]map[string]int{}}
	w := &state.World
	w.Whole = in.Whole
	for _, id := range cell.Live {
		for _, service := range cell.Services {
			if n := cell.Failing(id, service, in.Sight); n > 0 {
				if state.Failing[id] == nil {
					state.Failing[id] = map[string]int{}
				}
				state.Failing[id][service] = n
			}
		}
	}
	w.Stable = in.stableOf(cell, *w)
	for _, id := range revision.AbortedGenerations(in.Revisions) {
		if id != in.Policy.Retry {
			w.Aborted = append(w.Aborted, generation.ID(id))
		}
	}
	if w.Target() == cell.Spec { // what is rendered is told again
		retell(w, cell)
	}
	*w = w.Postponed()
	w.Paused = in.Policy.Paused && w.Target() == cell.Spec // to go back is not held
	if w.Target() == cell.Spec && w.Stable != cell.Spec && !in.restarts(cell, *w) && in.begins(cell) {
		d.forget(in, string(cell.Spec))
		in.Policy = in.Policy.Without(string(cell.Spec))
	}
	var standing policy.Standing
	if w.Target() == cell.Spec && w.Stable != cell.Spec {
		var judgement *analysis.Judgement
		if !in.restarts(cell, *w) { // which is no other version to be tried
			judgement = in.compare(cell)
			standing, state.Position = in.level(cell, w, judgement)
		}
		in.judge(state, judgement, d)
		if d.State.Failure.Reason != "" && in.Policy.OnFailure == policy.OnFailureHold {
			w.Paused = true
		}
	}
	state.Step = generation.Next(*w)
	if at := &state.Position; state.Step.Reason == generation.ReasonLevel && at.Waits == policy.WaitsForNothing {
		// It is reached now, or again: from here on it waits.
		standing.Reached = in.Sight.Now
		if at.Step == standing.Step && !in.Sight.Reached.IsZero() {
			standing.Reached = in.Sight.Reached
		}
		standing.Step = at.Step
		*at = in.Policy.At(standing)
	}
	in.record(cell, *w, d)
	state.Revisions = in.numbers(cell, *w, d)
	return state
}

// retell has the target want what it was told: of what was made unasked it wants none.
func retell(w *generation.World, cell world.Cell) {
	for _, g := range w.Generations {
		for i, role := range w.Roles {
			if m, there := cell.Member(g.ID, role.Name); there && g.ID == cell.Spec {
				g.Roles[i].Want = int(m.Told())
			}
		}
	}
}

// restarts reports whether the generation that is asked for is told the same as the
// stable one: it is there for a restart.
func (in Input) restarts(cell world.Cell, w generation.World) bool {
	return cell.Spec != w.Stable && cell.Same(in.Graph, w.Stable)
}

// stableOf is the generation to go back to: the one on record, the newest whose rollout
// was completed, or the one that was there first. Candidates are made beside it, and one
// that has become stable was the only one left: whatever else lives is younger. That one
// of them serves more says nothing, as each does in the end of its rollout.
func (in Input) stableOf(cell world.Cell, w generation.World) generation.ID {
	recorded := generation.ID(graph.RecordedGeneration(in.Owner))
	if slices.Contains(cell.Live, recorded) {
		return recorded
	}
	for _, r := range slices.Backward(revision.Sorted(in.Revisions)) {
		id := revision.Generation(r)
		// The newest tells of workers: they may be a candidate again, in another spec.
		if revision.ResultOf(r) == revision.Completed && slices.Contains(cell.Live, generation.ID(id)) && r == revision.OfGeneration(in.Revisions, id) {
			return generation.ID(id)
		}
	}
	aborted := revision.AbortedGenerations(in.Revisions)
	return slices.MinFunc(cell.Live, func(a, b generation.ID) int {
		return cmp.Or(
			cmp.Compare(rank(slices.Contains(aborted, string(a))), rank(slices.Contains(aborted, string(b)))),
			cell.Made(a).Compare(cell.Made(b)),
			cmp.Compare(rank(a == cell.Spec), rank(b == cell.Spec)),
			cmp.Compare(w.Routable(b), w.Routable(a)),
		)
	})
}

func rank(last bool) int {
	if last {
		return 1
	}
	return 0
}

// stable is what stands on the graph as its generation: it changes when a rollout is
// completed.
func (in Input) stable(s State) string {
	for _, c := range s.Cells {
		if c.Cell.Rolling() {
			return string(c.World.Stable)
		}
	}
	for _, c := range s.Cells {
		if len(c.Cell.Live) > 0 {
			return string(c.Cell.Live[0])
		}
	}
	return in.Graph.Generation
}

// level is how far the candidate may go until the next step of its rollout. It returns
// that step, and what it was found by.
func (in Input) level(cell world.Cell, w *generation.World, j *analysis.Judgement) (standing policy.Standing, at policy.Position) {
	if len(in.Policy.Steps) == 0 {
		return standing, at
	}
	standing = policy.Standing{Generation: string(cell.Spec), Now: in.Sight.Now, Stop: w.Stop}
	if j != nil {
		standing.Verdict = j.Verdict
	}
	for i, role := range w.Roles {
		if !role.Entry {
			continue
		}
		standing.Entries += role.Desired
		for _, g := range w.Generations {
			if g.ID == cell.Spec {
				standing.Wanted += g.Roles[i].Want
			}
		}
	}
	if last := in.Owner.Status.Rollout; last != nil && last.Target == string(cell.Spec) {
		standing.Step = in.Policy.Recorded(last.Step)
		if world.AtStep(last) {
			standing.Reached = in.Sight.Reached
			if standing.Reached.IsZero() {
				standing.Reached = last.ProgressedAt.Time
			}
		}
	}
	at = in.Policy.At(standing)
	w.Level, w.Unapproved = at.Level, at.Step <= at.Steps
	return standing, at
}

// judge tells whether the candidate has failed.
func (in Input) judge(state CellState, j *analysis.Judgement, d *Decision) {
	w := state.World
	worse := j != nil && j.Verdict == policy.VerdictFail
	if d.State.Judgement == nil || worse {
		d.State.Judgement = j
	}
	requested := in.Policy.Abort != "" && in.Policy.Abort == string(w.Spec)
	if !requested && (in.Policy.Paused || !in.recovers(w)) {
		return
	}
	last := in.Owner.Status.Rollout
	var reason analysis.AbortReason
	if last != nil {
		reason = analysis.AbortReason(last.Reason)
	}
	// A user has seen what is held, and has their way. What was never held is still aborted.
	unjudged := in.Policy.OnFailure == policy.OnFailureHold && in.Policy.Unjudged(string(w.Spec))
	crashes, pod := state.Cell.Crashed(w.Spec, in.Sight, in.begun(w.Spec))
	switch {
	case requested:
		d.State.Failure = Failure{analysis.AbortRequested, "a user asked for it"}
	case last == nil || last.Target != string(w.Spec):
		return
	case !unjudged && last.Phase == string(generation.PhaseHeld) && slices.Contains([]analysis.AbortReason{analysis.AbortDeadline, analysis.AbortCrashed, analysis.AbortRegression}, reason):
		d.State.Failure = Failure{reason, last.Message} // it stays held
	case !unjudged && crashes >= world.MostCrashes:
		d.State.Failure = Failure{analysis.AbortCrashed, fmt.Sprintf("generation %s crashed %d times in %s after it had served, last in pod %s", w.Spec, crashes, world.CrashWindow, pod)}
	case worse:
		d.State.Failure = Failure{analysis.AbortRegression, fmt.Sprintf("generation %s: %s", w.Spec, j.Message)}
	case last.Phase != string(generation.PhaseHeld) && in.overdue(last):
		d.State.Failure = Failure{analysis.AbortDeadline, fmt.Sprintf("generation %s made no progress for %s", w.Spec, in.Settings.ProgressDeadline)}
		if last.Reason == string(generation.ReasonNotAdmitted) {
			d.State.Failure.Message += ": " + last.Message
		}
	}
}

// recovers reports whether to give the candidate up leads back to something that serves:
// the stable generation does, or did until this rollout took it away and nothing serves
// instead. One that does not serve by itself is no better than the candidate, which may be
// there to mend it.
func (in Input) recovers(w generation.World) bool {
	if w.Complete(w.Stable) {
		return true
	}
	of := revision.OfGeneration(in.Revisions, string(w.Stable))
	return of != nil && revision.ResultOf(of) == revision.Completed && w.Reduced(w.Stable) && !w.Complete(w.Spec)
}

// overdue reports whether a rollout has come no further for too long. Its status tells when
// it was nearer to its end than right before, as one is that comes back after a crash: that
// counts where nobody has looked before.
func (in Input) overdue(last *v1alpha1.RolloutStatus) bool {
	since := in.Sight.Since
	if since.IsZero() && last.ProgressedAt != nil {
		since = last.ProgressedAt.Time
	}
	return !since.IsZero() && in.Settings.ProgressDeadline > 0 && in.Sight.Now.Sub(since) >= in.Settings.ProgressDeadline
}

// keep has all generations of a cell stay; which of them goes is for a step to say. What
// the graph does not have any more stays with those that were made with it, as long as
// they run: the next may wait for its GPUs.
func (d *Decision) keep(cell world.Cell, s world.Sight) {
	for _, id := range cell.Live {
		if cell.Runs(id, s) {
			for _, m := range cell.Left(id) {
				d.Keep = append(d.Keep, m.Object)
			}
		}
		for _, m := range cell.Members(id) {
			d.Keep, d.Stay = append(d.Keep, m.Object), append(d.Stay, m)
		}
	}
}

// take carries out the step of a cell, and reports whether it was one.
func (d *Decision) take(state CellState, in Input) bool {
	cell, step := state.Cell, state.Step
	switch step.Action {
	case generation.Delete:
		gone := cell.Members(step.Generation)
		if !slices.ContainsFunc(in.Cells, func(o world.Cell) bool {
			return o.String() != cell.String() && len(o.Left(step.Generation)) > 0 && o.Runs(step.Generation, in.Sight)
		}) {
			gone = append(gone, cell.Left(step.Generation)...) // no other cell serves with it
		}
		for _, m := range gone {
			d.Keep = slices.DeleteFunc(d.Keep, func(o graph.Object) bool { return o == m.Object })
		}
		d.Stay = slices.DeleteFunc(d.Stay, func(m workload.Member) bool { return m.Generation == string(step.Generation) })
		return true
	case generation.Make:
		return d.make(state)
	case generation.Scale:
		return d.scale(state, in.Whole)
	default:
		return false
	}
}

// make has a generation rendered with its unit. One that is there, without replicas, is
// told of it role by role.
func (d *Decision) make(state CellState) bool {
	cell, step, unit := state.Cell, state.Step, state.World.Unit()
	if len(cell.Members(step.Generation)) > 0 {
		role := slices.Index(unit, slices.Max(unit))
		state.Step.Role, state.Step.Replicas = state.World.Roles[role].Name, unit[role]
		return d.scale(state, true)
	}
	if step.Generation != cell.Spec {
		return false // only what the graph asks for is rendered
	}
	for i, role := range state.World.Roles {
		d.Told[role.Name] = int32(unit[i])
		d.Expect = append(d.Expect, Expectation{
			Service: role.Name, Generation: string(step.Generation), Replicas: int32(unit[i]), Object: cell.Memberships(step.Generation)[role.Name].CliqueSet,
		})
	}
	return true
}

// scale tells a worker its replicas.
func (d *Decision) scale(state CellState, whole bool) bool {
	cell, step := state.Cell, state.Step
	rendered := step.Generation == cell.Spec && state.World.Target() == cell.Spec
	m, there := cell.Member(step.Generation, step.Role)
	told := Expectation{Service: step.Role, Generation: string(step.Generation), Replicas: int32(step.Replicas)}
	switch {
	case whole && there && m.Scaled == nil:
		return false // it has yet to be made, with what it was told first
	case rendered:
		d.Told[step.Role] = told.Replicas
		if !whole {
			told.Object = cell.Memberships(step.Generation)[step.Role].ObjectName
		}
	case !there:
		return false // the planner knows no other
	case m.Scaled != nil:
		d.Scale = append(d.Scale, workload.Rescaling{Object: m.Scaled, Replicas: told.Replicas})
	default:
		d.Resize = append(d.Resize, workload.Rescaling{Object: m.Object, Replicas: told.Replicas})
		told.Object = m.Object.GetName()
	}
	d.Expect = append(d.Expect, told)
	return true
}

// Shown is a graph as it is rendered in this reconcile: with the replicas that its
// workers are told to have now.
func (d Decision) Shown(g *graph.Graph) *graph.Graph {
	shown := *g
	shown.Components = slices.Clone(g.Components)
	for i := range shown.Components {
		c := &shown.Components[i]
		if told, rolls := d.Told[c.Name]; rolls {
			c.Replicas = told
			// What is told under the seed's contract is the user's number otherwise.
			c.Adapted = c.Adapted || c.Contract != graph.ContractV1
		}
	}
	shown.Serving = d.State.serving()
	return &shown
}

// serving are the replicas that count against evictions in cells whose generations are
// exchanged: those of complete generations, or where a fault has left none, of the one
// to go back to.
func (s State) serving() map[string]graph.Serving {
	var all map[string]graph.Serving
	for _, cell := range s.Rolling() {
		w := cell.World
		for i, role := range w.Roles {
			of := graph.Serving{Desired: int32(role.Desired)}
			count := func(counts func(generation.Generation) bool) {
				for _, g := range w.Generations {
					if counts(g) {
						of.Generations = append(of.Generations, string(g.ID))
						of.Replicas += int32(g.Roles[i].Want)
					}
				}
			}
			count(func(g generation.Generation) bool { return w.Complete(g.ID) })
			if len(of.Generations) == 0 {
				count(func(g generation.Generation) bool { return g.ID == w.Stable })
			}
			if len(of.Generations) == 0 {
				continue
			}
			slices.Sort(of.Generations)
			for _, g := range w.Generations {
				if !slices.Contains(of.Generations, string(g.ID)) {
					of.Others = append(of.Others, string(g.ID))
				}
			}
			slices.Sort(of.Others)
			if all == nil {
				all = map[string]graph.Serving{}
			}
			all[role.Name] = of
		}
	}
	return all
}

// Carried are the workers that are not rendered: they stay as they are stored, or their
// turn has not come.
func (d Decision) Carried() workload.Carried {
	carried := workload.Carried{Rolling: d.Rolling, Stay: d.Stay}
	for _, c := range d.Graph.Components {
		if _, told := d.Told[c.Name]; !told && slices.Contains(d.Rolling, c.Name) {
			carried.Left = append(carried.Left, c.Name)
		}
	}
	return carried
}

// Pruned are the children of which those go that are not desired.
func (d Decision) Pruned(owned []graph.Object) []graph.Object {
	return slices.DeleteFunc(slices.Clone(owned), func(o graph.Object) bool { return slices.Contains(d.Keep, o) })
}
