package generation

import (
	"cmp"
	"iter"
	"slices"
)

// rules are those that a step is chosen by. Each keeps an invariant: tests leave out
// one at a time, and must notice.
type rules uint

const (
	// ruleArrival expects what is starting in any order.
	ruleArrival rules = 1 << iota
	// ruleProof takes nothing away until a first complete unit of the target serves.
	ruleProof
	// ruleDrainOrder keeps support while an entry that leaves may still need it.
	ruleDrainOrder
	// ruleBalance looks after the support for each generation's share of the traffic.
	ruleBalance
	// ruleGone counts what was told to go as gone.
	ruleGone
	// ruleHeld counts what is leaving against the budget.
	ruleHeld
	// ruleReach takes only steps from which the goal is reached at less cost.
	ruleReach
	// ruleStableLast drains every other source before the stable one.
	ruleStableLast
	// ruleStartOrder starts entries that get requests at once where they can serve them.
	ruleStartOrder
	// ruleOrdinal has the highest ordinals go first where there are any.
	ruleOrdinal

	everyRule rules = 1<<iota - 1
)

func (r rules) has(one rules) bool { return r&one != 0 }

// Next is the next step of a world.
func Next(w World) Step { return next(w, everyRule) }

func next(w World, r rules) Step {
	p := newPlanner(w.Postponed().ordered(), r)
	p.begun = w.index(w.Target()) >= 0
	step := p.step()
	step.Phase = p.phase(step)
	if step.Action == Wait && (step.Phase == PhaseStarting || step.Phase == PhaseShifting) && p.refused() {
		step.Phase, step.Reason = PhaseBlocked, ReasonNotAdmitted
	}
	return step
}

// planner chooses a step: a search tells what is possible, and of that the largest
// step is taken that is safe whatever happens next.
type planner struct {
	World
	rules
	target, stable int
	// begun says that the target was made, partly that it is to have a share.
	begun, partly bool
	goal          counts
	want, serving counts
	lacking       lacking
	floor         []int
	// budget is how many replicas of a role may be held.
	budget []int
	// now are the bounds of what serves now.
	now bounds
	// ways is what the search goes by; its bounds are those of what is wanted.
	ways  lattice
	slack int
}

func newPlanner(w World, r rules) *planner {
	p := &planner{World: w, rules: r, target: w.index(w.Target()), stable: w.index(w.Stable), want: w.wanted(), lacking: w.lacking(), floor: w.floor()}
	p.goal = p.goals()
	p.serving = w.serving()
	if !r.has(ruleGone) {
		p.serving = w.each(func(r Replicas) int { return r.Routable })
	}
	for i, role := range w.Roles {
		p.budget = append(p.budget, role.Desired+role.Surge)
		if p.starved() && (role.GPUs > 0 || p.waits(i)) {
			p.budget[i] = role.Desired
		}
	}
	return p
}

// refused reports whether all that the target waits for is refused by frontends.
func (p *planner) refused() bool {
	some := false
	for _, r := range p.Generations[p.target].Roles {
		if r.Want > r.Routable+r.Unschedulable+r.Refused {
			return false
		}
		some = some || r.Refused > 0 && r.Want > r.Routable // one more than wanted is not waited for
	}
	return some
}

// starved reports whether a replica waits for a node: then there is no room for a
// surge, whatever is allowed, but of roles that need no GPU, such as frontends.
func (p *planner) starved() bool {
	for r := range p.Roles {
		if p.waits(r) {
			return true
		}
	}
	return false
}

// waits reports whether a replica of a role waits for a node.
func (p *planner) waits(r int) bool {
	return slices.ContainsFunc(p.Generations, func(g Generation) bool { return g.Roles[r].Unschedulable > 0 })
}

// goals is where the rollout is to arrive: at the target alone or, up to a level, at
// a share of it with support of its own beside the stable generation's rest.
func (p *planner) goals() counts {
	goal := make(counts, len(p.Generations))
	for g := range goal {
		goal[g] = make([]int, len(p.Roles))
	}
	if p.stable >= 0 && p.stable != p.target {
		if target, stable, ok := p.shares(p.Level); ok {
			goal[p.target], goal[p.stable], p.partly = target, stable, true
			return goal
		}
	}
	goal[p.target] = p.desired()
	return goal
}

// Stop is how many entries the target has at a level, and whether a rollout can stop
// there: not at all of them, nor where the stable generation would lack a role.
func (w World) Stop(level int) (entries int, ok bool) {
	target, _, ok := w.shares(level)
	return entriesOf(w.Roles, target), ok
}

// shares are what target and stable generation have at a level, each at least one of every
// role that it needs, out of surge if need be: the stable one is what to go back to.
func (w World) shares(level int) (target, stable []int, ok bool) {
	target, stable = make([]int, len(w.Roles)), make([]int, len(w.Roles))
	entries := 0
	for r, role := range w.Roles {
		target[r] = role.Desired
		if role.Entry {
			entries += role.Desired
		}
	}
	if level < 1 || level >= entries {
		return target, stable, false
	}
	ok = true
	for r, role := range w.Roles {
		target[r] = portion(role.Desired, level, entries)
		if w.Lacks(r) {
			continue
		}
		stable[r] = max(min(1, role.Desired), role.Desired-target[r])
		if !role.Entry {
			stable[r] = max(min(1, role.Desired), min(portion(role.Desired, entries-level, entries), role.Desired+role.Surge-target[r]))
		}
		ok = ok && target[r]+stable[r] <= role.Desired+role.Surge
	}
	return target, stable, ok
}

// portion of replicas, rounded up; at least one, or the generation serves nothing.
func portion(replicas, of, all int) int {
	return max(min(1, replicas), (replicas*of+all-1)/all)
}

func (p *planner) step() Step {
	switch {
	case p.Paused:
		return p.hold(ReasonPaused)
	case p.asleep():
		return p.hold(ReasonNothingDesired)
	case p.arrived():
		return p.tidy()
	}
	for p.slack = 0; ; {
		left, found := p.findSlack()
		if !found {
			return p.idle(ReasonNoPath)
		}
		for _, try := range []func(int) (Step, bool){p.grow, p.drain, p.shrink, p.detour} {
			if step, ok := try(left); ok {
				return step
			}
		}
		if !p.ways.greedy || p.underWay() {
			return p.idle(ReasonNoPath)
		}
		p.slack = max(1, 2*p.slack) // nobody knows whether there is a way with less
	}
}

// asleep reports whether a rollout is open to which nothing is to arrive, or no entry that
// a step could be held at. That none is wanted of the stable generation either approves of
// no candidate.
func (p *planner) asleep() bool {
	if !p.begun || p.stable < 0 || p.stable == p.target {
		return false
	}
	return !slices.ContainsFunc(p.Roles, func(r Role) bool { return r.Desired > 0 && (r.Entry || !p.Unapproved) })
}

// hold takes no step of the rollout; what is desired is followed.
func (p *planner) hold(reason Reason) Step {
	p.now = p.bounds(p.serving)
	step, ok := p.more()
	if !ok {
		step, ok = p.fewer()
	}
	if !ok {
		step = Step{Action: Wait}
	}
	step.Reason = reason
	return step
}

// more starts what all generations together lack of a role.
func (p *planner) more() (Step, bool) {
	g := p.scaled()
	for _, r := range p.order(false) {
		want := p.want[g][r]
		most := min(p.Roles[r].Desired-p.total(r), p.room(r))
		if most < 1 || p.closed(g, r) {
			continue
		}
		if p.Whole && g == p.target && !slices.ContainsFunc(p.want[g], func(n int) bool { return n > 0 }) {
			return Step{Action: Make, Generation: p.Generations[g].ID}, p.fits(p.Unit())
		}
		for n := want + most; n > want; n-- {
			if serving, wanted := p.after(g, r, n); p.keepsAnyArrival(serving, wanted) {
				return p.scale(g, r, n), true
			}
		}
	}
	return Step{}, false
}

// fewer takes away what all generations together have of a role beyond its surge, which
// may be there for the rollout, or all of one of which none is desired.
func (p *planner) fewer() (Step, bool) {
	for _, r := range p.order(true) {
		role := p.Roles[r]
		surplus := p.total(r) - role.Desired
		if role.Desired > 0 {
			surplus -= role.Surge
		}
		for _, g := range append(p.sources(), p.target) {
			least := 0
			if role.Desired > 0 && (g == p.stable || g == p.target || role.supports() && entriesOf(p.Roles, p.want[g]) > 0) {
				least = 1 // it stays complete
			}
			if g == p.stable && g != p.target {
				least = max(least, p.goal[g][r])
			}
			if p.settling(g) || !role.Entry && p.needed(g) {
				continue
			}
			for n := max(least, p.want[g][r]-max(0, surplus)); n < p.want[g][r]; n++ {
				if serving, wanted := p.after(g, r, n); p.keepsAnyArrival(serving, wanted) {
					return p.scale(g, r, n), true
				}
			}
		}
	}
	return Step{}, false
}

// scaled is the generation that follows what is desired while no step is taken: the stable
// one, or the largest complete one once that is leaving.
func (p *planner) scaled() int {
	best := -1
	for g, want := range p.want {
		if p.lacking.complete(p.Roles, g, want) && (best < 0 || entriesOf(p.Roles, want) > entriesOf(p.Roles, p.want[best])) {
			best = g
		}
	}
	switch {
	case p.stable >= 0 && (best < 0 || p.lacking.complete(p.Roles, p.stable, p.want[p.stable])):
		return p.stable
	case best >= 0:
		return best
	default:
		return p.target
	}
}

// total is how many replicas of a role all generations together were told to have.
func (p *planner) total(r int) int {
	sum := 0
	for _, g := range p.want {
		sum += g[r]
	}
	return sum
}

// findSlack takes the least slack for which a way exists, from the one that was tried. It
// is support alone that may lack something.
func (p *planner) findSlack() (left int, found bool) {
	most := 0
	for r, f := range p.floor {
		if !p.Roles[r].Entry {
			most = max(most, f)
		}
	}
	for ; p.slack <= most; p.slack++ {
		p.now = p.bounds(p.serving)
		p.ways = p.lattice()
		if left = p.ways.cost(p.want); left != noWay {
			return left, true
		}
	}
	return 0, false
}

// amounts are how many replicas to start or to take away at once, the most first. Where
// no search tells which of them lead on, halves are enough to get there.
func (p *planner) amounts(most int) iter.Seq[int] {
	return func(yield func(int) bool) {
		for n := most; n > 0; {
			if !yield(n) {
				return
			}
			if p.ways.greedy {
				n /= 2
			} else {
				n--
			}
		}
	}
}

func (p *planner) lattice() lattice {
	l := lattice{
		roles: p.Roles, lacking: p.lacking, paired: p.Paired && p.has(ruleStartOrder), target: p.target, stable: p.stable,
		goal: p.goal, low: p.bounds(p.want), found: map[string]int{},
	}
	if p.Whole {
		l.unit = p.Unit()
	}
	return l
}

func (p *planner) bounds(at counts) bounds {
	b := boundsAt(p.Roles, p.lacking, p.floor, p.slack, at)
	if !p.has(ruleBalance) {
		for r := range b.effective {
			b.effective[r] = whole(0)
		}
	}
	return b
}

// grow starts as many replicas of one role as it may, support before the entries that
// will need it.
func (p *planner) grow(left int) (Step, bool) {
	for _, g := range p.byGoal() {
		if p.ways.unmade(p.want, g) {
			if p.fits(p.ways.unit) && p.leadsOn(g, p.ways.unit, left) {
				return Step{Action: Make, Generation: p.Generations[g].ID, Slack: p.slack}, true
			}
			continue
		}
		for _, r := range p.order(false) {
			if p.closed(g, r) {
				continue
			}
			want := p.want[g][r]
			for by := range p.amounts(min(p.goal[g][r]-want, p.room(r))) {
				if p.safe(g, r, want+by, left) {
					return p.scale(g, r, want+by), true
				}
			}
		}
	}
	return Step{}, false
}

// drain takes away as much of a source as it may, entries before the support that
// they may still need.
func (p *planner) drain(left int) (Step, bool) {
	if p.has(ruleProof) && p.unproven() {
		return Step{}, false
	}
	for _, g := range p.sources() {
		if step, ok := p.less(g, left); ok {
			return step, true
		}
	}
	return Step{}, false
}

// shrink brings a target down that has more than is desired.
func (p *planner) shrink(left int) (Step, bool) { return p.less(p.target, left) }

func (p *planner) less(g, left int) (Step, bool) {
	if p.settling(g) {
		return Step{}, false
	}
	for _, r := range p.order(true) {
		if p.has(ruleDrainOrder) && !p.Roles[r].Entry && p.needed(g) {
			continue
		}
		unreplaced := p.lacking.has(p.target, r) // so that no floor keeps what entries need
		for by := range p.amounts(p.want[g][r] - p.goal[g][r]) {
			n := p.want[g][r] - by
			if (n == 0 || unreplaced) && p.has(ruleDrainOrder) && p.Roles[r].supports() && entriesOf(p.Roles, p.want[g]) > 0 {
				continue
			}
			if p.safe(g, r, n, left) {
				return p.scale(g, r, n), true
			}
		}
	}
	return Step{}, false
}

// detour takes one move of a way that goes back at first, once there is nothing else
// to do or to wait for.
func (p *planner) detour(left int) (Step, bool) {
	if p.underWay() {
		return Step{}, false
	}
	_, m := p.ways.search(p.want)
	if m == nil || m.unit || m.by > 0 && (p.room(m.role) < 1 || p.closed(m.generation, m.role)) {
		return Step{}, false
	}
	n := p.want[m.generation][m.role] + m.by
	if m.by < 0 && p.settling(m.generation) || p.has(ruleDrainOrder) && m.by < 0 && !p.Roles[m.role].Entry && p.needed(m.generation) || !p.safe(m.generation, m.role, n, left) {
		return Step{}, false
	}
	return p.scale(m.generation, m.role, n), true
}

// safe reports whether a step keeps what has to serve, in whatever order those come
// up that are starting, and leads on to the goal.
func (p *planner) safe(g, r, n, left int) bool {
	to := slices.Clone(p.want[g])
	to[r] = n
	return p.leadsOn(g, to, left)
}

// leadsOn is the same of a generation whose roles are told something at once.
func (p *planner) leadsOn(g int, to []int, left int) bool {
	serving, want := p.told(g, to)
	if !p.keepsAnyArrival(serving, want) {
		return false
	}
	after := p.ways.cost(want)
	return !p.has(ruleReach) || after != noWay && after < left
}

// after is what serves and what is wanted once a role was told its replicas.
func (p *planner) after(g, r, n int) (serving, want counts) {
	to := slices.Clone(p.want[g])
	to[r] = n
	return p.told(g, to)
}

// told is the same of a generation.
func (p *planner) told(g int, to []int) (serving, want counts) {
	want = slices.Clone(p.want)
	want[g] = to
	serving = slices.Clone(p.serving)
	if p.has(ruleGone) {
		serving[g] = slices.Clone(serving[g])
		for r, n := range to {
			kept := n
			if p.has(ruleOrdinal) {
				kept = p.Generations[g].Roles[r].kept(n)
			}
			serving[g][r] = min(serving[g][r], kept)
		}
	}
	return serving, want
}

// keepsAnyArrival tries what can be worst for each generation: nothing of it comes
// up, or every entry does and of support only what serves now, or one.
func (p *planner) keepsAnyArrival(serving, want counts) bool {
	if !p.has(ruleArrival) {
		return p.now.keeps(p.Roles, serving)
	}
	worst := make(counts, len(serving))
	var try func(g int) bool
	try = func(g int) bool {
		if g == len(serving) {
			return p.now.keeps(p.Roles, worst)
		}
		worst[g] = serving[g]
		if !try(g + 1) {
			return false
		}
		crowded := make([]int, len(p.Roles))
		for r, role := range p.Roles {
			crowded[r] = max(serving[g][r], min(1, want[g][r]))
			if role.Entry {
				crowded[r] = max(serving[g][r], want[g][r])
			}
		}
		if slices.Equal(crowded, serving[g]) {
			return true
		}
		worst[g] = crowded
		return try(g + 1)
	}
	return try(0)
}

// unproven reports whether a first complete unit of the target is on its way. While
// it is, nothing is known of the target but that it was asked for.
func (p *planner) unproven() bool {
	if p.starved() || p.lacking.complete(p.Roles, p.target, p.serving[p.target]) {
		return false
	}
	return slices.ContainsFunc(p.Generations[p.target].Roles, Replicas.starting)
}

// settling reports whether what has to serve is there only with replicas of a generation
// of which that is soon known: until then nothing of it is taken away, as if a fault had
// broken the floor.
func (p *planner) settling(g int) bool {
	if !slices.ContainsFunc(p.Generations[g].Roles, func(r Replicas) bool { return r.Settling > 0 }) {
		return false
	}
	now := capacityOf(p.Roles, p.lacking, p.serving)
	for r, floor := range p.floor {
		if now.replicas[r] < floor {
			return true
		}
	}
	return false
}

// needed reports whether entries of a generation are leaving: they may still fetch
// from its support.
func (p *planner) needed(g int) bool {
	for r, role := range p.Roles {
		if role.Entry && p.Generations[g].Roles[r].leaving() {
			return true
		}
	}
	return false
}

// closed reports whether replicas of a generation must not be started: of a role that it
// serves without, as it would be incomplete until that comes up, entries that would get
// requests that nobody of it can serve yet, and those of a stable one that would look as if
// they needed no support.
func (p *planner) closed(g, r int) bool {
	if p.lacking.has(g, r) {
		return true
	}
	if !p.Roles[r].Entry {
		return false
	}
	return p.has(ruleStartOrder) && p.Paired && !p.lacking.supported(p.Roles, g, p.serving[g]) ||
		g == p.stable && !p.lacking.supported(p.Roles, g, p.want[g])
}

// room is how many more of a role may be started.
func (p *planner) room(r int) int {
	held := 0
	for _, g := range p.Generations {
		if p.has(ruleHeld) {
			held += g.Roles[r].held()
		} else {
			held += g.Roles[r].Want
		}
	}
	return p.budget[r] - held
}

// fits reports whether there is room for a unit. It needs none for a role that it has
// none of, even where others have more of that than they may.
func (p *planner) fits(unit []int) bool {
	for r, n := range unit {
		if n > 0 && p.room(r) < n {
			return false
		}
	}
	return true
}

// order lists the roles: support before entries, or after them.
func (p *planner) order(entriesFirst bool) []int {
	all := make([]int, len(p.Roles))
	for r := range all {
		all[r] = r
	}
	slices.SortStableFunc(all, func(a, b int) int {
		x, y := rank(p.Roles[a].Entry), rank(p.Roles[b].Entry)
		if entriesFirst {
			x, y = y, x
		}
		return cmp.Compare(x, y)
	})
	return all
}

func rank(last bool) int {
	if last {
		return 1
	}
	return 0
}

// sources are the generations to leave, the stable one last: it is the way back.
func (p *planner) sources() []int {
	var all []int
	for g := range p.Generations {
		if g != p.target {
			all = append(all, g)
		}
	}
	slices.SortStableFunc(all, func(a, b int) int {
		x, y := rank(a == p.stable), rank(b == p.stable)
		if !p.has(ruleStableLast) {
			x, y = y, x
		}
		return cmp.Compare(x, y)
	})
	return all
}

// byGoal are the generations that may have to grow: the target, and a stable one
// that keeps a share.
func (p *planner) byGoal() []int {
	all := []int{p.target}
	if p.stable >= 0 && p.stable != p.target {
		all = append(all, p.stable)
	}
	return all
}

// arrived reports whether all that is wanted is the goal, and all of it has come.
func (p *planner) arrived() bool {
	for g, generation := range p.Generations {
		for r, seen := range generation.Roles {
			if seen.Want != p.goal[g][r] || seen.Routable < seen.Want || seen.leaving() {
				return false
			}
		}
	}
	return true
}

// tidy removes generations of which nothing is left.
func (p *planner) tidy() Step {
	for _, g := range p.sources() {
		if slices.Max(p.goal[g]) == 0 {
			return Step{Action: Delete, Generation: p.Generations[g].ID}
		}
	}
	if p.partly {
		return Step{Action: Wait, Reason: ReasonLevel}
	}
	return Step{Action: Wait}
}

// desired is what the target is to have in the end, but for what it serves without.
func (p *planner) desired() []int {
	all := make([]int, len(p.Roles))
	for r, role := range p.Roles {
		if !p.lacking.has(p.target, r) {
			all[r] = role.Desired
		}
	}
	return all
}

// idle waits for what is under way; if nothing is, the rollout is blocked.
func (p *planner) idle(reason Reason) Step {
	switch {
	case p.underWay():
		return Step{Action: Wait, Slack: p.slack}
	case p.starved():
		return Step{Action: Wait, Reason: ReasonNoSpareGPU, Slack: p.slack}
	default:
		return Step{Action: Wait, Reason: reason, Slack: p.slack}
	}
}

func (p *planner) underWay() bool {
	return slices.ContainsFunc(p.Generations, func(g Generation) bool {
		return slices.ContainsFunc(g.Roles, func(r Replicas) bool { return r.starting() || r.leaving() })
	})
}

func (p *planner) scale(g, r, n int) Step {
	return Step{Action: Scale, Generation: p.Generations[g].ID, Role: p.Roles[r].Name, Replicas: n, Slack: p.slack}
}

// phase is how far the rollout is with the step that was chosen.
func (p *planner) phase(s Step) Phase {
	aborting := p.Target() != p.Spec
	done := p.arrived() && s.Action == Wait
	switch {
	case s.Reason == ReasonNoPath || s.Reason == ReasonNoSpareGPU:
		return PhaseBlocked
	case s.Reason == ReasonPaused || s.Reason == ReasonLevel || s.Reason == ReasonNothingDesired:
		return PhaseHeld
	case aborting && done:
		return PhaseAborted
	case aborting:
		return PhaseAborting
	case done:
		return PhaseCompleted
	case slices.Equal(p.serving[p.target], p.desired()):
		return PhaseDraining
	case p.lacking.complete(p.Roles, p.target, p.serving[p.target]):
		return PhaseShifting
	default:
		return PhaseStarting
	}
}
