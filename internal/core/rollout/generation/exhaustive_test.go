package generation

import (
	"errors"
	"flag"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
)

var deep = flag.Bool("deep", false, "explore cells of up to three replicas a role with faults too (minutes)")

// explorer walks every world that can come of one, whatever happens in whatever
// order, with at most so many faults on the way.
type explorer struct {
	rules rules
	// slack that the rollout needs when nothing goes wrong.
	slack  int
	worlds map[string]bool
	// above are the worlds on the way to this one.
	above map[string]bool
	trace []string
}

func explore(w World, faultsLeft int, r rules) (worlds int, err error) {
	x := &explorer{rules: r, worlds: map[string]bool{}, above: map[string]bool{}, slack: next(w, r).Slack}
	if err := x.visit(w, faultsLeft, !slices.ContainsFunc(w.Roles, w.brings)); err != nil {
		return len(x.worlds), fmt.Errorf("%+v: %w\nafter %v", w.Roles, err, x.trace)
	}
	return len(x.worlds), nil
}

// brings reports whether an entry comes with the spec: what the target serves counts only
// once that is up, which is after all others are gone.
func (w World) brings(role Role) bool { return role.Entry && w.Lacks(w.role(role.Name)) }

func (x *explorer) visit(w World, faultsLeft int, sound bool) error {
	k := key(w, byte(faultsLeft))
	if x.above[k] {
		return violated(EndsInvariant, "the same world again, without a fault in between")
	}
	if x.worlds[k] {
		return nil
	}
	x.worlds[k] = true
	step := next(w, x.rules)
	if err := Check(w, step); err != nil {
		return err
	}
	if sound {
		if err := Serves(w, x.slack); err != nil {
			return err
		}
	}
	events := progress(w)
	if step.Action == Wait && len(events) == 0 {
		if err := Ended(step); err != nil {
			return err
		}
		if step.Reason == ReasonNoPath {
			return violated(EndsInvariant, "blocked without need: %+v", w)
		}
	}
	x.above[k] = true
	if step.Action != Wait {
		if err := x.follow(fmt.Sprintf("%+v", step), take(w, step), faultsLeft, sound); err != nil {
			return err
		}
	}
	for _, e := range events {
		if err := x.follow(fmt.Sprint(e), happen(w, e), faultsLeft, sound); err != nil {
			return err
		}
	}
	delete(x.above, k)
	if faultsLeft > 0 {
		above := x.above
		x.above = map[string]bool{} // a fault may lead back
		for _, e := range faults(w) {
			if err := x.follow(fmt.Sprint(e), happen(w, e), faultsLeft-1, false); err != nil {
				return err
			}
		}
		x.above = above
	}
	return nil
}

func (x *explorer) follow(what string, w World, faultsLeft int, sound bool) error {
	x.trace = append(x.trace, what)
	err := x.visit(w, faultsLeft, sound)
	if err == nil {
		x.trace = x.trace[:len(x.trace)-1]
	}
	return err
}

func TestEveryWayOfASmallRolloutKeepsTheInvariants(t *testing.T) {
	type task struct {
		begin  World
		faults int
	}
	tasks := make(chan task)
	var worlds atomic.Int64
	var group sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		group.Go(func() {
			for task := range tasks {
				n, err := explore(task.begin, task.faults, everyRule)
				worlds.Add(int64(n))
				if err != nil {
					t.Errorf("whole %t, paired %t: %v", task.begin.Whole, task.begin.Paired, err)
				}
			}
		})
	}
	larger := 0
	if *deep {
		larger = 2
	}
	whole := func(w World) World { w.Whole = true; return w }
	for _, s := range slices.Concat(shapes(1, 2, 1), shapes(2, 2, 1), parked(1, 1, 1), parked(2, 2, 1)) {
		tasks <- task{s.begin(), 2}
		tasks <- task{whole(s.begin()), 2}
		tasks <- task{paired(s.begin()), 2}
	}
	for _, s := range shapes(2, 2, 1) {
		for _, absent := range []bool{false, true} {
			tasks <- task{without(s.begin(), absent), 1}
			tasks <- task{whole(without(s.begin(), absent)), 1}
			tasks <- task{paired(without(s.begin(), absent)), 1}
		}
		tasks <- task{lone(s.begin()), 1}
		tasks <- task{whole(lone(s.begin())), 1}
		tasks <- task{paired(lone(s.begin())), 1}
	}
	for _, s := range slices.Concat(shapes(1, 3, 1), shapes(2, 2, 1)) {
		tasks <- task{ordinal(s.begin()), 1}
		tasks <- task{ordinal(whole(s.begin())), 1}
		tasks <- task{ordinal(paired(s.begin())), 1}
	}
	for _, s := range shapes(1, 3, 1) {
		tasks <- task{ordinal(s.begin()), 2}
	}
	for _, s := range shapes(2, 3, 1) {
		tasks <- task{s.begin(), larger}
		tasks <- task{whole(s.begin()), larger}
		tasks <- task{paired(s.begin()), larger}
	}
	for _, s := range shapes(3, 2, 1) { // frontends, prefill and decode
		if s.surge[0] == 1 && s.unavailable[0] == 0 {
			tasks <- task{paired(s.begin()), 0}
		}
	}
	close(tasks)
	group.Wait()
	t.Logf("%d worlds", worlds.Load())
}

// TestEachRuleIsNeeded leaves out one rule at a time and looks for what comes of it.
func TestEachRuleIsNeeded(t *testing.T) {
	same := func(w World) World { return w }
	for name, c := range map[string]struct {
		without rules
		breaks  Invariant
		shapes  []shape
		faults  int
		change  func(World) World
	}{
		"arrival":     {ruleArrival, FloorInvariant, shapes(2, 3, 1), 0, same},
		"drain order": {ruleDrainOrder, OrderInvariant, shapes(2, 2, 1), 0, same},
		"balance":     {ruleBalance, FloorInvariant, shapes(2, 3, 1), 0, same},
		"gone":        {ruleGone, FloorInvariant, shapes(1, 2, 1), 0, same},
		"held":        {ruleHeld, BudgetInvariant, shapes(1, 2, 1), 0, same},
		"reach":       {ruleReach, EndsInvariant, []shape{{[]int{1, 2}, []int{1, 1}, []int{0, 0}}}, 2, same},
		"stable last": {ruleStableLast, WayBackInvariant, shapes(1, 2, 1), 1, same},
		"ordinal":     {ruleOrdinal, FloorInvariant, shapes(1, 3, 1), 1, ordinal},
		"start order": {ruleStartOrder, OrderInvariant, shapes(2, 1, 1), 0, paired},
	} {
		t.Run(name, func(t *testing.T) {
			for _, s := range c.shapes {
				_, err := explore(c.change(s.begin()), c.faults, everyRule&^c.without)
				if v, ok := errors.AsType[Violation](err); ok {
					t.Logf("%v", err)
					if v.Invariant != c.breaks {
						t.Errorf("breaks %s, not %s", v.Invariant, c.breaks)
					}
					return
				}
			}
			t.Error("nothing comes of it")
		})
	}
}
