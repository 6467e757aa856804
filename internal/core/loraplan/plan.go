package loraplan

import (
	"maps"
	"slices"
	"time"
)

// forgetAfter is how long an engine is remembered that is no longer among the
// endpoints. Slices are rebalanced entry by entry, so one may be missing for a
// moment.
const forgetAfter = 5 * time.Minute

// Plan is what follows from what is known.
type Plan struct {
	Calls []Call
	// Note is what has to be written down before the calls are made.
	Note []Adapter
	// Wake is when a setback ends or an engine is to be asked again; zero if neither
	// lies ahead.
	Wake time.Time
	// Places are the ready endpoints and what is to be said of them.
	Places []Place
	// Pending are the endpoints that still have, or may have, something to unload.
	Pending []Place
	Memory  Memory
}

// Place is an endpoint as its user sees it.
type Place struct {
	Endpoint Endpoint
	// Loaded is true when the engine holds the adapter.
	Loaded  bool
	Problem string
}

// Next decides what to do. For one engine:
//
//	unknown --(inherited)--> doubt --list--> known
//	known: another source of the same name --unload--> not held --load--> held
//	       held, or perhaps held, but not wanted --unload--> gone
//	       asked longer than recheck ago --list--> known
//
// A failed task waits on its own; what can be done beside it is done. Engines that
// should hold an adapter are asked from time to time, because nobody tells when
// somebody else unloads it; a recheck of zero never asks.
func Next(in Intent, w World, m Memory, recheck time.Duration, now time.Time) Plan {
	p := Plan{Memory: Memory{Engines: remembered(m, now)}}
	for _, e := range w.Endpoints {
		engine, known := m.Engines[e.Run]
		if !known {
			engine.Doubt = m.Inherited
		}
		engine.Seen = now
		if in.Adapter != nil && recheck > 0 && !engine.Doubt && e.Ready && !e.Leaving {
			engine.Check = p.due(engine, recheck, now)
		}
		tasks := tasks(in, w, engine)
		engine.Setbacks = slices.DeleteFunc(slices.Clone(engine.Setbacks), func(s Setback) bool {
			return !engine.Busy && !slices.Contains(tasks, s.Task)
		})
		p.Memory.Engines[e.Run] = engine
		p.place(in, e, engine, tasks)
		if !engine.Busy && !e.Leaving {
			p.call(in, e, engine, tasks, now)
		}
	}
	p.Note = note(in, w, p.Memory)
	return p
}

// due reports whether an engine is to be asked again, or has the plan made anew
// when it is.
func (p *Plan) due(engine Engine, recheck time.Duration, now time.Time) bool {
	at := engine.Checked.Add(recheck)
	if engine.Check || !at.After(now) {
		return true
	}
	p.wake(at)
	return false
}

func (p *Plan) wake(at time.Time) {
	if p.Wake.IsZero() || at.Before(p.Wake) {
		p.Wake = at
	}
}

func remembered(m Memory, now time.Time) map[Run]Engine {
	engines := maps.Clone(m.Engines)
	if engines == nil {
		engines = map[Run]Engine{}
	}
	maps.DeleteFunc(engines, func(_ Run, e Engine) bool { return now.Sub(e.Seen) > forgetAfter && !e.Busy })
	return engines
}

// tasks are what is left to do at an engine, the first one first.
func tasks(in Intent, w World, e Engine) []Task {
	if e.Doubt {
		return []Task{{Verb: List}}
	}
	var first, later []Task
	if in.Adapter != nil && !slices.Contains(e.Held, *in.Adapter) {
		first = append(first, Task{Load, *in.Adapter})
	}
	for _, held := range slices.Concat(e.Held, e.Perhaps) {
		switch {
		case in.Adapter != nil && held == *in.Adapter, slices.Contains(w.Shared, held):
		case in.Adapter != nil && held.Name == in.Adapter.Name:
			// The engine would answer that it has it already.
			first = []Task{{Unload, held}}
		default:
			later = append(later, Task{Unload, held})
		}
	}
	if e.Check && in.Adapter != nil {
		later = append(later, Task{Verb: List})
	}
	return append(first, later...)
}

// Wanted reports whether a call that was planned earlier would still be planned: its
// engine runs on at the same address, and the task is left to do there.
func Wanted(in Intent, w World, e Engine, c Call) bool {
	there := slices.ContainsFunc(w.Endpoints, func(now Endpoint) bool {
		return now.Run == c.Endpoint.Run && now.Address == c.Endpoint.Address && !now.Leaving && now.takes(c.Task)
	})
	return there && slices.Contains(tasks(in, w, e), c.Task)
}

// Abandoned reports whether what a load has brought into an engine after its model
// was gone is nobody's: no other model wants an adapter of that name there.
func Abandoned(w World, load Call) bool {
	shared := slices.ContainsFunc(w.Shared, func(a Adapter) bool { return a.Name == load.Task.Adapter.Name })
	unload := load
	unload.Task.Verb = Unload
	return !shared && Wanted(Intent{}, w, Engine{Held: []Adapter{load.Task.Adapter}}, unload)
}

// takes reports whether a task can be done at an engine: one that is not ready may
// still have to give something back.
func (e Endpoint) takes(t Task) bool { return t.Verb == Unload || e.Ready }

// call plans the first task that is not held back.
func (p *Plan) call(in Intent, e Endpoint, engine Engine, tasks []Task, now time.Time) {
	for _, task := range tasks {
		if !e.takes(task) {
			continue
		}
		at := slices.IndexFunc(engine.Setbacks, func(s Setback) bool { return s.Task == task })
		if at >= 0 && engine.Setbacks[at].Until.After(now) {
			p.wake(engine.Setbacks[at].Until)
			continue
		}
		call := Call{Endpoint: e, Task: task, Patient: engine.Slow}
		if task.Verb == List {
			call.Known = recognised(in)
		}
		p.Calls = append(p.Calls, call)
		return
	}
}

// recognised are the adapters that an engine may hold on behalf of the model. An
// earlier operator wrote nothing down: the name says all there is to know.
func recognised(in Intent) []Adapter {
	known := slices.Clone(in.Noted)
	if in.Adapter != nil && !slices.ContainsFunc(known, func(a Adapter) bool { return a.Name == in.Adapter.Name }) {
		known = append(known, *in.Adapter)
	}
	return known
}

// place says what is to be seen of an endpoint.
func (p *Plan) place(in Intent, e Endpoint, engine Engine, tasks []Task) {
	if e.Leaving {
		return
	}
	place := Place{Endpoint: e, Loaded: in.Adapter != nil && slices.Contains(engine.Held, *in.Adapter)}
	if in.Adapter != nil && !place.Loaded && slices.Contains(engine.Lost, *in.Adapter) {
		place.Problem = "unloaded by somebody else, loading it again"
	}
	for _, task := range tasks {
		if at := slices.IndexFunc(engine.Setbacks, func(s Setback) bool { return s.Task == task }); at >= 0 {
			place.Problem = engine.Setbacks[at].Problem
			break
		}
	}
	if e.Ready {
		p.Places = append(p.Places, place)
	}
	unloading := slices.ContainsFunc(tasks, func(t Task) bool { return t.Verb == Unload })
	if engine.Busy || unloading || engine.Doubt && e.Ready {
		p.Pending = append(p.Pending, place)
	}
}

// note is what may be in engines from now on: what is wanted, and what was
// wanted before for as long as some engine may hold it.
func note(in Intent, w World, m Memory) []Adapter {
	var noted []Adapter
	if in.Adapter != nil {
		anywhere := slices.ContainsFunc(w.Endpoints, func(e Endpoint) bool { return e.Ready && !e.Leaving })
		if anywhere || slices.Contains(in.Noted, *in.Adapter) {
			noted = append(noted, *in.Adapter)
		}
	}
	for _, a := range in.Noted {
		if in.Adapter != nil && a == *in.Adapter || slices.Contains(w.Shared, a) {
			continue
		}
		held := slices.ContainsFunc(w.Endpoints, func(e Endpoint) bool {
			engine := m.Engines[e.Run]
			return !e.Leaving && (engine.Busy || engine.Doubt || slices.ContainsFunc(slices.Concat(engine.Held, engine.Perhaps), func(h Adapter) bool { return h.Name == a.Name && (h == a || h.URI == "") }))
		})
		if held {
			noted = append(noted, a)
		}
	}
	return Sorted(noted)
}
