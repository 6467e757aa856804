package decision

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/dynamo-operator/dynamo-operator/internal/core/planner/capacity"
	"github.com/dynamo-operator/dynamo-operator/internal/core/planner/forecast"
)

const (
	// unknownStartup is assumed until a start was measured.
	unknownStartup = 120 * time.Second
	// longestStartup bounds the horizon: nobody foresees further.
	longestStartup = 30 * time.Minute
	longestPause   = 30 * time.Minute
	// hopeless is after how long a replica without a node is given up, and learnt for
	// how long.
	hopeless = 60 * time.Second
	learnt   = 5 * time.Minute
	// uneven is the part of a tick by which looks are late. A start that is seen so much
	// longer than some ticks took those: a horizon of one more costs replicas.
	uneven = 0.1
	// worthwhile is how much better a vector must serve for a binding budget to be
	// divided anew.
	worthwhile = 1.1
	// along is how much more may come before the other role grows in the same write.
	along = 1.1
)

// Decide says what a graph is to have now.
func Decide(c Config, s Snapshot, m Memory) (Decision, Memory) {
	c = c.Defaults()
	for r := range s.Roles { // an array: the caller's stays as it is
		s.Roles[r].Wanted = max(0, s.Roles[r].Wanted)
	}
	wanted := Vector{s.Roles[Prefill].Wanted, s.Roles[Decode].Wanted}
	d := Decision{Replicas: wanted, Reason: Steady}
	budget := c.budget(s.Grant)
	if !c.sees(s) {
		m.Blind++
		d.Reason, d.BlindFor = Blind, m.Blind
		d.step(c, s, d.raise(wanted, c.floors(wanted)), budget)
		return d, m
	}
	m.Blind = 0
	startup := s.Startup
	if startup <= 0 {
		startup = unknownStartup
	}
	startup = min(startup, longestStartup)
	p := forecast.Params{
		Step: c.Tick.Seconds(), Horizon: int(math.Ceil(float64(startup+c.Tick)/float64(c.Tick) - uneven)), Quantile: c.Quantile,
		Level: c.FilterLevel, Trend: c.FilterTrend, Noise: c.FilterNoise, Even: m.evenness(),
	}
	for _, n := range s.Bins {
		m.Forecast = m.Forecast.Next(n/c.Tick.Seconds(), p)
	}
	d.Forecast, d.Horizon = m.Forecast.Forecast(p), time.Duration(p.Horizon)*c.Tick
	if s.Lengths.Input > 0 {
		m.Lengths = s.Lengths
	}
	if m.Waits >= doubted {
		c.Handover = 0
	}
	m.even(c, s, d.Forecast.Level)
	if c.Uncorrected {
		c.Handover = 0
	}
	s.Queue = max(0, s.Queue-d.Forecast.Level*c.Handover) // who is handed over waits for nobody
	m.doubt(c, s, d.Forecast.Level)
	m.Calibration = c.calibrate(s, d.Forecast.Level, m)

	m.full = c.full(s, m)
	target := c.both(&d, s, &m, c.needs(&d, s, m, startup), startup)
	target = c.ceilings(&d, s, &m, target)
	for r := range Roles {
		if c.GPUs[r] <= 0 {
			target[r] = wanted[r]
		}
		d.Roles[r].Target = target[r]
	}
	target = c.join(&d, s, m, target, budget)
	d.step(c, s, target, budget)
	for r := range Roles {
		m.Roles[r].moved(s.Now, wanted[r], d.Replicas[r], startup, c)
	}
	d.explain(wanted)
	return d, m
}

// sees says whether a snapshot can be believed.
func (c Config) sees(s Snapshot) bool {
	sound := func(v float64) bool { return v >= 0 && !math.IsInf(v, 0) }
	l := s.Lengths
	return s.Failed == "" && !slices.ContainsFunc(append([]float64{s.Queue, s.Active, l.Input, l.Input95, l.InputSpread, l.Output, l.Hit}, s.Bins...),
		func(v float64) bool { return !sound(v) })
}

// budget is the tightest one; 0 is none.
func (c Config) budget(grant int) int {
	switch {
	case grant <= 0:
		return max(0, c.Budget)
	case c.Budget <= 0:
		return grant
	default:
		return min(grant, c.Budget)
	}
}

// floors are the fewest replicas of the roles that are scaled.
func (c Config) floors(wanted Vector) Vector {
	floors := wanted
	for r := range Roles {
		if c.GPUs[r] > 0 {
			floors[r] = max(0, c.Floors[r])
		}
	}
	return floors
}

// raise is a vector of which no role is below a floor.
func (d *Decision) raise(v, floors Vector) Vector {
	raised := v
	for r := range Roles {
		raised[r] = max(v[r], floors[r])
	}
	d.clamp("floor", v, raised)
	return raised
}

func (d *Decision) clamp(by string, from, to Vector) {
	if from != to {
		d.Clamps = append(d.Clamps, Clamp{By: by, From: from, To: to})
	}
}

// needs are what the forecast and those who wait need.
func (c Config) needs(d *Decision, s Snapshot, m Memory, startup time.Duration) Vector {
	var need Vector // where nothing comes the floors speak
	d.Roles[Prefill].Binding, d.Roles[Decode].Binding = ByFloor, ByFloor
	if p, e, comes := c.load(d.Forecast.Rate, m); comes {
		need = Vector{p.Replicas, e.Replicas}
		d.Roles[Prefill] = Term{Binding: ByWait, Wait: seconds(p.Wait), Shorter: seconds(p.Shorter)}
		d.Roles[Decode] = Term{Binding: ByToken, Batch: e.Batch}
		if e.CacheBinds {
			d.Roles[Decode].Binding = ByCache
		}
	}
	d.Even = m.evenness()
	d.Roles[Prefill].Need, d.Roles[Decode].Need = need[Prefill], need[Decode]
	more := c.react(s, m, d.Forecast.Level, startup)
	for r := range Roles {
		t := &d.Roles[r]
		t.Backlog = more[r]
		if more[r] > need[r] {
			t.Binding = ByBacklog
		}
		need[r] = max(need[r], more[r])
		if floor := max(0, c.Floors[r]); need[r] < floor {
			need[r], t.Binding = floor, ByFloor
		}
	}
	return need
}

// load is what requests that come at a rate need; not comes says that there are none, or
// none whose lengths are known.
func (c Config) load(rate float64, m Memory) (p capacity.PrefillNeed, d capacity.DecodeNeed, comes bool) {
	load := capacity.Load{Rate: rate, Lengths: m.Lengths, Even: m.evenness(), Handover: m.Calibration.Handover}
	if !(load.Rate > 0 && load.Input > 0) {
		return p, d, false
	}
	prefill, decode := m.Calibration.Scales()
	return capacity.Prefill(c.Model, load, c.Target, prefill, c.Margins), capacity.Decode(c.Model, load, c.Target, decode, c.Margins), true
}

// Needed is what requests that come at a rate need, without a forecast, those who wait, or
// floors. A role that is not scaled needs none.
func (c Config) Needed(rate float64, m Memory) Vector {
	p, d, _ := c.load(rate, m)
	need := Vector{p.Replicas, d.Replicas}
	for r := range Roles {
		if c.GPUs[r] <= 0 {
			need[r] = 0
		}
	}
	return need
}

// both is a need with hysteresis. A write costs the same for one role and for both, so who
// grows takes the other role along that a little more would need, and who shrinks waits for
// the other a while.
func (c Config) both(d *Decision, s Snapshot, m *Memory, need Vector, startup time.Duration) Vector {
	came, soon := c.Needed(d.Forecast.Level, *m), c.Needed(along*d.Forecast.Rate, *m)
	target, early := need, [Roles]bool{}
	for r := range Roles {
		target[r], early[r] = m.Roles[r].settle(&d.Roles[r], c, s, Role(r), needAt{s.Now, need[r], came[r]}, startup)
	}
	out := target
	for r := range Roles {
		wanted, other := s.Roles[r].Wanted, 1-r
		switch changes := target[other] - s.Roles[other].Wanted; {
		case c.GPUs[other] <= 0:
		case changes > 0 && target[r] <= wanted && soon[r] > target[r]:
			out[r]++
		case changes == 0 && target[r] < wanted && early[r]:
			out[r] = wanted
		}
	}
	return out
}

// drain is in how much time a backlog is to be gone.
func (c Config) drain(startup time.Duration) time.Duration { return max(c.Drain, startup/3) }

// full is since when there is more to decode than fits, with every replica ready. What piles
// up before is not theirs: sequences stay where they are decoded.
func (c Config) full(s Snapshot, m Memory) moment {
	_, decode := m.Calibration.Scales()
	fits, _ := capacity.Batch(c.Model, max(1, m.Lengths.Context()), c.Target.Token/decode, c.Margins.Cache)
	role := s.Roles[Decode]
	switch {
	case len(role.Starting) > 0 || !(s.Active > fits*float64(max(1, role.Ready))):
		return moment{}
	case m.full.was:
		return m.full
	}
	return moment{s.Now, true}
}

// react is what those who wait already need. Replicas on their way are capacity from
// when they are expected: what waits then is what counts, and is decoded after.
func (c Config) react(s Snapshot, m Memory, level float64, startup time.Duration) Vector {
	var need Vector
	l := m.Lengths
	if l.Input <= 0 {
		return need
	}
	prefill, decode := m.Calibration.Scales()
	service := prefill * c.Model.Prefill(l.Input*(1-min(1, l.Hit)))
	ready, drain := float64(s.Roles[Prefill].Ready), c.drain(startup)
	if s.Queue > ready {
		left := startup
		for _, age := range s.Roles[Prefill].Starting {
			left = min(left, max(0, startup-age))
		}
		queue := max(0, s.Queue+(level-ready/service)*left.Seconds())
		rate := level + queue/drain.Seconds()
		need[Prefill] = replicas(rate * service)
		need[Decode] = capacity.Decode(c.Model, capacity.Load{Rate: rate, Lengths: l}, c.Target, decode, c.Margins).Replicas
	}
	// What prefill lets through of a backlog is decoded by the time that it is drained: only
	// what lasts longer needs replicas.
	if m.full.was && s.Now-m.full.at >= drain {
		within := 0.95 * c.Target.Token / decode
		batch, _ := capacity.Batch(c.Model, max(1, l.Context()), within, c.Margins.Cache)
		pace := c.Model.Token(s.Active/float64(max(1, s.Roles[Decode].Ready)), max(1, l.Context()))
		// At the pace of the target as many tokens come of fewer sequences.
		need[Decode] = max(need[Decode], replicas(s.Active*min(1, within/pace)/batch))
	}
	return need
}

func replicas(n float64) int { return int(min(max(0, math.Ceil(n-1e-9)), capacity.Most)) }

func seconds(s float64) time.Duration {
	return time.Duration(min(s, longestPause.Seconds()) * float64(time.Second))
}

// settle is a need with hysteresis: up at once, down late and in small parts. Who has not
// looked for as long as a pause does not know that less is needed, and begins to look anew. A
// shrink is early until needs have allowed it for a quarter of a pause.
func (p *Past) settle(t *Term, c Config, s Snapshot, role Role, is needAt, startup time.Duration) (target int, early bool) {
	now, state := s.Now, s.Roles[role]
	pause := p.pause(now, c, startup)
	t.Pause = pause
	p.remember(is, pause)
	if is.need >= state.Wanted {
		return is.need, false
	}
	highest, due := p.held(state.Wanted, now, pause, startup)
	t.ShrinksAt = max(now, due)
	if p.grown.within(pause, now) {
		t.ShrinksAt = max(t.ShrinksAt, p.grown.at+pause)
	}
	if p.shrunk.within(pause/4, now) {
		t.ShrinksAt = max(t.ShrinksAt, p.shrunk.at+pause/4)
	}
	if t.ShrinksAt > now {
		return state.Wanted, false
	}
	// Who goes takes those along who wait for it.
	if role == Prefill && s.Queue > float64(state.Ready) {
		return state.Wanted, false
	}
	target = max(highest, state.Wanted-max(1, state.Wanted/4))
	// Those who stay must be able to take over the work of those who go.
	if role == Decode && t.Batch > 0 {
		target = max(target, min(state.Wanted, replicas(s.Active/t.Batch)))
	}
	return target, now-due < pause/4
}

// remember keeps a need; who has not looked for a pause forgets those before.
func (p *Past) remember(is needAt, pause time.Duration) {
	gone := 0
	for gone < len(p.needs) && is.at-p.needs[gone].at > longestPause {
		gone++
	}
	if n := len(p.needs); n == 0 || is.at-p.needs[n-1].at >= pause {
		gone, p.since = n, is.at
	}
	p.needs = append(slices.Clip(p.needs[gone:]), is)
}

// held is the highest need of a pause, and when as many as are wanted are needed no more. What
// came is held for two starts, which is what it costs to take a shrink back: one that is paid,
// and one in which requests are late. What was only foreseen is not.
func (p *Past) held(wanted int, now, pause, startup time.Duration) (highest int, due time.Duration) {
	hold := min(longestPause, max(pause, 2*startup))
	due = p.since + pause
	for _, n := range p.needs {
		for _, x := range [...]struct {
			need int
			long time.Duration
		}{{n.need, pause}, {n.came, hold}} {
			if now-n.at < x.long {
				highest = max(highest, x.need)
			}
			if x.need >= wanted {
				due = max(due, n.at+x.long)
			}
		}
	}
	return highest, due
}

// pause is the role's, or the least one, and what regret has made of it since.
func (p *Past) pause(now time.Duration, c Config, startup time.Duration) time.Duration {
	least := max(c.Pause, startup)
	if p.Pause <= least {
		return min(least, longestPause)
	}
	hours := max(0, now-p.pausedAt).Hours()
	return min(longestPause, least+time.Duration(float64(p.Pause-least)*math.Pow(0.9, hours)))
}

// moved remembers a change, and regrets shrinks that are taken back: as many replicas
// again as before them, so soon that what was saved is less than a start. Once may be chance, of
// a single look even; what happens again within the longest pause is a habit of the load.
func (p *Past) moved(now time.Duration, from, to int, startup time.Duration, c Config) {
	switch pause := p.pause(now, c, startup); {
	case to > from:
		if p.shrunk.within(pause+startup, now) && p.before > 0 && to >= p.before {
			if p.tookBack.within(longestPause, now) {
				p.Pause, p.pausedAt = min(longestPause, 2*pause), now
			}
			p.before, p.tookBack = 0, moment{now, true}
		}
		p.grown = moment{now, true}
	case to < from:
		if !p.shrunk.within(pause+startup, now) {
			p.before = 0
		}
		p.before = max(p.before, from)
		p.shrunk = moment{now, true}
	}
}

// ceilings give up replicas that no node has room for, and do not ask for them again
// for a while.
func (c Config) ceilings(d *Decision, s Snapshot, m *Memory, target Vector) Vector {
	before := target
	for r := range Roles {
		state, past := s.Roles[r], &m.Roles[r]
		// Half a tick less: looks are never exactly a tick apart, and the next is late.
		if state.Unschedulable > 0 && state.UnschedulableFor >= hopeless-min(c.Tick, hopeless)/2 {
			past.ceiling = max(c.Floors[r], state.Wanted-state.Unschedulable)
			past.until, past.resource = s.Now+learnt, state.Resource
		}
		if past.resource != "" || past.ceiling > 0 {
			if s.Now >= past.until {
				past.ceiling, past.resource = 0, ""
			} else if target[r] > past.ceiling {
				target[r] = past.ceiling
				d.Limited = fmt.Sprintf("no node has room for more than %d of %s: %s", past.ceiling, Role(r), past.resource)
			}
		}
	}
	d.clamp("nodes", before, target)
	return target
}

// join divides a budget: of the vectors that fit and keep the floors the one that
// serves the largest share of the need, then the one that changes least, then the
// smallest.
func (c Config) join(d *Decision, s Snapshot, m Memory, target Vector, budget int) Vector {
	wanted := Vector{s.Roles[Prefill].Wanted, s.Roles[Decode].Wanted}
	floors := c.floors(wanted)
	raised := d.raise(target, floors)
	if budget <= 0 || raised.GPUs(c.GPUs) <= budget {
		return raised
	}
	if floors.GPUs(c.GPUs) > budget {
		d.Reason = BelowFloors
		d.Limited = fmt.Sprintf("a budget of %d GPUs is less than the %d of the fewest replicas", budget, floors.GPUs(c.GPUs))
		return wanted
	}
	need := d.shared(wanted, m.Forecast.Bins() > 0)
	served := func(v Vector) float64 {
		share := 1.0
		for r := range Roles {
			if c.GPUs[r] > 0 {
				share = min(share, float64(v[r])/float64(need[r]))
			}
		}
		return share
	}
	low := floors
	for r := range Roles {
		// A role that has just grown keeps what it has, unless the budget itself was cut.
		if past := m.Roles[r]; past.grown.within(d.Roles[r].Pause, s.Now) && wanted.GPUs(c.GPUs) <= budget {
			low[r] = max(low[r], min(wanted[r], raised[r]))
		}
	}
	best, found := wanted, wanted.GPUs(c.GPUs) <= budget && wanted[Prefill] >= floors[Prefill] && wanted[Decode] >= floors[Decode]
	score := 0.0
	if found {
		score = served(wanted) * worthwhile
	}
	changes := func(v Vector) int { return abs(v[0]-wanted[0]) + abs(v[1]-wanted[1]) }
	for p := low[Prefill]; p <= raised[Prefill]; p++ {
		v := Vector{p, raised[Decode]}
		if c.GPUs[Decode] > 0 {
			v[Decode] = min(raised[Decode], (budget-p*c.GPUs[Prefill])/c.GPUs[Decode])
		}
		if v[Decode] < low[Decode] || v.GPUs(c.GPUs) > budget {
			continue
		}
		is := served(v)
		better := is > score || is == score && (changes(v) < changes(best) || changes(v) == changes(best) && v.GPUs(c.GPUs) < best.GPUs(c.GPUs))
		if !found || better {
			best, found, score = v, true, is
		}
	}
	d.clamp("budget", raised, best)
	d.Limited = fmt.Sprintf("%d GPUs are needed, the budget has %d", raised.GPUs(c.GPUs), budget)
	return best
}

// shared is the need that a budget is divided by. Who has seen no request yet knows none: what
// there is counts, or all vectors would serve it alike and the first would win.
func (d *Decision) shared(wanted Vector, seen bool) Vector {
	var need Vector
	for r := range Roles {
		need[r] = max(1, d.Roles[r].Need, d.Roles[r].Backlog)
		if !seen {
			need[r] = max(need[r], wanted[r])
		}
	}
	return need
}

func abs(n int) int { return max(n, -n) }

// step is as much of a vector as can be written now: what is released is released at
// once, and what grows takes GPUs that nobody has, those that end included. So both
// writes keep the budget, whichever of them is lost.
func (d *Decision) step(c Config, s Snapshot, target Vector, budget int) {
	d.Replicas = target
	if budget <= 0 {
		return
	}
	wanted := Vector{s.Roles[Prefill].Wanted, s.Roles[Decode].Wanted}
	free := budget
	for r := range Roles {
		free -= s.Roles[r].held() * c.GPUs[r]
	}
	out := wanted
	for r := range Roles {
		out[r] = min(wanted[r], target[r])
	}
	for {
		grows := -1
		for r := range Roles {
			if out[r] < target[r] && c.GPUs[r] <= free && (grows < 0 || out[r]*target[grows] < out[grows]*target[r]) {
				grows = r
			}
		}
		if grows < 0 {
			break
		}
		out[grows]++
		free -= c.GPUs[grows]
	}
	if out != target && d.Limited == "" {
		d.Limited = "GPUs are not free yet: replicas are ending"
	}
	d.clamp("GPUs that are free", target, out)
	d.Replicas = out
}

// explain gives a reason to what changed.
func (d *Decision) explain(wanted Vector) {
	grows, shrinks := false, false
	for r := range Roles {
		grows = grows || d.Replicas[r] > wanted[r]
		shrinks = shrinks || d.Replicas[r] < wanted[r]
	}
	gaveUp := slices.ContainsFunc(d.Clamps, func(c Clamp) bool { return c.By == "nodes" })
	switch {
	case d.Reason == BelowFloors:
	case shrinks && gaveUp:
		d.Reason = Unschedulable
	case grows && shrinks:
		d.Reason = Rebalance
	case grows:
		d.Reason = Grow
	case shrinks:
		d.Reason = Shrink
	}
}
