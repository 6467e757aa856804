// Package loraplan decides which LoRA calls to make to which engine, so that the
// adapter of a DynamoModel is loaded where it should be and nowhere else. Its
// input are the spec, the known endpoints and the outcomes of past calls.
package loraplan

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"time"
)

// Adapter is a LoRA adapter and where engines fetch it from.
type Adapter struct {
	Name string `json:"name"`
	URI  string `json:"uri"`
}

// Run is one life of an engine: adapters live in its memory, so a restarted
// engine is another run in the same pod.
type Run string

// Endpoint is an engine that serves the base model.
type Endpoint struct {
	Address netip.Addr
	Pod     string
	Run     Run
	Ready   bool
	// Leaving is an engine on its way out: whatever it holds goes with it.
	Leaving bool
}

// World is what surrounds a model.
type World struct {
	// Endpoints in the order of their pods' names.
	Endpoints []Endpoint
	// Services that the endpoints were found by, sorted.
	Services []string
	// Shared are adapters that other models of the same base want as well: they
	// are not this one's to unload.
	Shared []Adapter
	// Rival is an older model that fetches an adapter of the same name from
	// elsewhere; empty when there is none.
	Rival string
	// Holder is another model that engines may hold an adapter of the same name for,
	// from elsewhere: they would answer that they have it already. Empty when there is
	// none.
	Holder string
}

// Intent is what a model asks for.
type Intent struct {
	// Adapter to be loaded everywhere; nil for none.
	Adapter *Adapter
	// Noted are adapters that engines may hold on behalf of this model, as it was
	// written down before they were loaded.
	Noted []Adapter
}

// Verb is something an engine can be asked.
type Verb string

// The verbs of the LoRA API.
const (
	List   Verb = "list"
	Load   Verb = "load"
	Unload Verb = "unload"
)

// Task is one thing to be done at one engine.
type Task struct {
	Verb    Verb
	Adapter Adapter
}

// Call is a task for an engine.
type Call struct {
	Endpoint Endpoint
	Task     Task
	// Patient is a call to an engine that was slow before: it does not take a
	// place among those that are expected to be quick.
	Patient bool
	// Known are the adapters that names in the answer to a List stand for.
	Known []Adapter
}

// Outcome is what came of a call.
type Outcome struct {
	// Problem is why it failed; empty if it did not. The same failure gives the
	// same words, so that repeating it changes no status.
	Problem string
	// Loaded are the names that a List found.
	Loaded []string
	// Unsure is a call that got no answer after it was sent: it may have had, or may
	// yet have, its effect.
	Unsure bool
	// Absent is an unload of what the engine did not hold.
	Absent bool
	// Slow is a call that took longer than quick ones do.
	Slow bool
	// Skipped is a call that was not made: when its turn came, nobody wanted it any
	// more.
	Skipped bool
}

// Memory is what is known about the engines of one model.
type Memory struct {
	Engines map[Run]Engine
	// Inherited is a memory that begins after the model did, as in an operator
	// that was restarted: engines may hold adapters that it does not know of.
	Inherited bool
}

// Engine is what is known about one run.
type Engine struct {
	// Doubt means that it may hold adapters from before the memory began.
	Doubt bool
	Held  []Adapter
	// Perhaps are adapters that a load without an answer may have brought, or may
	// bring yet: engines go on with what they were asked.
	Perhaps []Adapter
	// Checked is when the engine itself last said what it holds. Check means that
	// it is to be asked again, Lost is what it did not hold any more then.
	Checked time.Time
	Check   bool
	Lost    []Adapter
	// Busy is an engine with a call under way; one at a time.
	Busy     bool
	Slow     bool
	Setbacks []Setback
	// Seen is when it was last among the endpoints.
	Seen time.Time
}

// Setback is a task that failed and when it may be tried again.
type Setback struct {
	Task    Task
	Times   int
	Until   time.Time
	Problem string
}

// Backoff is how long to wait after failures of one task at one engine.
type Backoff struct {
	First, Most time.Duration
}

// After is the wait after so many failures in a row.
func (b Backoff) After(times int) time.Duration {
	wait := b.First
	for range times - 1 {
		if wait *= 2; wait >= b.Most {
			return b.Most
		}
	}
	return min(wait, b.Most)
}

// After is what is known of an engine once a call came back.
func (e Engine) After(c Call, o Outcome, b Backoff, now time.Time) Engine {
	e.Busy = false
	if o.Unsure && c.Task.Verb == Load {
		e.Perhaps = Sorted(append(slices.Clone(e.Perhaps), c.Task.Adapter))
	}
	if o.Skipped {
		return e
	}
	e.Slow = o.Slow
	e.Held, e.Lost, e.Perhaps, e.Setbacks = slices.Clone(e.Held), slices.Clone(e.Lost), slices.Clone(e.Perhaps), slices.Clone(e.Setbacks)
	at := slices.IndexFunc(e.Setbacks, func(s Setback) bool { return s.Task == c.Task })
	if o.Absent && slices.ContainsFunc(e.Perhaps, c.Task.Adapter.sameName) && (at < 0 || e.Setbacks[at].Times < mostLooks) {
		o.Problem = fmt.Sprintf("%s %s: an earlier load of it may still be under way", Unload, c.Task.Adapter.Name)
	}
	if o.Problem != "" {
		if at < 0 {
			at, e.Setbacks = len(e.Setbacks), append(e.Setbacks, Setback{Task: c.Task})
		}
		s := &e.Setbacks[at]
		s.Times++
		s.Until, s.Problem = now.Add(b.After(s.Times)), o.Problem
		return e
	}
	if at >= 0 {
		e.Setbacks = slices.Delete(e.Setbacks, at, at+1)
	}
	switch c.Task.Verb {
	case List:
		e = e.listed(o.Loaded, c.Known)
		e.Checked = now
	case Load:
		e.Held = Sorted(append(e.Held, c.Task.Adapter))
		e.Lost = slices.DeleteFunc(e.Lost, func(a Adapter) bool { return a == c.Task.Adapter })
		e.Perhaps = slices.DeleteFunc(e.Perhaps, c.Task.Adapter.sameName)
		e.Checked, e.Check = now, false // it has just said that it holds it
	case Unload:
		e.Held = slices.DeleteFunc(e.Held, c.Task.Adapter.sameName)
		e.Perhaps = slices.DeleteFunc(e.Perhaps, c.Task.Adapter.sameName)
	}
	return e
}

// mostLooks is how often an adapter is looked for that a load without an answer may
// bring yet, before it is given up.
const mostLooks = 5

func (a Adapter) sameName(b Adapter) bool { return a.Name == b.Name }

// listed is what is known of an engine that has named all it holds. What is known
// already of an adapter that it still holds is not made doubtful by its name.
func (e Engine) listed(names []string, known []Adapter) Engine {
	var kept, lost []Adapter
	for _, a := range e.Held {
		if slices.Contains(names, a.Name) {
			kept = append(kept, a)
		} else {
			lost = append(lost, a)
		}
	}
	others := slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		return slices.ContainsFunc(kept, func(a Adapter) bool { return a.Name == name })
	})
	e.Doubt, e.Check = false, false
	e.Held, e.Lost = Sorted(append(kept, found(others, known)...)), lost
	e.Perhaps = slices.DeleteFunc(e.Perhaps, func(a Adapter) bool { return slices.Contains(names, a.Name) })
	return e
}

// found tells which known adapters the names in an answer stand for. Where a
// name may stand for several, its source is unknown; what is not known at all is
// somebody else's.
func found(names []string, known []Adapter) []Adapter {
	var held []Adapter
	for _, name := range names {
		var of []Adapter
		for _, a := range known {
			if a.Name == name && !slices.Contains(of, a) {
				of = append(of, a)
			}
		}
		switch len(of) {
		case 0:
		case 1:
			held = append(held, of[0])
		default:
			held = append(held, Adapter{Name: name})
		}
	}
	return Sorted(held)
}

// Sorted orders adapters and drops repetitions.
func Sorted(adapters []Adapter) []Adapter {
	out := slices.Clone(adapters)
	slices.SortFunc(out, func(a, b Adapter) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.URI, b.URI))
	})
	return slices.Compact(out)
}
