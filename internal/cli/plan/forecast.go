package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/generation"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/inplace"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/world"
	"github.com/dynamo-operator/dynamo-operator/internal/core/workload"
)

// Plan is what a change of one graph does.
type Plan struct {
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	Fields    []Field   `json:"fields"`
	Services  []Service `json:"services"`
	GPUs      GPUs      `json:"gpus"`
	// Capacity is the least that cells have to serve with, if every service is at its
	// lowest at the same time.
	Capacity []Capacity `json:"capacity,omitempty"`
	// Rollouts are those by generations.
	Rollouts []Rollout `json:"rollouts,omitempty"`
	// Seconds is how long it takes; nil if that is unknown.
	Seconds *int     `json:"seconds,omitempty"`
	Notes   []string `json:"notes,omitempty"`

	elsewhere bool
	// inTurn says that services are replaced one after the other, for a restart.
	inTurn bool
	// back are services that return to the generation that was there before.
	back []string
}

// Field is one that differs.
type Field struct {
	Path string `json:"path"`
	Old  string `json:"old"`
	New  string `json:"new"`
	// Replaces are the services whose pods are replaced for it, Scales those that get
	// another number of them.
	Replaces []string `json:"replaces,omitempty"`
	Scales   []string `json:"scales,omitempty"`
	// Together says that it means nothing without the others.
	Together bool `json:"together,omitempty"`
}

// Action is what happens to a service.
type Action string

const (
	Unchanged Action = "Unchanged"
	Scaled    Action = "Scaled"
	Created   Action = "Created"
	Removed   Action = "Removed"
	// InPlace is a rolling update by the service's own workload.
	InPlace Action = "InPlace"
	// ByGeneration puts workers of a generation of their own in place of those that run.
	ByGeneration Action = "ByGeneration"
	// GoesBack leaves a candidate for the generation that was there before.
	GoesBack Action = "GoesBack"
	// Recreated stops every pod before the first new one starts.
	Recreated Action = "Recreated"
	// OnDelete replaces a pod when somebody deletes it.
	OnDelete Action = "OnDelete"
)

// Service is what happens to one service.
type Service struct {
	Name     string `json:"name"`
	Action   Action `json:"action"`
	Workload string `json:"workload"`
	// Replicas are those now and after.
	Replicas [2]int `json:"replicas"`
	// Surge and Unavailable are those of its strategy, in replicas.
	Surge       int    `json:"surge"`
	Unavailable int    `json:"unavailable"`
	Steps       []Step `json:"steps,omitempty"`
	// Lowest is how few replicas serve at some time.
	Lowest int `json:"lowest"`
	// Starts are how many times something has to start before it can go on.
	Starts int `json:"starts"`
	// StartSeconds is the median of so many pods that run, and how long a pod must stay
	// ready to count; nil if there are none.
	StartSeconds *int `json:"startSeconds,omitempty"`
	StartPods    int  `json:"startPods,omitempty"`
}

// Step is what happens until everything that was started serves.
type Step struct {
	Start int `json:"start"`
	// StartOld are pods from before the change: a Deployment that is to have more of them
	// is scaled first, and replaced then.
	StartOld int `json:"startOld,omitempty"`
	Stop     int `json:"stop"`
	Old      int `json:"old"`
	New      int `json:"new"`
	Lowest   int `json:"lowest"`
}

// GPUs are those that a graph holds.
type GPUs struct {
	Now  int `json:"now"`
	Peak int `json:"peak"`
	// PeakLeaving counts those of pods that are still shutting down as well.
	PeakLeaving int `json:"peakLeaving"`
	After       int `json:"after"`
}

// Capacity is the least of a cell.
type Capacity struct {
	Cell string `json:"cell"`
	// Effective are the effective replicas, by service: none if one service has none.
	Effective map[string]int `json:"effective"`
	// Split says that pods from before and after the change do not find each other.
	Split bool `json:"split,omitempty"`
}

// Changes reports whether anything happens.
func (p Plan) Changes() bool {
	return len(p.Fields) > 0 || slices.ContainsFunc(p.Services, func(s Service) bool { return s.Action != Unchanged })
}

// Interrupted reports whether a service that runs has no replica for a while, or none
// that finds those it works with.
func (p Plan) Interrupted() bool {
	return slices.ContainsFunc(p.Services, Service.interrupted) || slices.ContainsFunc(p.Capacity, func(c Capacity) bool { return c.Split }) || slices.ContainsFunc(p.Rollouts, Rollout.under)
}

func (s Service) interrupted() bool {
	return (s.Action == InPlace || s.Action == Recreated) && s.Replicas[0] > 0 && s.Replicas[1] > 0 && s.Lowest == 0
}

// moved notes that another provider takes over: everything is taken down there before
// it is made here.
func (p *Plan) moved(from, to workload.Provider) {
	if from == to {
		return
	}
	p.elsewhere = true
	p.Notes = append(p.Notes, fmt.Sprintf("the graph moves from %s to %s: all of it is taken down before it is made anew", from, to))
}

// forecast works out what happens to each service, and to all of them together.
func (p *Plan) forecast(before, after map[string]service, seen sight, cells []generation.Cell, exchanged []turnover) {
	names := maps.Clone(before)
	if names == nil {
		names = map[string]service{}
	}
	maps.Copy(names, after)
	var peaks, most [2]int
	add := func(now int, peak [2]int) {
		for i := range peaks {
			if p.inTurn { // of which one at a time has more than it has now
				most[i] = max(most[i], peak[i]-now)
				peak[i] = now
			}
			peaks[i] += peak[i]
		}
	}
	by := map[string]Rollout{}
	for _, cell := range exchanged {
		r, peak := p.exchange(cell, before, after)
		p.Rollouts = append(p.Rollouts, r)
		now := 0
		for _, name := range cell.Services {
			by[name] = r
			now += before[name].replicas() * before[name].gpus()
		}
		add(now, peak)
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		was, ran := before[name]
		is, runs := after[name]
		s, waves := p.service(name, was, ran, is, runs)
		least := is.minReady
		r, rolls := by[name]
		if rolls {
			surge, unavailable := world.Tolerance(is.component)
			action := ByGeneration
			if r.Back {
				action = GoesBack
			}
			s = Service{Name: name, Action: action, Workload: is.kind, Replicas: s.Replicas, Surge: surge, Unavailable: unavailable, Lowest: r.Lowest[name], Starts: r.starts(name)}
			least = int(world.MinReady(is.component).Seconds())
		}
		if median, pods := seen.starts(name); pods > 0 {
			seconds := max(1, int(median.Round(time.Second).Seconds())+least) // servers tell whole seconds
			s.StartSeconds, s.StartPods = &seconds, pods
		}
		p.Services = append(p.Services, s)
		held := [2]int{max(was.replicas()*was.gpus(), is.replicas()*is.gpus())}
		held[1] = held[0]
		for _, w := range waves {
			running := w.HeldOld*was.gpus() + w.HeldNew*is.gpus()
			held[0] = max(held[0], running)
			held[1] = max(held[1], running+w.Leaving*was.gpus())
		}
		p.GPUs.Now += was.replicas() * was.gpus()
		p.GPUs.After += is.replicas() * is.gpus()
		if rolls {
			continue // it is in the peak of its cell
		}
		add(was.replicas()*was.gpus(), held)
	}
	p.GPUs.Peak, p.GPUs.PeakLeaving = peaks[0]+most[0], peaks[1]+most[1]
	p.capacity(cells, before, after)
	p.time(slices.ContainsFunc(slices.Collect(maps.Values(after)), func(s service) bool { return s.kind == "PodCliqueSet" }))
}

// service is what happens to one service.
func (p *Plan) service(name string, was service, ran bool, is service, runs bool) (Service, []inplace.Wave) {
	s := Service{Name: name, Action: Unchanged, Workload: is.kind, Replicas: [2]int{was.replicas(), is.replicas()}, Lowest: min(was.replicas(), is.replicas())}
	replaced := was.kind != "" && is.kind != "" && was.templates != is.templates
	strategy := is.strategy
	switch {
	case !ran:
		s.Action, s.Starts = Created, min(1, is.replicas())
		return s, nil
	case !runs:
		s.Action, s.Workload = Removed, was.kind
		return s, nil
	case replaced && (was.kind != is.kind || p.elsewhere):
		strategy = inplace.Strategy{Recreate: true}
		s.Action = Recreated
	case replaced && is.onDelete:
		s.Action = OnDelete
		return s, nil
	case replaced && strategy.Recreate:
		s.Action = Recreated
	case replaced:
		s.Action = InPlace
	case was.replicas() != is.replicas():
		s.Action = Scaled
		if is.replicas() > was.replicas() {
			s.Starts = 1
		}
		return s, nil
	default:
		return s, nil
	}
	s.Surge, s.Unavailable = strategy.Surge, strategy.Unavailable
	if strategy.Recreate {
		s.Surge, s.Unavailable = 0, is.replicas()
	}
	waves := strategy.Roll(was.replicas(), is.replicas())
	for _, w := range waves {
		s.Steps = append(s.Steps, Step{w.Start, w.StartOld, w.Stop, w.Old, w.New, w.Lowest})
		s.Lowest = min(s.Lowest, w.Lowest)
		if w.Start > 0 {
			s.Starts++
		}
	}
	return s, waves
}

// capacity is what is left of each cell if all of its services are at their lowest at
// once, which nothing keeps them from: each is replaced by itself.
func (p *Plan) capacity(cells []generation.Cell, before, after map[string]service) {
	for _, cell := range cells {
		var rolls []string
		for _, s := range p.Services {
			if slices.Contains(cell.Services, s.Name) && (s.Action == InPlace || s.Action == Recreated) {
				rolls = append(rolls, s.Name)
			}
		}
		if len(rolls) == 0 {
			continue
		}
		was, is := before[rolls[0]].namespace(), after[rolls[0]].namespace()
		c := Capacity{Cell: cell.String(), Effective: p.lowest(cell), Split: was != is}
		switch {
		case c.Split:
			for name := range c.Effective {
				c.Effective[name] = 0
			}
			p.Notes = append(p.Notes, fmt.Sprintf("the Dynamo namespace of %s changes from %s to %s: pods from before and after the change, frontends too, do not all find each other, and each service is replaced by itself; for a while there may be none that serve together",
				cell, was, is))
		case len(cell.Services) > 1:
			p.Notes = append(p.Notes, fmt.Sprintf("generations are not isolated: pods of %s from before and after the change share a Dynamo namespace, and exchange requests in %s",
				strings.Join(rolls, " and "), cell))
		}
		p.Capacity = append(p.Capacity, c)
	}
	p.warn()
}

// lowest are the effective replicas of a cell whose services are all at their lowest.
// Old and new pods are one generation, since they share a Dynamo namespace.
func (p *Plan) lowest(cell generation.Cell) map[string]int {
	var w generation.World
	var only generation.Generation
	for _, s := range p.Services {
		if slices.Contains(cell.Services, s.Name) {
			w.Roles = append(w.Roles, generation.Role{Name: s.Name, Entry: slices.Contains(cell.Entries, s.Name), Desired: s.Replicas[1]})
			only.Roles = append(only.Roles, generation.Replicas{Want: s.Lowest, Routable: s.Lowest})
		}
	}
	w.Generations = []generation.Generation{only}
	_, effective := generation.Capacity(w)
	by := map[string]int{}
	for i, role := range w.Roles {
		by[role.Name] = effective[i]
	}
	return by
}

// warn says what somebody has to know before they go on.
func (p *Plan) warn() {
	for _, s := range p.Services {
		if s.interrupted() {
			p.Notes = append(p.Notes, fmt.Sprintf("no replica of %s serves for a while", s.Name))
		}
		if s.Action == OnDelete {
			p.Notes = append(p.Notes, fmt.Sprintf("pods of %s stay as they are until somebody deletes them", s.Name))
		}
	}
}

// time is how long everything takes: workloads go on at the same time, the cliques of
// a set one after the other.
func (p *Plan) time(oneByOne bool) {
	total, unknown := 0, []string{}
	for _, s := range p.Services {
		switch {
		case s.Starts == 0 || s.Action == ByGeneration || s.Action == GoesBack:
		case s.StartSeconds == nil:
			unknown = append(unknown, s.Name)
		case oneByOne || p.inTurn:
			total += s.Starts * *s.StartSeconds
		default:
			total = max(total, s.Starts**s.StartSeconds)
		}
	}
	for _, r := range p.Rollouts {
		seconds, known := r.seconds(p.Services)
		if !known {
			unknown = append(unknown, r.Cell)
		}
		if p.inTurn {
			total += seconds
		}
		total = max(total, seconds)
	}
	if len(unknown) == 0 {
		p.Seconds = &total
	}
}

// explain says what the fields alone do not.
func (p *Plan) explain(before, after map[string]service) {
	told := map[string]bool{}
	for _, f := range p.Fields {
		for _, name := range f.Replaces {
			told[name] = true
		}
	}
	for _, name := range differing(before, after) {
		if !told[name] && !slices.Contains(p.back, name) {
			p.Notes = append(p.Notes, fmt.Sprintf("pods of %s are replaced for several of these fields together", name))
		}
	}
}
