package loraplan

import (
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

var (
	noon  = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	old   = Adapter{"old", "s3://b/old"}
	wants = Adapter{"new", "s3://b/new"}
	moved = Adapter{"new", "s3://b/elsewhere"}
)

func at(pod string) Endpoint {
	return Endpoint{Address: netip.MustParseAddr("10.0.0.1"), Pod: pod, Run: Run(pod), Ready: true}
}

func unready(e Endpoint) Endpoint { e.Ready = false; return e }
func leaving(e Endpoint) Endpoint { e.Leaving = true; return e }

func failed(task Task, until time.Time) Setback {
	return Setback{Task: task, Times: 1, Until: until, Problem: string(task.Verb) + " failed"}
}

// said is a plan in short: which pod is asked what.
type said struct {
	Pod  string
	Task Task
}

func TestNext(t *testing.T) {
	load, unloadOld, unloadMoved := Task{Load, wants}, Task{Unload, old}, Task{Unload, moved}
	cases := map[string]struct {
		adapter *Adapter
		noted   []Adapter
		world   World
		memory  Memory
		recheck time.Duration
		calls   []said
		note    []Adapter
		wake    time.Time
		loaded  []string
		pending int
	}{
		"a new engine is loaded": {
			adapter: &wants, world: World{Endpoints: []Endpoint{at("a")}},
			calls: []said{{"a", load}}, note: []Adapter{wants},
		},
		"an engine that has it is left alone": {
			adapter: &wants, noted: []Adapter{wants}, world: World{Endpoints: []Endpoint{at("a")}},
			memory: Memory{Engines: map[Run]Engine{"a": {Held: []Adapter{wants}}}},
			note:   []Adapter{wants}, loaded: []string{"a"},
		},
		"nothing is written down before there is an engine": {adapter: &wants},
		"an engine that is not ready is not loaded": {
			adapter: &wants, world: World{Endpoints: []Endpoint{unready(at("a"))}},
		},
		"an engine on its way out is not loaded": {
			adapter: &wants, world: World{Endpoints: []Endpoint{leaving(at("a"))}},
		},
		"a call under way is not repeated": {
			adapter: &wants, noted: []Adapter{wants}, world: World{Endpoints: []Endpoint{at("a")}},
			memory: Memory{Engines: map[Run]Engine{"a": {Busy: true}}},
			note:   []Adapter{wants}, pending: 1,
		},
		"a restarted engine is another one": {
			adapter: &wants, noted: []Adapter{wants}, world: World{Endpoints: []Endpoint{at("a/2")}},
			memory: Memory{Engines: map[Run]Engine{"a/1": {Held: []Adapter{wants}, Seen: noon}}},
			calls:  []said{{"a/2", load}}, note: []Adapter{wants},
		},
		"a failed load waits": {
			adapter: &wants, noted: []Adapter{wants}, world: World{Endpoints: []Endpoint{at("a"), at("b")}},
			memory: Memory{Engines: map[Run]Engine{"a": {Setbacks: []Setback{failed(load, noon.Add(time.Second))}}}},
			calls:  []said{{"b", load}}, note: []Adapter{wants}, wake: noon.Add(time.Second),
		},
		"until its time has come": {
			adapter: &wants, noted: []Adapter{wants}, world: World{Endpoints: []Endpoint{at("a")}},
			memory: Memory{Engines: map[Run]Engine{"a": {Setbacks: []Setback{failed(load, noon)}}}},
			calls:  []said{{"a", load}}, note: []Adapter{wants},
		},
		"a new source is tried at once": {
			adapter: &wants, noted: []Adapter{moved}, world: World{Endpoints: []Endpoint{at("a")}},
			memory: Memory{Engines: map[Run]Engine{"a": {Setbacks: []Setback{failed(Task{Load, moved}, noon.Add(time.Hour))}}}},
			calls:  []said{{"a", load}}, note: []Adapter{wants},
		},
		"a renamed adapter is loaded before the old one is dropped": {
			adapter: &wants, noted: []Adapter{old}, world: World{Endpoints: []Endpoint{at("a")}},
			memory: Memory{Engines: map[Run]Engine{"a": {Held: []Adapter{old}}}},
			calls:  []said{{"a", load}}, note: []Adapter{wants, old}, pending: 1,
		},
		"then the old one is": {
			adapter: &wants, noted: []Adapter{wants, old}, world: World{Endpoints: []Endpoint{at("a")}},
			memory: Memory{Engines: map[Run]Engine{"a": {Held: []Adapter{wants, old}}}},
			calls:  []said{{"a", unloadOld}}, note: []Adapter{wants, old}, loaded: []string{"a"}, pending: 1,
		},
		"a load that fails does not keep the old one": {
			adapter: &wants, noted: []Adapter{wants, old}, world: World{Endpoints: []Endpoint{at("a")}},
			memory: Memory{Engines: map[Run]Engine{"a": {Held: []Adapter{old}, Setbacks: []Setback{failed(load, noon.Add(time.Hour))}}}},
			calls:  []said{{"a", unloadOld}}, note: []Adapter{wants, old}, wake: noon.Add(time.Hour), pending: 1,
		},
		"what no engine holds any more is crossed out": {
			adapter: &wants, noted: []Adapter{wants, old}, world: World{Endpoints: []Endpoint{at("a")}},
			memory: Memory{Engines: map[Run]Engine{"a": {Held: []Adapter{wants}}}},
			note:   []Adapter{wants}, loaded: []string{"a"},
		},
		"another source of the same name has to go first": {
			adapter: &wants, noted: []Adapter{moved}, world: World{Endpoints: []Endpoint{at("a")}},
			memory: Memory{Engines: map[Run]Engine{"a": {Held: []Adapter{moved}}}},
			calls:  []said{{"a", unloadMoved}}, note: []Adapter{moved, wants}, pending: 1,
		},
		"and while it does not, nothing is loaded over it": {
			adapter: &wants, noted: []Adapter{moved, wants}, world: World{Endpoints: []Endpoint{at("a")}},
			memory: Memory{Engines: map[Run]Engine{"a": {Held: []Adapter{moved}, Setbacks: []Setback{failed(unloadMoved, noon.Add(time.Hour))}}}},
			note:   []Adapter{moved, wants}, wake: noon.Add(time.Hour), pending: 1,
		},
		"engines from before the memory are asked first": {
			adapter: &wants, noted: []Adapter{wants}, world: World{Endpoints: []Endpoint{at("a")}}, memory: Memory{Inherited: true},
			calls: []said{{"a", Task{Verb: List}}}, note: []Adapter{wants}, pending: 1,
		},
		"those that come later are not": {
			adapter: &wants, noted: []Adapter{wants}, world: World{Endpoints: []Endpoint{at("a"), at("b")}},
			memory: Memory{Engines: map[Run]Engine{"a": {Held: []Adapter{wants}}}},
			calls:  []said{{"b", load}}, note: []Adapter{wants}, loaded: []string{"a"},
		},
		"what a load without an answer may have brought is unloaded once it is not wanted": {
			noted: []Adapter{wants}, world: World{Endpoints: []Endpoint{at("a")}},
			memory: Memory{Engines: map[Run]Engine{"a": {Perhaps: []Adapter{wants}}}},
			calls:  []said{{"a", Task{Unload, wants}}}, note: []Adapter{wants}, pending: 1,
		},
		"and is loaded again while it is": {
			adapter: &wants, noted: []Adapter{wants}, world: World{Endpoints: []Endpoint{at("a")}},
			memory: Memory{Engines: map[Run]Engine{"a": {Perhaps: []Adapter{wants}}}},
			calls:  []said{{"a", load}}, note: []Adapter{wants},
		},
		"of another source it has to go first": {
			adapter: &wants, noted: []Adapter{moved}, world: World{Endpoints: []Endpoint{at("a")}},
			memory: Memory{Engines: map[Run]Engine{"a": {Perhaps: []Adapter{moved}}}},
			calls:  []said{{"a", unloadMoved}}, note: []Adapter{moved, wants}, pending: 1,
		},
		"and stays if another model wants it": {
			noted: []Adapter{wants}, world: World{Endpoints: []Endpoint{at("a")}, Shared: []Adapter{wants}},
			memory: Memory{Engines: map[Run]Engine{"a": {Perhaps: []Adapter{wants}}}},
		},
		"what is not wanted any more is unloaded": {
			noted: []Adapter{wants}, world: World{Endpoints: []Endpoint{at("a")}},
			memory: Memory{Engines: map[Run]Engine{"a": {Held: []Adapter{wants}}}},
			calls:  []said{{"a", Task{Unload, wants}}}, note: []Adapter{wants}, pending: 1,
		},
		"from an engine that is not ready, too": {
			noted: []Adapter{wants}, world: World{Endpoints: []Endpoint{unready(at("a"))}},
			memory: Memory{Engines: map[Run]Engine{"a": {Held: []Adapter{wants}}}},
			calls:  []said{{"a", Task{Unload, wants}}}, note: []Adapter{wants}, pending: 1,
		},
		"engines that are gone hold nothing": {
			noted: []Adapter{wants}, world: World{Endpoints: []Endpoint{leaving(at("a"))}},
			memory: Memory{Engines: map[Run]Engine{"a": {Held: []Adapter{wants}}, "b": {Held: []Adapter{wants}, Seen: noon}}},
		},
		"what another model wants stays": {
			noted: []Adapter{wants}, world: World{Endpoints: []Endpoint{at("a")}, Shared: []Adapter{wants}},
			memory: Memory{Engines: map[Run]Engine{"a": {Held: []Adapter{wants}}}},
		},
		"an adapter of unknown source is loaded anew": {
			adapter: &wants, noted: []Adapter{moved, wants}, world: World{Endpoints: []Endpoint{at("a")}},
			memory: Memory{Engines: map[Run]Engine{"a": {Held: []Adapter{{Name: "new"}}}}},
			calls:  []said{{"a", Task{Unload, Adapter{Name: "new"}}}}, note: []Adapter{moved, wants}, pending: 1,
		},
		"an engine that was asked lately is believed": {
			adapter: &wants, noted: []Adapter{wants}, world: World{Endpoints: []Endpoint{at("a"), at("b")}}, recheck: time.Hour,
			memory: Memory{Engines: map[Run]Engine{"a": {Held: []Adapter{wants}, Checked: noon.Add(-time.Minute)}, "b": {Held: []Adapter{wants}, Checked: noon}}},
			note:   []Adapter{wants}, loaded: []string{"a", "b"}, wake: noon.Add(59 * time.Minute),
		},
		"one that was asked long ago is asked again": {
			adapter: &wants, noted: []Adapter{wants}, world: World{Endpoints: []Endpoint{at("a")}}, recheck: time.Hour,
			memory: Memory{Engines: map[Run]Engine{"a": {Held: []Adapter{wants}, Checked: noon.Add(-time.Hour)}}},
			calls:  []said{{"a", Task{Verb: List}}}, note: []Adapter{wants}, loaded: []string{"a"},
		},
		"unless it is not ready": {
			adapter: &wants, noted: []Adapter{wants}, world: World{Endpoints: []Endpoint{unready(at("a"))}}, recheck: time.Hour,
			memory: Memory{Engines: map[Run]Engine{"a": {Held: []Adapter{wants}}}}, note: []Adapter{wants},
		},
		"or the model goes": {
			noted: []Adapter{wants}, world: World{Endpoints: []Endpoint{at("a")}}, recheck: time.Hour,
			memory: Memory{Engines: map[Run]Engine{"a": {Held: []Adapter{wants}, Check: true}}},
			calls:  []said{{"a", Task{Unload, wants}}}, note: []Adapter{wants}, pending: 1,
		},
		"what is to be loaded comes before a question": {
			adapter: &wants, noted: []Adapter{wants}, world: World{Endpoints: []Endpoint{at("a")}}, recheck: time.Hour,
			calls: []said{{"a", load}}, note: []Adapter{wants},
		},
		"a question without an answer is asked again later": {
			adapter: &wants, noted: []Adapter{wants}, world: World{Endpoints: []Endpoint{at("a")}}, recheck: time.Hour,
			memory: Memory{Engines: map[Run]Engine{"a": {Held: []Adapter{wants}, Check: true, Setbacks: []Setback{failed(Task{Verb: List}, noon.Add(time.Second))}}}},
			note:   []Adapter{wants}, loaded: []string{"a"}, wake: noon.Add(time.Second),
		},
		"what somebody else unloaded is loaded again": {
			adapter: &wants, noted: []Adapter{wants}, world: World{Endpoints: []Endpoint{at("a")}}, recheck: time.Hour,
			memory: Memory{Engines: map[Run]Engine{"a": {Lost: []Adapter{wants}, Checked: noon}}},
			calls:  []said{{"a", load}}, note: []Adapter{wants}, wake: noon.Add(time.Hour),
		},
	}
	for rule, c := range cases {
		t.Run(rule, func(t *testing.T) {
			p := Next(Intent{Adapter: c.adapter, Noted: c.noted}, c.world, c.memory, c.recheck, noon)
			var calls []said
			for _, call := range p.Calls {
				calls = append(calls, said{call.Endpoint.Pod, call.Task})
			}
			var loaded []string
			for _, place := range p.Places {
				if place.Loaded {
					loaded = append(loaded, place.Endpoint.Pod)
				}
			}
			if diff := cmp.Diff(c.calls, calls); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(Sorted(c.note), p.Note, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("note (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.loaded, loaded); diff != "" {
				t.Errorf("loaded (-want +got):\n%s", diff)
			}
			if !p.Wake.Equal(c.wake) || len(p.Pending) != c.pending {
				t.Errorf("wake %v, pending %d; want %v, %d", p.Wake, len(p.Pending), c.wake, c.pending)
			}
			if p.Memory.Inherited {
				t.Error("a memory that has seen its engines is its own")
			}
		})
	}
}

func TestAnEngineIsRememberedAWhile(t *testing.T) {
	m := Memory{Engines: map[Run]Engine{
		"a":    {Held: []Adapter{wants}, Seen: noon},
		"b":    {Held: []Adapter{wants}, Seen: noon.Add(-time.Hour)},
		"busy": {Busy: true, Seen: noon.Add(-time.Hour)},
	}}
	p := Next(Intent{Adapter: &wants}, World{}, m, 0, noon.Add(time.Minute))
	want := map[Run]bool{"a": true, "busy": true}
	got := map[Run]bool{}
	for run := range p.Memory.Engines {
		got[run] = true
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("remembered (-want +got):\n%s", diff)
	}
}

func TestEngineAfter(t *testing.T) {
	backoff := Backoff{First: time.Second, Most: 5 * time.Second}
	load := Call{Endpoint: at("a"), Task: Task{Load, wants}}
	list := Call{Endpoint: at("a"), Task: Task{Verb: List}, Known: []Adapter{wants, moved, old}}
	cases := map[string]struct {
		before  Engine
		call    Call
		outcome Outcome
		want    Engine
	}{
		"a load is remembered":     {Engine{Busy: true}, load, Outcome{}, Engine{Held: []Adapter{wants}, Checked: noon}},
		"and whether it was slow":  {Engine{Busy: true}, load, Outcome{Slow: true}, Engine{Held: []Adapter{wants}, Slow: true, Checked: noon}},
		"an unload goes by name":   {Engine{Busy: true, Held: []Adapter{moved, old}}, Call{Task: Task{Unload, wants}}, Outcome{}, Engine{Held: []Adapter{old}}},
		"a list ends the doubt":    {Engine{Busy: true, Doubt: true}, list, Outcome{Loaded: []string{"old", "theirs"}}, Engine{Held: []Adapter{old}, Checked: noon}},
		"two sources are no proof": {Engine{Busy: true, Doubt: true}, list, Outcome{Loaded: []string{"new"}}, Engine{Held: []Adapter{{Name: "new"}}, Checked: noon}},
		"but what is known stays known": {Engine{Busy: true, Check: true, Held: []Adapter{moved}}, list, Outcome{Loaded: []string{"new"}},
			Engine{Held: []Adapter{moved}, Checked: noon}},
		"what is not listed any more is lost": {Engine{Busy: true, Check: true, Held: []Adapter{wants, old}}, list, Outcome{Loaded: []string{"old"}},
			Engine{Held: []Adapter{old}, Lost: []Adapter{wants}, Checked: noon}},
		"until it is loaded again": {Engine{Busy: true, Lost: []Adapter{wants}}, load, Outcome{}, Engine{Held: []Adapter{wants}, Checked: noon}},
		"a failed list leaves it": {Engine{Busy: true, Doubt: true}, list, Outcome{Problem: "p"},
			Engine{Doubt: true, Setbacks: []Setback{{Task{Verb: List}, 1, noon.Add(time.Second), "p"}}}},
		"failures add up": {Engine{Busy: true, Setbacks: []Setback{{load.Task, 2, noon, "p"}}}, load, Outcome{Problem: "q"},
			Engine{Setbacks: []Setback{{load.Task, 3, noon.Add(4 * time.Second), "q"}}}},
		"the wait has an end": {Engine{Busy: true, Setbacks: []Setback{{load.Task, 70, noon, "p"}}}, load, Outcome{Problem: "q"},
			Engine{Setbacks: []Setback{{load.Task, 71, noon.Add(5 * time.Second), "q"}}}},
		"a load without an answer may have come about": {Engine{Busy: true}, load, Outcome{Problem: "p", Unsure: true},
			Engine{Perhaps: []Adapter{wants}, Setbacks: []Setback{{load.Task, 1, noon.Add(time.Second), "p"}}}},
		"also one that is not repeated": {Engine{Busy: true}, load, Outcome{Skipped: true, Unsure: true}, Engine{Perhaps: []Adapter{wants}}},
		"until one has an answer":       {Engine{Busy: true, Perhaps: []Adapter{wants}}, load, Outcome{}, Engine{Held: []Adapter{wants}, Checked: noon}},
		"what is not there to be unloaded may still come": {
			Engine{Busy: true, Perhaps: []Adapter{wants}}, Call{Task: Task{Unload, wants}}, Outcome{Absent: true},
			Engine{Perhaps: []Adapter{wants}, Setbacks: []Setback{{Task{Unload, wants}, 1, noon.Add(time.Second), "unload new: an earlier load of it may still be under way"}}},
		},
		"but not for ever": {
			Engine{Busy: true, Perhaps: []Adapter{wants}, Setbacks: []Setback{{Task{Unload, wants}, 5, noon, "p"}}}, Call{Task: Task{Unload, wants}}, Outcome{Absent: true}, Engine{},
		},
		"what was held and is not there is gone": {Engine{Busy: true, Held: []Adapter{wants}}, Call{Task: Task{Unload, wants}}, Outcome{Absent: true}, Engine{}},
		"or it is unloaded":                      {Engine{Busy: true, Perhaps: []Adapter{moved, old}}, Call{Task: Task{Unload, wants}}, Outcome{}, Engine{Perhaps: []Adapter{old}}},
		"or the engine names it":                 {Engine{Busy: true, Perhaps: []Adapter{old}}, list, Outcome{Loaded: []string{"old"}}, Engine{Held: []Adapter{old}, Checked: noon}},
		"what it does not name may still come": {Engine{Busy: true, Perhaps: []Adapter{old}}, list, Outcome{},
			Engine{Perhaps: []Adapter{old}, Checked: noon}},
		"success wipes them out": {Engine{Busy: true, Setbacks: []Setback{{load.Task, 2, noon, "p"}}}, load, Outcome{}, Engine{Held: []Adapter{wants}, Checked: noon}},
	}
	for rule, c := range cases {
		t.Run(rule, func(t *testing.T) {
			if diff := cmp.Diff(c.want, c.before.After(c.call, c.outcome, backoff, noon), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestNote(t *testing.T) {
	cases := map[string]struct {
		text string
		want []Adapter
	}{
		"nothing":                    {"", nil},
		"what was written":           {EncodeNote([]Adapter{old, wants, old}), []Adapter{wants, old}},
		"not what was tampered with": {`[{"name":"../../engine/sleep","uri":"x"},{"name":"old","uri":"s3://b/old"}]`, []Adapter{old}},
		"not what makes no sense":    {`{"name":1}`, nil},
	}
	for rule, c := range cases {
		t.Run(rule, func(t *testing.T) {
			if diff := cmp.Diff(c.want, DecodeNote(c.text), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestNameFault(t *testing.T) {
	for name, good := range map[string]bool{
		"org/adapter-0.6B": true, "a": true, "a..b/c": true, "name with space": true, "ünïcode": true,
		"": false, "/a": false, "a/": false, "a//b": false, "..": false, "a/../b": false, "./a": false, "a\nb": false, `a\b`: false,
	} {
		if got := NameFault(name) == ""; got != good {
			t.Errorf("NameFault(%q) = %q", name, NameFault(name))
		}
	}
}

func TestWanted(t *testing.T) {
	load, unload := Task{Load, wants}, Task{Unload, wants}
	restarted, elsewhere := at("a"), at("a")
	restarted.Run, elsewhere.Address = "another", netip.MustParseAddr("10.0.0.2")
	here := World{Endpoints: []Endpoint{at("a")}}
	holds := Engine{Held: []Adapter{wants}, Busy: true}
	cases := map[string]struct {
		adapter *Adapter
		world   World
		engine  Engine
		task    Task
		want    bool
	}{
		"a load that is still to be done":                {&wants, here, Engine{Busy: true}, load, true},
		"a load of a model that is being deleted":        {nil, here, Engine{Busy: true}, load, false},
		"a load of what is fetched from elsewhere now":   {&moved, here, Engine{Busy: true}, load, false},
		"a load into an engine that is gone":             {&wants, World{}, Engine{}, load, false},
		"a load into an engine that was restarted":       {&wants, World{Endpoints: []Endpoint{restarted}}, Engine{}, load, false},
		"a load into an engine with another address":     {&wants, World{Endpoints: []Endpoint{elsewhere}}, Engine{}, load, false},
		"a load into an engine that is not ready":        {&wants, World{Endpoints: []Endpoint{unready(at("a"))}}, Engine{}, load, false},
		"a load into an engine that is on its way out":   {&wants, World{Endpoints: []Endpoint{leaving(at("a"))}}, Engine{}, load, false},
		"a question of one that is to be asked":          {&wants, here, Engine{Check: true, Busy: true, Held: []Adapter{wants}}, Task{Verb: List}, true},
		"a question of a model that is being deleted":    {nil, here, Engine{Check: true, Busy: true, Held: []Adapter{wants}}, Task{Verb: List}, false},
		"an unload of what nobody wants":                 {nil, here, holds, unload, true},
		"an unload from an engine that is not ready":     {nil, World{Endpoints: []Endpoint{unready(at("a"))}}, holds, unload, true},
		"an unload of what is wanted again":              {&wants, here, holds, unload, false},
		"an unload of what another model has taken over": {nil, World{Endpoints: here.Endpoints, Shared: []Adapter{wants}}, holds, unload, false},
	}
	for rule, c := range cases {
		t.Run(rule, func(t *testing.T) {
			if got := Wanted(Intent{Adapter: c.adapter}, c.world, c.engine, Call{Endpoint: at("a"), Task: c.task}); got != c.want {
				t.Errorf("wanted %v, want %v", got, c.want)
			}
		})
	}
}

func TestAbandoned(t *testing.T) {
	load := Call{Endpoint: at("a"), Task: Task{Load, wants}}
	cases := map[string]struct {
		world World
		want  bool
	}{
		"what nobody wants is taken back":                    {World{Endpoints: []Endpoint{at("a")}}, true},
		"what another model wants stays":                     {World{Endpoints: []Endpoint{at("a")}, Shared: []Adapter{wants}}, false},
		"an adapter of the same name may be another model's": {World{Endpoints: []Endpoint{at("a")}, Shared: []Adapter{moved}}, false},
		"an engine that is gone took the adapter with it":    {World{}, false},
	}
	for rule, c := range cases {
		t.Run(rule, func(t *testing.T) {
			if got := Abandoned(c.world, load); got != c.want {
				t.Errorf("abandoned %v, want %v", got, c.want)
			}
		})
	}
}

func TestACallThatWasNotMadeChangesNothing(t *testing.T) {
	before := Engine{Held: []Adapter{old}, Slow: true, Setbacks: []Setback{failed(Task{Load, wants}, noon)}}
	busy := before
	busy.Busy = true
	if diff := cmp.Diff(before, busy.After(Call{Task: Task{Load, wants}}, Outcome{Skipped: true}, Backoff{}, noon)); diff != "" {
		t.Error("-want +got", diff)
	}
}
