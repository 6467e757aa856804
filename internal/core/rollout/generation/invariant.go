package generation

import (
	"errors"
	"fmt"
	"iter"
	"slices"
)

// The invariants of a rollout, written without the planner's own reasoning: tests
// hold every step against them, and an operator can before it writes one.
//
//	I1 floor       FloorKept, Serves
//	I2 isolation   Isolated
//	I3 budget      BudgetKept
//	I4 way back    WayBackKept
//	I5 memoryless  Next takes nothing but a World; whoever sees the objects finds a lost record
//	I6 ends        Ended, for a world in which nothing is under way any more
//	I7 quiet       Quiet
//	I8 small       Quiet: a step names a role of the cell

// Invariant is the name of one.
type Invariant string

const (
	FloorInvariant     Invariant = "I1 floor"
	IsolationInvariant Invariant = "I2 isolation"
	BudgetInvariant    Invariant = "I3 budget"
	WayBackInvariant   Invariant = "I4 way back"
	EndsInvariant      Invariant = "I6 ends"
	QuietInvariant     Invariant = "I7 quiet"
	SmallInvariant     Invariant = "I8 small"
	// OrderInvariant is the order of a drain, as an entry may still fetch from its
	// generation's support, and of a start, where an entry gets requests at once.
	OrderInvariant Invariant = "drain order"
)

// Violation says which invariant a step breaks, and how.
type Violation struct {
	Invariant Invariant
	Message   string
}

func (v Violation) Error() string { return fmt.Sprintf("%s: %s", v.Invariant, v.Message) }

func violated(i Invariant, format string, args ...any) error {
	return Violation{i, fmt.Sprintf(format, args...)}
}

// Check holds a step against every invariant that a single one can break.
func Check(w World, s Step) error {
	w = w.Postponed()
	return errors.Join(FloorKept(w, s), BudgetKept(w, s), WayBackKept(w, s), OrderKept(w, s), Quiet(w, s))
}

// After is the world once a step was written, before anything came of it.
func After(w World, s Step) World {
	w = w.ordered()
	if s.Action == Delete {
		w.Generations = slices.DeleteFunc(w.Generations, func(g Generation) bool { return g.ID == s.Generation })
	}
	if s.Action != Scale && s.Action != Make {
		return w
	}
	g := w.index(s.Generation)
	w.Generations[g].Roles = slices.Clone(w.Generations[g].Roles)
	if s.Action == Make {
		for r, n := range w.Postponed().Unit() {
			w.Generations[g].Roles[r].Want = n
		}
		return w
	}
	w.Generations[g].Roles[w.role(s.Role)].Want = s.Replicas
	return w
}

func (w World) role(name string) int {
	return slices.IndexFunc(w.Roles, func(r Role) bool { return r.Name == name })
}

// FloorKept is I1 of a step: in whatever order those come up that are starting,
// complete generations keep the floor in replicas, and in effective support but for
// the slack; where a fault has broken it, they keep what they have.
func FloorKept(w World, s Step) error {
	if s.Action == Delete {
		if g := w.index(s.Generation); g >= 0 {
			for r, seen := range w.Generations[g].Roles {
				if seen.held() > 0 {
					return violated(FloorInvariant, "%s is deleted with %d of %s", s.Generation, seen.held(), w.Roles[r].Name)
				}
			}
		}
	}
	if s.Action != Scale && s.Action != Make {
		return nil
	}
	now, after := capacityOf(w.Roles, w.lacking(), w.serving()), After(w, s)
	without := after.lacking()
	for g, before := range w.ordered().lacking() { // a step leaves nobody without what was needed
		for r := range before {
			without[g][r] = without[g][r] && before[r]
		}
	}
	for at := range arrivals(after) {
		if err := atLeast(w, now, s.Slack, capacityOf(w.Roles, without, at)); err != nil {
			return violated(FloorInvariant, "%s %s %s to %d, as %v come up: %v", s.Action, s.Generation, s.Role, s.Replicas, at, err)
		}
	}
	return nil
}

// Serves is I1 of a world in which no fault happened: the floor is kept, but for the
// slack. Nothing is promised of what the stable generation still serves without.
func Serves(w World, slack int) error {
	full := capacity{make([]int, len(w.Roles)), make([]ratio, len(w.Roles))}
	for r, role := range w.Roles {
		full.effective[r] = whole(0)
		if !w.Lacks(r) {
			full.replicas[r], full.effective[r] = role.Desired, whole(role.Desired)
		}
	}
	if err := atLeast(w, full, slack, capacityOf(w.Roles, w.lacking(), w.serving())); err != nil {
		return violated(FloorInvariant, "%v", err)
	}
	return nil
}

// atLeast compares a capacity with the floor, or with what there was before.
func atLeast(w World, before capacity, slack int, c capacity) error {
	for r, floor := range w.floor() {
		if least := min(floor, before.replicas[r]); c.replicas[r] < least {
			return fmt.Errorf("%d of %s serve, floor %d", c.replicas[r], w.Roles[r].Name, least)
		}
		least := whole(max(0, floor-slack))
		// Where some serve without it, the others may have more for their share than there are.
		for _, had := range []ratio{before.effective[r], whole(before.replicas[r])} {
			if had.less(least) {
				least = had
			}
		}
		if e := c.effective[r]; !w.Roles[r].Entry && e.less(least) {
			return fmt.Errorf("effective %s is %d/%d, floor %d less %d", w.Roles[r].Name, e.num, e.den, floor, slack)
		}
	}
	return nil
}

// arrivals are the worlds that may come of what is starting: any number of each role
// of each generation up to what is wanted. Where those are too many, of each number
// only the least, one, and the most are taken.
func arrivals(w World) iter.Seq[counts] {
	least, most := w.serving(), w.wanted()
	all := 1
	for g := range least {
		for r := range least[g] {
			all = min(all*(1+most[g][r]-least[g][r]), manyArrivals+1)
		}
	}
	return func(yield func(counts) bool) {
		at := make(counts, len(least))
		for g := range at {
			at[g] = slices.Clone(least[g])
		}
		var try func(i int) bool
		try = func(i int) bool {
			if i == len(at)*len(w.Roles) {
				return yield(at)
			}
			g, r := i/len(w.Roles), i%len(w.Roles)
			for n := least[g][r]; n <= most[g][r]; n++ {
				if all > manyArrivals && n > max(1, least[g][r]) && n < most[g][r] {
					continue
				}
				at[g][r] = n
				if !try(i + 1) {
					return false
				}
			}
			return true
		}
		try(0)
	}
}

const manyArrivals = 2000

// BudgetKept is I3: a step that starts replicas leaves no more of them held than
// desired and surge allow. Those that are leaving hold their GPUs too.
func BudgetKept(w World, s Step) error {
	if s.Action != Scale && s.Action != Make {
		return nil
	}
	held := func(w World, r int) (n int) {
		for _, g := range w.Generations {
			n += g.Roles[r].held()
		}
		return n
	}
	then := After(w, s)
	for r, role := range w.Roles {
		if before, after := held(w, r), held(then, r); after > before && after > role.Desired+role.Surge {
			return violated(BudgetInvariant, "%d of %s held, %d desired and %d surge", after, role.Name, role.Desired, role.Surge)
		}
	}
	return nil
}

// WayBackKept is I4: the stable generation keeps what a level leaves it, and of all
// sources it goes last: it gives no entry while another has one that can go, and that
// for good. One that would have to be started again first is kept for its capacity.
func WayBackKept(w World, s Step) error {
	if s.Action != Scale || s.Generation != w.Stable || w.Target() == w.Stable {
		return nil
	}
	r := w.role(s.Role)
	before := w.Generations[w.index(s.Generation)].Roles[r].Want
	if s.Replicas >= before {
		return nil
	}
	p := newPlanner(w.ordered(), everyRule)
	if goal := p.goal[p.stable][r]; s.Replicas < goal {
		return violated(WayBackInvariant, "stable %s goes to %d, the level leaves it %d", s.Role, s.Replicas, goal)
	}
	for g, other := range p.Generations {
		if g == p.stable || g == p.target || !w.Roles[r].Entry {
			continue
		}
		for i, role := range p.Roles {
			instead := Step{Action: Scale, Generation: other.ID, Role: role.Name, Replicas: other.Roles[i].Want - 1, Slack: s.Slack}
			if role.Entry && other.Roles[i].Want > 0 && FloorKept(p.World, instead) == nil && p.leads(instead) {
				return violated(WayBackInvariant, "stable %s goes to %d while %s has %d of %s", s.Role, s.Replicas, other.ID, other.Roles[i].Want, role.Name)
			}
		}
	}
	return nil
}

// leads reports whether the goal is nearer after a step.
func (p *planner) leads(s Step) bool {
	p.slack = s.Slack
	ways := p.lattice()
	want := After(p.World, s).wanted()
	left := ways.cost(want)
	return ways.low.keeps(p.Roles, want) && left != noWay && left < ways.cost(p.want)
}

// OrderKept says that support of a generation shrinks only while none of its entries
// is leaving, and goes after the last of them; that entries which get requests at once are
// started after it; and that those of the stable generation are told after it is.
func OrderKept(w World, s Step) error {
	if s.Action != Scale {
		return nil
	}
	g, r, l := w.index(s.Generation), w.role(s.Role), w.lacking()
	if w.Roles[r].Entry && s.Replicas > 0 && (g < 0 || s.Replicas > w.Generations[g].Roles[r].Want) {
		for i, role := range w.Roles {
			if !role.supports() || g >= 0 && l.has(g, i) {
				continue
			}
			if s.Generation == w.Stable && (g < 0 || w.Generations[g].Roles[i].Want < 1) {
				return violated(OrderInvariant, "%s of stable %s goes to %d, and none of %s is wanted", s.Role, s.Generation, s.Replicas, role.Name)
			}
			if w.Paired && (g < 0 || w.Generations[g].Roles[i].serving() < 1) {
				return violated(OrderInvariant, "%s of %s goes to %d, and none of %s serves", s.Role, s.Generation, s.Replicas, role.Name)
			}
		}
	}
	if g < 0 || w.Roles[r].Entry || s.Replicas >= w.Generations[g].Roles[r].Want {
		return nil
	}
	for i, seen := range w.Generations[g].Roles {
		if w.Roles[i].Entry && (seen.leaving() || s.Replicas == 0 && w.Roles[r].supports() && seen.held() > 0) {
			return violated(OrderInvariant, "%s of %s goes to %d, %d of %s are held and %d wanted", s.Role, s.Generation, s.Replicas, seen.held(), w.Roles[i].Name, seen.Want)
		}
	}
	return nil
}

// Quiet is I7 and I8: a step changes something, of this cell.
func Quiet(w World, s Step) error {
	if s.Action == Wait {
		return nil
	}
	o := w.ordered()
	g, r := o.index(s.Generation), o.role(s.Role)
	if g < 0 || s.Action == Scale && r < 0 {
		return violated(SmallInvariant, "%s %s of %s is no part of the cell", s.Action, s.Role, s.Generation)
	}
	if s.Action == Scale && o.Generations[g].Roles[r].Absent && s.Replicas > 0 {
		return violated(SmallInvariant, "%s of %s is told %d, and there is no such role", s.Role, s.Generation, s.Replicas)
	}
	if s.Action == Scale && o.Generations[g].Roles[r].Want == s.Replicas {
		return violated(QuietInvariant, "%s of %s is told %d again", s.Role, s.Generation, s.Replicas)
	}
	if s.Action == Scale && o.Paused {
		was := 0
		for _, g := range o.Generations {
			was += g.Roles[r].Want
		}
		is, desired := was+s.Replicas-o.Generations[g].Roles[r].Want, o.Roles[r].Desired
		if is > was && is > desired || is < was && is < desired {
			return violated(QuietInvariant, "%s of %s is told %d while paused, and all of them come to %d of %d", s.Role, s.Generation, s.Replicas, is, desired)
		}
	}
	none := !slices.ContainsFunc(o.Generations[g].Roles, func(r Replicas) bool { return r.Want > 0 })
	// Others than the target were made, and are told role by role if they are wanted again.
	if o.Whole && (none && s.Action == Scale && s.Generation == o.Target() || !none && s.Action == Make) {
		return violated(SmallInvariant, "%s of %s, which has nothing: %v", s.Action, s.Generation, none)
	}
	return nil
}

// Ended is I6 of a world in which nothing is under way and the step is to wait: the
// rollout is through, held, or says what it is blocked by.
func Ended(s Step) error {
	switch s.Phase {
	case PhaseCompleted, PhaseAborted, PhaseHeld:
		return nil
	case PhaseBlocked:
		if s.Reason != "" {
			return nil
		}
	}
	return violated(EndsInvariant, "nothing is under way, and the rollout is %s, reason %q", s.Phase, s.Reason)
}

// Placement is a pod as the wire sees it.
type Placement struct {
	// DynamoNamespace is where it registers, Wire what its peers must agree on.
	DynamoNamespace, Wire string
}

// Isolated is I2: pods share a Dynamo namespace only if they agree on the wire.
func Isolated(pods []Placement) error {
	wire := map[string]string{}
	for _, p := range pods {
		if known, found := wire[p.DynamoNamespace]; found && known != p.Wire {
			return violated(IsolationInvariant, "Dynamo namespace %s has %q and %q", p.DynamoNamespace, known, p.Wire)
		}
		wire[p.DynamoNamespace] = p.Wire
	}
	return nil
}
