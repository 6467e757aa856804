package plan

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	breaking "github.com/dynamo-operator/dynamo-operator/internal/core/rollout/change"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/generation"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/policy"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/world"
	"github.com/dynamo-operator/dynamo-operator/internal/core/workload"
)

// Rollout is how one generation of a cell replaces another.
type Rollout struct {
	Cell string `json:"cell"`
	// Generation is the id of the new one; the one that runs has none in a manifest that
	// was never applied.
	Generation string `json:"generation"`
	// Back says that it is the stable one, to which a rollout returns.
	Back  bool          `json:"back,omitempty"`
	Steps []RolloutStep `json:"steps"`
	// Writes are one a step, and one for each object that is deleted; Written are the
	// kinds that they are of.
	Writes  int      `json:"writes"`
	Written []string `json:"written"`
	// Floor is the least that has to serve, and Lowest what serves at least, by service.
	Floor  map[string]int `json:"floor"`
	Lowest map[string]int `json:"lowest"`
	// Blocked is why it does not come to its end.
	Blocked string `json:"blocked,omitempty"`

	// idle says that nothing served before.
	idle bool
	// added are services that come with it.
	added []string
	// waves are the services of which something starts at the same time.
	waves [][]string
}

// RolloutStep is one write.
type RolloutStep struct {
	// New says that it is of the generation to arrive at, Generation which of the others it
	// is of where there are several.
	New        bool   `json:"new"`
	Generation string `json:"generation,omitempty"`
	// Make says that the generation is made, with a replica of every service.
	Make    bool   `json:"make,omitempty"`
	Service string `json:"service,omitempty"`
	// Replicas is what the service is told to have, unless the generation is deleted.
	Replicas int `json:"replicas"`
	// Delete says that the generation is over: what ran it goes.
	Delete bool `json:"delete,omitempty"`
	// Told are the replicas of each service after it, of the old generation and of the
	// new one, and Effective how many serve until what it starts has come up.
	Told      map[string][2]int `json:"told"`
	Effective map[string]int    `json:"effective"`
}

// turnover is a cell that a generation replaces.
type turnover struct {
	generation.Cell
	id string
	// whole says that a generation is made in one piece.
	whole bool
	// live are the generations that there are, if there are several, and stable the one
	// that was completed last; back says that it is arrived at.
	live   []generation.Generation
	stable generation.ID
	back   bool
}

// exchanged are the cells of a graph that a change replaces by a generation. A restart
// replaces all of them.
func (c *comparison) exchanged(before, after map[string]service, running, g *graph.Graph, restart string) []turnover {
	said, _ := policy.Parse(c.desired.Annotations) // what cannot be read was refused
	by, able := c.renderer.Platform.GraphBuilder(c.desired, c.renderer.Provider(c.desired)).(workload.Generational)
	if c.renderer.Rules.InPlace || !able || by.Unfit(running) != "" || by.Unfit(g) != "" || said.Isolation == policy.IsolationNone || !apart(running, g) ||
		c.renderer.Provider(c.seen.graph) != c.renderer.Provider(c.desired) {
		return nil
	}
	if g.Paired && !running.Paired {
		running = running.Pair(nil, graph.Running{}) // its frontends join its workers
	}
	was := generation.Cells(running)
	var all []turnover
	for _, cell := range generation.Cells(g) {
		// What comes with a change says nothing about those that run.
		ran := slices.DeleteFunc(slices.Clone(cell.Services), func(name string) bool {
			_, there := before[name]
			return !there || !slices.ContainsFunc(was, func(o generation.Cell) bool { return slices.Contains(o.Services, name) })
		})
		changed := slices.ContainsFunc(ran, func(name string) bool {
			return len(breaking.Breaking(before[name].component, after[name].component)) > 0
		})
		t := turnover{Cell: cell, id: g.WorkersDigest(), whole: by.Whole(), live: c.standing.generations(cell)}
		if len(t.live) > 0 {
			t.stable = generation.ID(c.standing.rollout.Stable)
		}
		switch {
		case c.standing.asks(g): // what is under way goes on
		case c.standing.returns(cell, after):
			t.id, t.back = c.standing.rollout.Stable, true
			if len(t.live) > 0 {
				all = append(all, t)
			}
		case changed: // it is started once, for a restart too
			all = append(all, t)
		case len(ran) > 0 && restart != "":
			t.id = string(world.RestartID(g, restart))
			all = append(all, t)
		}
	}
	return all
}

// apart reports whether generations of a graph are kept apart: by their contract, or
// because each has frontends of its own.
func apart(was, is *graph.Graph) bool {
	return is.Paired || was.Contract == graph.ContractV1 && is.Contract == graph.ContractV1
}

// exchange foresees a rollout of a cell. It returns the GPUs held at the peak, without
// and with those of pods that shut down.
func (p *Plan) exchange(cell turnover, before, after map[string]service) (r Rollout, peak [2]int) {
	const old = "the one that runs" // no id has a space
	r = Rollout{Cell: cell.String(), Generation: cell.id, Back: cell.back, Floor: map[string]int{}, Lowest: map[string]int{}}
	r.Written = cell.written(after)
	w := generation.World{Spec: generation.ID(cell.id), Stable: old, Whole: cell.whole, Paired: cell.Paired}
	running := generation.Generation{ID: old}
	for _, name := range cell.Services {
		is := after[name]
		was, ran := before[name]
		surge, unavailable := world.Tolerance(is.component)
		w.Roles = append(w.Roles, generation.Role{
			Name: name, Entry: slices.Contains(cell.Entries, name), Desired: is.replicas(), Surge: surge, Unavailable: unavailable, GPUs: is.gpus(),
		})
		running.Roles = append(running.Roles, generation.Replicas{Want: was.replicas(), Exist: was.replicas(), Routable: was.replicas(), Absent: !ran})
		r.Lowest[name] = was.replicas()
		r.idle = r.idle || ran && was.replicas() == 0 && is.replicas() > 0
	}
	w.Generations = []generation.Generation{running}
	if len(cell.live) > 0 {
		w.Generations, w.Stable = cell.live, cell.stable
	}
	for i, floor := range generation.Floor(w.Roles) {
		if running.Roles[i].Want > 0 || w.Roles[i].Desired > 0 { // nothing of others is exchanged
			r.Floor[w.Roles[i].Name] = floor
		}
		if w.Lacks(i) { // what runs serves without it
			r.Floor[w.Roles[i].Name] = 0
			r.added = append(r.added, w.Roles[i].Name)
		}
	}
	var starting []string
	last := generation.Foresee(w, func(now generation.World, step generation.Step) {
		told := map[string][2]int{}
		var held [2]int
		for _, g := range now.Generations {
			for i, role := range now.Roles {
				of, at := before[role.Name], 0
				if g.ID == w.Spec {
					of, at = after[role.Name], 1
				}
				n := told[role.Name]
				n[at] += g.Roles[i].Want
				told[role.Name] = n
				held[0] += g.Roles[i].Want * of.gpus()
				held[1] += g.Roles[i].Held() * of.gpus()
			}
		}
		peak[0], peak[1] = max(peak[0], held[0]), max(peak[1], held[1])
		_, effective := generation.Capacity(now)
		for i, role := range now.Roles {
			r.Lowest[role.Name] = min(r.Lowest[role.Name], effective[i])
		}
		if step.Action == generation.Wait {
			if len(starting) > 0 {
				r.waves, starting = append(r.waves, starting), nil
			}
			return
		}
		s := RolloutStep{New: step.Generation == w.Spec, Service: step.Role, Replicas: step.Replicas, Make: step.Action == generation.Make, Delete: step.Action == generation.Delete, Told: told}
		r.Writes++
		if !s.New && len(cell.live) > 1 && !cell.back {
			s.Generation = string(step.Generation)
		}
		switch {
		case s.Delete && !cell.whole:
			r.Writes += len(now.Roles) - len(r.added) - 1
		case s.Delete:
		case s.Make:
			for i, n := range now.Postponed().Unit() {
				if n > 0 {
					starting = append(starting, now.Roles[i].Name)
				}
				of := told[now.Roles[i].Name]
				of[1] = n
				told[now.Roles[i].Name] = of
			}
		default:
			at := 0
			if s.New {
				at = 1
			}
			n, had := told[step.Role], now.Wanted(step.Generation, step.Role)
			if step.Replicas > had && !slices.Contains(starting, step.Role) {
				starting = append(starting, step.Role)
			}
			n[at] += step.Replicas - had
			told[step.Role] = n
		}
		next := now.After(step)
		_, effective = generation.Capacity(next)
		s.Effective = map[string]int{}
		for i, role := range now.Roles {
			s.Effective[role.Name] = effective[i]
		}
		r.Steps = append(r.Steps, s)
	})
	if last.Phase == generation.PhaseBlocked {
		r.Blocked = string(cmp.Or(last.Reason, generation.ReasonNoPath))
	}
	return r, peak
}

// written are the kinds of objects by which a generation is told its replicas.
func (t turnover) written(after map[string]service) []string {
	if !t.whole {
		return []string{v1alpha1.KindDynamoComponentDeployment}
	}
	kinds := []string{"PodCliqueSet"}
	for _, name := range t.Services {
		if after[name].component.Multinode() {
			kinds = append(kinds, "PodCliqueScalingGroup")
		} else {
			kinds = append(kinds, "PodClique")
		}
	}
	slices.Sort(kinds[1:])
	return slices.Compact(kinds)
}

// starts is how many times something of a service has to start before it can go on.
func (r Rollout) starts(service string) int {
	n := 0
	for _, wave := range r.waves {
		if slices.Contains(wave, service) {
			n++
		}
	}
	return n
}

// seconds is how long it takes, if the start of each of its services was measured.
func (r Rollout) seconds(services []Service) (total int, known bool) {
	for _, wave := range r.waves {
		longest := 0
		for _, s := range services {
			if !slices.Contains(wave, s.Name) {
				continue
			}
			if s.StartSeconds == nil {
				return 0, false
			}
			longest = max(longest, *s.StartSeconds)
		}
		total += longest
	}
	return total, true
}

// under reports whether less serves for a while than has to, or the end is not reached.
func (r Rollout) under() bool {
	if r.Blocked != "" || r.idle {
		return r.Blocked != ""
	}
	for name, floor := range r.Floor {
		if r.Lowest[name] < max(1, floor) && !slices.Contains(r.added, name) {
			return true
		}
	}
	return false
}

func (r Rollout) table(out io.Writer) error {
	var services []string
	for name := range r.Floor {
		services = append(services, name)
	}
	slices.Sort(services)
	var written []string
	for _, kind := range r.Written {
		written = append(written, kind+"s")
	}
	to, columns := "generation", "OLD/NEW"
	if r.Back {
		to, columns = "back to generation", "CANDIDATE/STABLE"
	}
	fmt.Fprintf(out, "\n%s: %s %s, %s of %s\n", r.Cell, to, r.Generation, count(r.Writes, "write"), strings.Join(written, ", "))
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprint(w, "STEP")
	for _, name := range services {
		fmt.Fprintf(w, "\t%s %s", strings.ToUpper(name), columns)
	}
	var floors []string
	for _, name := range services {
		floors = append(floors, fmt.Sprint(r.Floor[name]))
	}
	fmt.Fprintf(w, "\tEFFECTIVE (FLOOR %s)\n", strings.Join(floors, "/"))
	for i, s := range r.Steps {
		fmt.Fprintf(w, "%d %s", i+1, s.does(r.Back))
		var effective []string
		for _, name := range services {
			fmt.Fprintf(w, "\t%d/%d", s.Told[name][0], s.Told[name][1])
			effective = append(effective, fmt.Sprint(s.Effective[name]))
		}
		fmt.Fprintf(w, "\t%s\n", strings.Join(effective, "/"))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	var lowest []string
	for _, name := range services {
		lowest = append(lowest, fmt.Sprintf("%s %d", name, r.Lowest[name]))
	}
	_, err := fmt.Fprintf(out, "lowest effective replicas of %s: %s\n", r.Cell, strings.Join(lowest, ", "))
	if r.Blocked != "" {
		fmt.Fprintf(out, "it stops there: %s\n", r.Blocked)
	}
	return err
}

func (s RolloutStep) does(back bool) string {
	which := "old"
	switch {
	case s.Generation != "" && s.Delete:
		return "delete " + s.Generation
	case s.Generation != "":
		which = s.Generation
	case s.New && back:
		which = "stable"
	case s.New:
		which = "new"
	case back:
		which = "candidate"
	}
	switch {
	case s.Make:
		return "create the " + which
	case s.Delete:
		return "delete the " + which
	}
	return fmt.Sprintf("%s %s to %d", which, s.Service, s.Replicas)
}
