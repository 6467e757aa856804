package generation

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/inplace"
)

// settle takes steps until there is none to take, without anything coming up.
func settle(w World, r rules) (World, []Step, Step) {
	var taken []Step
	for {
		s := next(w, r)
		if s.Action == Wait {
			return w, taken, s
		}
		w = take(w, s)
		taken = append(taken, s)
	}
}

// comeUp has everything that was started come up, but what is held back.
func comeUp(w World, never func(ID, string) bool) World {
	w = clone(w)
	for _, g := range w.Generations {
		for r := range g.Roles {
			seen := &g.Roles[r]
			seen.Exist = seen.Want
			if !never(g.ID, w.Roles[r].Name) {
				seen.Routable = seen.Want
			}
		}
	}
	return w
}

func nobody(ID, string) bool { return false }

// waves plays a rollout in which nothing goes wrong and counts how often something
// has to start before it can go on.
func waves(s shape, r rules) (n int, last Step) {
	w := s.begin()
	for range 1000 {
		started := false
		var steps []Step
		if w, steps, last = settle(w, r); last.Phase == PhaseCompleted {
			return n, last
		}
		for _, step := range steps {
			started = started || step.Generation == "b" && step.Action == Scale
		}
		if started {
			n++
		}
		w = comeUp(w, nobody)
	}
	return n, last
}

// TestWaves holds the number of waves against the prototype's, at the defaults of a
// quarter of the replicas.
func TestWaves(t *testing.T) {
	quarter := func(desired ...int) shape {
		s := shape{desired: desired}
		for _, d := range desired {
			s.surge, s.unavailable = append(s.surge, (d+3)/4), append(s.unavailable, d/4)
		}
		return s
	}
	for _, c := range []struct {
		shape shape
		most  int
	}{
		{quarter(1, 1), 1},
		{quarter(2, 2), 3},
		{quarter(4, 4), 5},
		{quarter(8, 4), 5},
		{shape{[]int{4, 4}, []int{4, 4}, []int{0, 0}}, 2},
		{shape{[]int{4, 4}, []int{0, 0}, []int{1, 1}}, 8},
	} {
		n, last := waves(c.shape, everyRule)
		if last.Phase != PhaseCompleted || n > c.most {
			t.Errorf("%v: %d waves, %d in the prototype; ends %+v", c.shape, n, c.most, last)
		}
	}
}

func TestEverySmallCellArrives(t *testing.T) {
	for _, all := range [][]shape{shapes(1, 6, 2), shapes(2, 4, 2), shapes(3, 2, 1)} {
		for _, s := range all {
			if _, last := waves(s, everyRule); last.Phase != PhaseCompleted {
				t.Fatalf("%v: %+v", s, last)
			}
		}
	}
}

// neverStarts plays a rollout to a generation whose decode does not come up, and is
// the least of decode that served meanwhile.
func neverStarts(s shape, r rules) int {
	w, least := s.begin(), s.desired[0]
	for range 50 {
		w, _, _ = settle(w, r)
		replicas, _ := Capacity(w)
		least = min(least, replicas[0])
		w = comeUp(w, func(id ID, role string) bool { return id == "b" && role == "decode" })
	}
	return least
}

func TestACandidateThatNeverStartsCostsNothingWhereThereIsRoomForASurge(t *testing.T) {
	without := 0
	for _, s := range shapes(2, 4, 2) {
		if slices.Contains(s.surge, 0) {
			continue
		}
		if least := neverStarts(s, everyRule); least < s.desired[0] {
			t.Errorf("%v: %d decode serve", s, least)
		}
		if least := neverStarts(s, everyRule&^ruleProof); least < s.desired[0] {
			without++
		}
	}
	if without == 0 {
		t.Error("nor without the rule that a unit must serve first")
	}
}

// TestIndependentRolesLeaveNoCompleteGeneration is what happens to isolated
// generations when each role is replaced by itself, as Deployments are: prefill comes
// up, decode does not, each keeps its own floor, and in the end nothing serves.
func TestIndependentRolesLeaveNoCompleteGeneration(t *testing.T) {
	for _, desired := range []int{1, 2, 3, 4, 8} {
		strategy := inplace.Strategy{Surge: (desired + 3) / 4, Unavailable: desired / 4}
		roll := func(works bool) inplace.Progress {
			p := inplace.Progress{Old: desired, OldAvailable: desired}
			for range 4 * desired {
				p = strategy.Next(desired, p)
				if p.Available() < desired-strategy.Unavailable {
					t.Errorf("%d: %+v is below the role's own floor", desired, p)
				}
				if works {
					p.NewAvailable = p.New
				}
			}
			return p
		}
		prefill, decode := roll(true), roll(false)
		roles := shape{[]int{desired, desired}, []int{strategy.Surge, strategy.Surge}, []int{strategy.Unavailable, strategy.Unavailable}}
		independent := counts{{decode.OldAvailable, prefill.OldAvailable}, {decode.NewAvailable, prefill.NewAvailable}}
		if got := capacityOf(roles.roles(), nil, independent).replicas; got[0] != 0 {
			t.Errorf("%d: %v serve of %v", desired, got, independent)
		}
		if least := neverStarts(roles, everyRule); least < desired-strategy.Unavailable {
			t.Errorf("%d: by the planner %d decode serve", desired, least)
		}
	}
}

func TestPhases(t *testing.T) {
	begin := shape{[]int{4, 2}, []int{1, 1}, []int{1, 0}}.begin()
	full := func(w World) World {
		for range 100 {
			var s Step
			if w, _, s = settle(w, everyRule); s.Phase == PhaseCompleted || s.Phase == PhaseHeld || s.Phase == PhaseAborted {
				return w
			}
			w = comeUp(w, nobody)
		}
		return w
	}
	with := func(w World, change func(*World)) World {
		w = clone(w)
		change(&w)
		return w
	}
	level := full(with(begin, func(w *World) { w.Level = 1 }))
	for rule, c := range map[string]struct {
		world World
		want  Step
	}{
		"support of the target starts first":                {begin, Step{Action: Scale, Generation: "b", Role: "prefill", Replicas: 1, Phase: PhaseStarting}},
		"a pause holds":                                     {with(begin, func(w *World) { w.Paused = true }), Step{Action: Wait, Phase: PhaseHeld, Reason: ReasonPaused}},
		"a level that is reached holds":                     {level, Step{Action: Wait, Phase: PhaseHeld, Reason: ReasonLevel}},
		"the next level goes on":                            {with(level, func(w *World) { w.Level = 0 }), Step{Action: Scale, Generation: "b", Role: "decode", Replicas: 2, Phase: PhaseShifting}},
		"an aborted spec goes back":                         {with(level, func(w *World) { w.Aborted = []ID{"b"} }), Step{Action: Scale, Generation: "a", Role: "decode", Replicas: 4, Phase: PhaseAborting}},
		"a spec that was aborted long ago is quiet":         {with(full(with(level, func(w *World) { w.Aborted = []ID{"b"} })), func(*World) {}), Step{Action: Wait, Phase: PhaseAborted}},
		"a rollout that is through is quiet":                {full(begin), Step{Action: Wait, Phase: PhaseCompleted}},
		"what is made in one piece begins with one of each": {with(begin, func(w *World) { w.Whole = true }), Step{Action: Make, Generation: "b", Phase: PhaseStarting}},
		"without surge, room for that is made first": {with(begin, func(w *World) {
			w.Whole = true
			for r := range w.Roles {
				w.Roles[r].Surge, w.Roles[r].Unavailable = 0, 1
			}
		}), Step{Action: Scale, Generation: "a", Role: "decode", Replicas: 3, Phase: PhaseStarting}},
		"a target that is not listed yet is started": {with(begin, func(w *World) { w.Generations = w.Generations[:1] }), Step{Action: Scale, Generation: "b", Role: "prefill", Replicas: 1, Phase: PhaseStarting}},
		"without a node, and nothing to take, it is blocked": {with(shape{[]int{1}, []int{1}, []int{0}}.begin(), func(w *World) {
			w.Generations[1].Roles[0] = Replicas{Want: 1, Exist: 1, Unschedulable: 1}
		}), Step{Action: Wait, Phase: PhaseBlocked, Reason: ReasonNoSpareGPU}},
		"that frontends refuse what is ready blocks it": {with(shape{[]int{1}, []int{1}, []int{0}}.begin(), func(w *World) {
			w.Generations[1].Roles[0] = Replicas{Want: 1, Exist: 1, Ready: 1, Refused: 1}
		}), Step{Action: Wait, Phase: PhaseBlocked, Reason: ReasonNotAdmitted}},
		"but not while another may still come up": {with(shape{[]int{2}, []int{2}, []int{0}}.begin(), func(w *World) {
			w.Generations[1].Roles[0] = Replicas{Want: 2, Exist: 2, Ready: 1, Refused: 1}
		}), Step{Action: Wait, Phase: PhaseStarting}},
		"nor for one more than wanted, while old ones leave": {with(shape{[]int{2}, []int{1}, []int{0}}.begin(), func(w *World) {
			w.Generations[0].Roles[0] = Replicas{Want: 1, Exist: 2, Ready: 1, Routable: 1}
			w.Generations[1].Roles[0] = Replicas{Want: 1, Exist: 2, Ready: 2, Routable: 1, Refused: 1}
		}), Step{Action: Wait, Phase: PhaseShifting}},
		"without a node, what may be missing makes room": {with(shape{[]int{2}, []int{1}, []int{1}}.begin(), func(w *World) {
			w.Generations[1].Roles[0] = Replicas{Want: 1, Exist: 1, Unschedulable: 1}
		}), Step{Action: Scale, Generation: "a", Role: "decode", Replicas: 1, Phase: PhaseStarting}},
	} {
		t.Run(rule, func(t *testing.T) {
			if diff := cmp.Diff(c.want, Next(c.world)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	if diff := cmp.Diff(counts{{3, 2}, {1, 1}}, level.wanted()); diff != "" {
		t.Errorf("a level of one entry (-want +got):\n%s", diff)
	}
}

// TestAFrontendNeedsNoSpareGPU: workers wait for a node, and what serves beside them is
// taken over by one frontend more.
func TestAFrontendNeedsNoSpareGPU(t *testing.T) {
	one, waits := Replicas{Want: 1, Exist: 1, Routable: 1}, Replicas{Want: 2, Exist: 2, Routable: 1, Unschedulable: 1}
	begin := World{
		Roles: []Role{
			{Name: "frontend", Entry: true, Desired: 2, Surge: 1},
			{Name: "decode", Desired: 2, Surge: 1, Unavailable: 1, GPUs: 1}, {Name: "prefill", Desired: 2, Surge: 1, Unavailable: 1, GPUs: 1},
		},
		Spec: "b", Stable: "a", Paired: true,
		Generations: []Generation{{ID: "a", Roles: []Replicas{one, one, one}}, {ID: "b", Roles: []Replicas{one, waits, waits}}},
	}
	for rule, c := range map[string]struct {
		change func(*World)
		want   Step
	}{
		"it is started": {func(*World) {}, Step{Action: Scale, Generation: "b", Role: "frontend", Replicas: 2, Phase: PhaseShifting}},
		"unless frontends find no node either": {func(w *World) {
			w.Generations[1].Roles[0] = waits
			w.Roles[0].Surge = 2
		}, Step{Action: Wait, Phase: PhaseBlocked, Reason: ReasonNoSpareGPU}},
	} {
		t.Run(rule, func(t *testing.T) {
			w := clone(begin)
			c.change(&w)
			if diff := cmp.Diff(c.want, Next(w)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestNothingIsTakenFromWhatMayServe(t *testing.T) {
	up := Replicas{Want: 2, Exist: 2, Ready: 2, Routable: 2}
	young := Replicas{Want: 2, Exist: 2, Ready: 2, Settling: 2}
	unknown := Replicas{Want: 2, Exist: 2, Ready: 2}
	for rule, c := range map[string]struct {
		stable Replicas
		whole  bool
		want   Action
	}{
		"one of what serves makes room":                        {up, false, Scale},
		"nothing does of what has just become ready":           {young, false, Wait},
		"what no frontend knows serves nothing and makes room": {unknown, false, Scale},
		"one of what serves makes room for a whole":            {up, true, Scale},
		"nothing does of what has just become ready, either":   {young, true, Wait},
	} {
		t.Run(rule, func(t *testing.T) {
			w := World{
				Roles: []Role{{Name: "prefill", Desired: 2, Unavailable: 1}, {Name: "decode", Entry: true, Desired: 2, Unavailable: 1}},
				Spec:  "b", Stable: "a", Whole: c.whole,
				Generations: []Generation{{ID: "a", Roles: []Replicas{c.stable, c.stable}}},
			}
			if step := Next(w); step.Action != c.want || step.Action == Scale && step.Generation != "a" {
				t.Errorf("%+v", step)
			}
		})
	}
}

// TestTheHighestOrdinalsGoFirst: whether or not they are those that serve.
func TestTheHighestOrdinalsGoFirst(t *testing.T) {
	roles := []Role{{Name: "decode", Entry: true, Desired: 4, Surge: 1, Unavailable: 1}}
	one := Replicas{Want: 1, Exist: 1, Ready: 1, Routable: 1}
	for rule, c := range map[string]struct {
		ordinals []int
		routable int
		want     int
	}{
		"what is not ready goes first":                      {nil, 3, 2},
		"the lowest is not ready, and stays":                {[]int{1, 2, 3}, 3, 3},
		"the highest is not ready, and goes":                {[]int{0, 1, 2}, 3, 2},
		"of those that are ready, the lowest may not serve": {[]int{0, 1, 2, 3}, 3, 3},
	} {
		t.Run(rule, func(t *testing.T) {
			w := World{Roles: roles, Spec: "b", Stable: "a", Generations: []Generation{
				{ID: "a", Roles: []Replicas{{Want: 4, Exist: 4, Ready: max(c.routable, len(c.ordinals)), Routable: c.routable, Ordinals: c.ordinals}}},
				{ID: "b", Roles: []Replicas{one}},
			}}
			want := Step{Action: Scale, Generation: "a", Role: "decode", Replicas: c.want, Phase: PhaseShifting}
			if diff := cmp.Diff(want, Next(w)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestEffectiveReplicas(t *testing.T) {
	roles := shape{[]int{4, 4}, []int{1, 1}, []int{1, 1}}.roles()
	for rule, c := range map[string]struct {
		all       counts
		replicas  []int
		effective []ratio
	}{
		"one generation has what it has":                          {counts{{4, 2}}, []int{4, 2}, []ratio{{4, 1}, {8, 4}}},
		"one without prefill serves nothing":                      {counts{{4, 0}, {0, 4}}, []int{0, 0}, []ratio{{0, 1}, {0, 1}}},
		"support counts by the share of the traffic that it gets": {counts{{1, 8}, {1, 1}}, []int{2, 9}, []ratio{{2, 1}, {2, 1}}},
	} {
		t.Run(rule, func(t *testing.T) {
			got := capacityOf(roles, nil, c.all)
			if diff := cmp.Diff(capacity{c.replicas, c.effective}, got, cmp.AllowUnexported(capacity{}, ratio{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestIsolated(t *testing.T) {
	if err := Isolated([]Placement{{"chat-1", "1.4"}, {"chat-2", "1.5"}, {"chat-1", "1.4"}}); err != nil {
		t.Error(err)
	}
	if err := Isolated([]Placement{{"chat", "1.4"}, {"chat", "1.5"}}); err == nil {
		t.Error("two versions in one Dynamo namespace are isolated")
	}
}

func TestCells(t *testing.T) {
	worker := func(name string, role graph.Role, part string) graph.Component {
		return graph.Component{Name: name, Role: role, SubType: part}
	}
	for rule, c := range map[string]struct {
		components []graph.Component
		want       []Cell
		paired     bool
	}{
		"no worker, no cell":                        {[]graph.Component{worker("f", graph.RoleFrontend, "")}, nil, false},
		"prefill and decode need each other":        {[]graph.Component{worker("p", graph.RolePrefill, ""), worker("f", graph.RoleFrontend, ""), worker("d", graph.RoleDecode, "")}, []Cell{{[]string{"d", "p"}, []string{"d"}, false}}, false},
		"as do workers that say so":                 {[]graph.Component{worker("p", graph.RoleWorker, "prefill"), worker("d", graph.RoleWorker, "decode"), worker("e", graph.RoleWorker, "encode")}, []Cell{{[]string{"d", "e", "p"}, []string{"d"}, false}}, false},
		"beside prefill, a plain worker decodes":    {[]graph.Component{worker("p", graph.RoleWorker, "prefill"), worker("w", graph.RoleWorker, "")}, []Cell{{[]string{"p", "w"}, []string{"w"}, false}}, false},
		"plain workers are a pool":                  {[]graph.Component{worker("b", graph.RoleWorker, ""), worker("a", graph.RoleWorker, "")}, []Cell{{[]string{"a", "b"}, []string{"a", "b"}, false}}, false},
		"which stands beside a split if there is":   {[]graph.Component{worker("p", graph.RolePrefill, ""), worker("d", graph.RoleDecode, ""), worker("w", graph.RoleWorker, "")}, []Cell{{[]string{"d", "p"}, []string{"d"}, false}, {[]string{"w"}, []string{"w"}, false}}, false},
		"paired, frontends are of it and its entry": {[]graph.Component{worker("p", graph.RolePrefill, ""), worker("f", graph.RoleFrontend, ""), worker("d", graph.RoleDecode, ""), worker("x", graph.RolePlanner, "")}, []Cell{{[]string{"d", "f", "p"}, []string{"f"}, true}}, true},
		"paired, a pool and a split are one":        {[]graph.Component{worker("p", graph.RolePrefill, ""), worker("d", graph.RoleDecode, ""), worker("f", graph.RoleFrontend, ""), worker("w", graph.RoleWorker, "")}, []Cell{{[]string{"d", "f", "p", "w"}, []string{"f"}, true}}, true},
	} {
		t.Run(rule, func(t *testing.T) {
			if diff := cmp.Diff(c.want, Cells(&graph.Graph{Components: c.components, Paired: c.paired})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// BenchmarkNext asks for every step of rollouts of two roles, and reports the slowest
// hundredth.
func BenchmarkNext(b *testing.B) {
	for _, s := range []shape{
		{[]int{16, 16}, []int{4, 4}, []int{4, 4}},
		{[]int{16, 8}, []int{4, 2}, []int{4, 2}},
		{[]int{16, 16}, []int{1, 1}, []int{0, 0}},
		{[]int{16, 3}, []int{1, 1}, []int{0, 0}},
		{[]int{1, 16}, []int{1, 1}, []int{0, 0}},
		{[]int{16, 16}, []int{0, 0}, []int{1, 1}},
	} {
		b.Run(s.String(), func(b *testing.B) {
			var took []time.Duration
			for b.Loop() {
				w := s.begin()
				for phase := PhaseStarting; phase != PhaseCompleted; {
					began := time.Now()
					step := Next(w)
					took = append(took, time.Since(began))
					phase = step.Phase
					if step.Action == Wait {
						w = comeUp(w, nobody)
					} else {
						w = take(w, step)
					}
				}
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)*99/100])/1e6, "p99-ms")
			b.ReportMetric(float64(took[len(took)-1])/1e6, "max-ms")
		})
	}
}
