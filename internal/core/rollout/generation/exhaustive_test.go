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

func explore(s shape, whole bool, faultsLeft int, r rules) (worlds int, err error) {
	w := s.begin()
	w.Whole = whole
	x := &explorer{rules: r, worlds: map[string]bool{}, above: map[string]bool{}, slack: next(w, r).Slack}
	if err := x.visit(w, faultsLeft, true); err != nil {
		return len(x.worlds), fmt.Errorf("%v: %w\nafter %v", s, err, x.trace)
	}
	return len(x.worlds), nil
}

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
		shape  shape
		whole  bool
		faults int
	}
	tasks := make(chan task)
	var worlds atomic.Int64
	var group sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		group.Go(func() {
			for task := range tasks {
				n, err := explore(task.shape, task.whole, task.faults, everyRule)
				worlds.Add(int64(n))
				if err != nil {
					t.Errorf("whole %v: %v", task.whole, err)
				}
			}
		})
	}
	larger := 0
	if *deep {
		larger = 2
	}
	for _, whole := range []bool{false, true} {
		for _, s := range slices.Concat(shapes(1, 2, 1), shapes(2, 2, 1)) {
			tasks <- task{s, whole, 2}
		}
		for _, s := range shapes(2, 3, 1) {
			tasks <- task{s, whole, larger}
		}
	}
	close(tasks)
	group.Wait()
	t.Logf("%d worlds", worlds.Load())
}

// TestEachRuleIsNeeded leaves out one rule at a time and looks for what comes of it.
func TestEachRuleIsNeeded(t *testing.T) {
	for name, c := range map[string]struct {
		without rules
		breaks  Invariant
		shapes  []shape
		faults  int
	}{
		"arrival":     {ruleArrival, FloorInvariant, shapes(2, 3, 1), 0},
		"drain order": {ruleDrainOrder, OrderInvariant, shapes(2, 2, 1), 0},
		"balance":     {ruleBalance, FloorInvariant, shapes(2, 3, 1), 0},
		"gone":        {ruleGone, FloorInvariant, shapes(1, 2, 1), 0},
		"held":        {ruleHeld, BudgetInvariant, shapes(1, 2, 1), 0},
		"reach":       {ruleReach, EndsInvariant, []shape{{[]int{1, 2}, []int{1, 1}, []int{0, 0}}}, 2},
		"stable last": {ruleStableLast, WayBackInvariant, shapes(1, 2, 1), 1},
	} {
		t.Run(name, func(t *testing.T) {
			for _, s := range c.shapes {
				_, err := explore(s, false, c.faults, everyRule&^c.without)
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
