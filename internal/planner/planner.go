// Package planner scales one graph: it looks, has package decision decide, writes, and
// says what it did.
//
//	graph, frontends -> observation -> decision -> kube.Scale -> journal
//
// It is a program of its own, started as the original's planner is.
package planner

import (
	"cmp"
	"context"
	"log/slog"
	"math"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/diagnosis"
	"github.com/dynamo-operator/dynamo-operator/internal/core/dormancy"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/planner/capacity"
	"github.com/dynamo-operator/dynamo-operator/internal/core/planner/decision"
	"github.com/dynamo-operator/dynamo-operator/internal/core/planner/journal"
	"github.com/dynamo-operator/dynamo-operator/internal/core/planner/observation"
	"github.com/dynamo-operator/dynamo-operator/internal/core/planner/trace"
	"github.com/dynamo-operator/dynamo-operator/internal/planner/config"
	"github.com/dynamo-operator/dynamo-operator/internal/planner/kube"
	"github.com/dynamo-operator/dynamo-operator/internal/planner/role"
	"github.com/dynamo-operator/dynamo-operator/internal/planner/scrape"
)

// Cluster is the door to a graph.
type Cluster interface {
	Graph(ctx context.Context, name string) (*kube.Graph, error)
	Places(ctx context.Context, components []graph.Component) (kube.Places, error)
	Scale(ctx context.Context, g *kube.Graph, replicas map[string]int, plan string) error
}

// Planner scales one graph.
type Planner struct {
	Config  config.Config
	Cluster Cluster
	Scraper *scrape.Scraper
	Log     *slog.Logger
	// Now is the time.
	Now func() time.Time

	begin   time.Time
	metrics *metrics
	timing  *role.Timing
	traffic observation.Traffic
	engines engines
	starts  [decision.Roles]observation.Starts
	memory  decision.Memory
	// lengths are those of the last look that saw any.
	lengths capacity.Lengths
	old     asOriginal

	mu      sync.Mutex // of what HTTP shows
	journal journal.Journal
	came    trace.Bins
	seen    time.Duration // for how long it is known what came
	ticked  time.Time
	unread  string // why the graph could not be read at the last tick
}

// New makes a planner.
func New(c config.Config, cluster Cluster, scraper *scrape.Scraper, log *slog.Logger) *Planner {
	return &Planner{Config: c, Cluster: cluster, Scraper: scraper, Log: log, Now: time.Now, metrics: newMetrics()}
}

// tickTimeout bounds one tick's reads and writes together.
const tickTimeout = 20 * time.Second

// Run decides until ctx ends.
func (p *Planner) Run(ctx context.Context) {
	ticker := time.NewTicker(p.Config.Tick)
	defer ticker.Stop()
	for {
		if err := p.Tick(ctx); err != nil && ctx.Err() == nil {
			p.complain(err.Error())
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// complain says once what is the matter, however often it is.
func (p *Planner) complain(why string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if why != p.unread && why != "" {
		p.Log.Warn("cannot decide", "error", why)
	}
	p.unread = why
}

// Tick looks, decides and writes once.
func (p *Planner) Tick(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, tickTimeout)
	defer cancel()
	if p.begin.IsZero() {
		p.begin = p.Now()
	}
	now := p.Now().Sub(p.begin)
	p.mu.Lock()
	p.ticked = p.Now()
	p.mu.Unlock()
	g, err := p.Cluster.Graph(ctx, p.Config.Graph)
	if err != nil {
		return err
	}
	parts, failed := role.Find(g.Components, p.Config.Mode)
	places, err := p.Cluster.Places(ctx, parts.All())
	if err != nil {
		return err
	}
	if failed == "" && p.timing == nil {
		if p.timing, err = role.NewTiming(p.Config, parts); err != nil {
			return err
		}
		p.Log.Info("replicas are timed", "by", p.timing.By)
	}
	// Counters are of now. What was read before them may have taken long, and requests came
	// meanwhile: counted for the tick alone they would be a burst. So would those of all
	// frontends, if they were dated by the slowest of them.
	at := p.Now().Sub(p.begin)
	p.engines.ask(ctx, p.Scraper, at, g, parts, places)
	look := p.Scraper.Look(ctx, places.Frontends)
	look.At = at
	reading, traffic := p.traffic.Next(look, p.Config.Tick)
	p.traffic = traffic
	p.metrics.timed(reading.Observed)
	busy := p.engines.last(at, p.Config.Tick)
	reading = reading.Beside(busy[decision.Prefill], busy[decision.Decode])
	p.keep(reading)
	p.metrics.busy(busy)
	snapshot := p.snapshot(now, g, parts, places, reading)
	if failed != "" {
		snapshot.Failed = failed
	}
	p.complain("")
	rules := p.rules(parts, reading.Lengths)
	d, decided := p.decide(rules, g, snapshot, reading)
	p.metrics.corrected(p.corrections())
	if !decided {
		p.metrics.observe(rules, snapshot, d, p.Config.Tick)
		return nil
	}
	return p.act(ctx, g, parts, rules, snapshot, d)
}

// keep remembers what came, so that it can be played again. What came in a long time between
// two looks is taken to have come evenly. Of time in which nobody counted nothing is known,
// not even that nobody came: it is left out.
func (p *Planner) keep(r observation.Reading) {
	if len(r.Bins) == 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seen += r.Over
	bins := min(trace.Kept, max(1, int(math.Round(float64(r.Over)/float64(p.Config.Tick)))))
	for i := range bins {
		end := p.seen - time.Duration(bins-1-i)*p.Config.Tick
		p.came.Add(trace.Bin{At: end.Seconds(), Requests: r.Bins[0], Input: r.Delta.Input.Mean(), Output: r.Delta.Output.Mean()})
	}
}

// act writes what was decided and keeps why.
func (p *Planner) act(ctx context.Context, g *kube.Graph, parts role.Components, rules decision.Config, s decision.Snapshot, d decision.Decision) error {
	told := journal.Context{
		At: p.Now(), Graph: g.Namespace + "/" + g.Name, Policy: string(p.Config.Policy), Config: rules, Seen: s, Startup: s.Startup, Advisory: p.Config.Advisory,
		Prices: parts.Prices(p.Config), Caches: p.metrics.caches,
	}
	if p.Config.Policy == config.Native && d.Reason != decision.Blind && p.knows(d.Forecast.Level) {
		told.Needed = new(rules.Needed(d.Forecast.Level, p.memory))
	}
	if p.timing != nil {
		told.Timing = p.timing.By
	}
	record := journal.Tell(told, d)
	change := map[string]int{}
	for i, component := range parts.Scaled {
		if component != nil && d.Replicas[i] != s.Roles[i].Wanted {
			change[component.Name] = d.Replicas[i]
		}
	}
	var err error
	if (len(change) > 0 || journal.Tells(d, g.Plan)) && !p.Config.Advisory {
		if err = p.Cluster.Scale(ctx, g, change, record.Plan()); err != nil {
			record.Failed = err.Error()
		}
	}
	p.mu.Lock()
	var fresh bool
	p.journal, fresh = p.journal.Add(record)
	p.mu.Unlock()
	if fresh {
		p.Log.Info(strings.Join(record.Words, "; "), "reason", record.Reason, "advisory", record.Advisory)
		p.metrics.decisions.WithLabelValues(string(record.Reason)).Inc()
	}
	p.metrics.observe(rules, s, d, p.Config.Tick)
	return err
}

// knows reports whether it was seen what comes, and how long that is: at the first look
// after a start nothing was, which does not say that nothing is needed.
func (p *Planner) knows(rate float64) bool {
	return p.memory.Forecast.Bins() > 0 && (rate == 0 || p.memory.Lengths.Input > 0)
}

// rules are what a decision depends on besides what is seen.
func (p *Planner) rules(parts role.Components, seen capacity.Lengths) decision.Config {
	if seen.Input > 0 {
		p.lengths = seen
	}
	c := decision.Config{
		Tick: p.Config.Tick, Target: capacity.Target{FirstToken: p.Config.TTFT.Seconds(), Token: p.Config.ITL.Seconds()},
		GPUs: parts.GPUs(p.Config.GPUs), Floors: p.Config.Floors, Budget: p.Config.Budget, Pause: p.Config.Pause,
		FilterLevel: p.Config.QLevel, FilterTrend: p.Config.QTrend, FilterNoise: p.Config.RNoise, Uncorrected: p.Config.NoCorrection,
	}
	if p.timing != nil {
		c.Model, c.Handover = p.timing.Model, p.timing.Handover(p.lengths.Input)
	} else {
		c.Model = capacity.H200()
	}
	if parts.Aggregated {
		c.Model = capacity.Aggregated{Model: c.Model, Lengths: p.lengths}
	}
	return c.Defaults()
}

// snapshot is what there is of both roles, and of requests.
func (p *Planner) snapshot(now time.Duration, g *kube.Graph, parts role.Components, places kube.Places, r observation.Reading) decision.Snapshot {
	s := decision.Snapshot{
		Now: now, Failed: r.Failed, Bins: r.Bins, Lengths: r.Lengths, Queue: r.Queue, Active: r.Active, Observed: r.Observed,
	}
	limited := meta.FindStatusCondition(g.Status.Conditions, v1alpha1.ConditionScalingLimited)
	held := limited != nil && limited.Reason == v1alpha1.ReasonBudgetExhausted || dormancy.Told(g.Status.Conditions) == dormancy.Dormant
	for i, component := range parts.Scaled {
		if component == nil {
			continue
		}
		status := g.Status.Services[component.Name]
		each := listed(*component, status.ComponentKind)
		// A replica that ends holds its GPUs until its last pod is gone.
		seen := observation.Replicas{Wanted: g.Wanted[component.Name], Draining: (places.Ending[component.Name] + each - 1) / each, Held: held}
		seen.Ready, seen.Message = ready(status), status.Message
		seen.Unschedulable = diagnosis.NoRoom(seen.Message)
		starts := p.starts[i].Next(now, seen)
		p.starts[i] = starts
		state := decision.State{Wanted: seen.Wanted, Ready: seen.Ready, Draining: seen.Draining, Starting: starts.Starting(now)}
		if homeless := starts.Unschedulable(now); homeless > 0 {
			state.Unschedulable, state.UnschedulableFor, state.Resource = unplaced(seen, places.Placed[component.Name]/each), homeless, observation.Lacking(seen.Message)
		}
		if held {
			state.Starting = nil // they are on nobody's way
		}
		s.Roles[i] = state
	}
	s.Startup = max(observation.Startup(p.starts[:]...), remembered(parts, g.Status.Services))
	if parts.Aggregated {
		// Those who wait are served by the same replicas as those who are answered.
		s.Roles[decision.Prefill] = decision.State{Wanted: s.Roles[decision.Decode].Ready, Ready: s.Roles[decision.Decode].Ready}
		s.Active, s.Queue = s.Active+s.Queue, 0
	} else {
		s.Observed.FirstToken = promptTime(s.Observed.FirstToken, s.Observed.Token)
	}
	// A frontend counts who has no first token yet. Of these each replica computes one, who
	// waits for nobody: without them a graph that is busy would always look as if some waited.
	s.Queue = max(0, s.Queue-float64(s.Roles[decision.Prefill].Ready))
	return s
}

// decodesFirst is how many steps of decode are in the time to the first token that frontends
// see where there are two roles: that of the token, and half of the one that a computed prompt
// comes upon. They say nothing about prefill replicas, which would look slow by them.
const decodesFirst = 1.5

// promptTime is how long a prompt took of the time to a first token; 0, which nobody learns
// from, where that is mostly decode's.
func promptTime(first, token float64) float64 {
	decode := decodesFirst * token
	if rest := first - decode; rest >= decode/2 {
		return rest
	}
	return 0
}

// listed is how many pods of a replica its Service lists: of a scaling group every one, and
// else the leader alone.
func listed(c graph.Component, kind v1alpha1.ComponentKind) int {
	if kind == v1alpha1.ComponentKindPodCliqueScalingGroup {
		return int(max(1, c.Nodes))
	}
	return 1
}

// unplaced are the replicas that are not ready and have no node. Those that have one
// load, and are on their way. Where nothing is known of pods all are taken to have none.
func unplaced(seen observation.Replicas, placed int) int {
	return min(max(0, seen.Wanted-placed), max(0, seen.Wanted-seen.Ready))
}

// remembered is how long starts took before this planner began to look, as the graph's
// status tells; 0 if it does not. What is seen since includes the wait for a node, so the
// longer of the two counts.
func remembered(parts role.Components, services map[string]v1alpha1.ServiceReplicaStatus) time.Duration {
	longest := time.Duration(0)
	for _, c := range parts.Scaled {
		if c != nil && services[c.Name].Startup != nil {
			longest = max(longest, time.Duration(services[c.Name].Startup.P95Seconds)*time.Second)
		}
	}
	return longest
}

// ready are the replicas that are; a scaling group of Grove's reports those that are
// available.
func ready(s v1alpha1.ServiceReplicaStatus) int {
	switch {
	case s.ReadyReplicas != nil:
		return int(*s.ReadyReplicas)
	case s.AvailableReplicas != nil:
		return int(*s.AvailableReplicas)
	default:
		return 0
	}
}

// decide is one tick of the policy. The original speaks only at the end of an interval.
func (p *Planner) decide(rules decision.Config, g *kube.Graph, s decision.Snapshot, r observation.Reading) (decision.Decision, bool) {
	if p.Config.Policy == config.Original {
		return p.decideAsOriginal(meta.IsStatusConditionTrue(g.Status.Conditions, v1alpha1.ConditionReady), s, r)
	}
	var d decision.Decision
	d, p.memory = decision.Decide(rules, s, p.memory)
	return d, true
}

// corrections are the factors on times of prefill and decode that the last decision counted with.
func (p *Planner) corrections() (prefill, decode float64) {
	if p.Config.Policy == config.Original {
		return cmp.Or(p.old.past.PrefillCorrection, 1), cmp.Or(p.old.past.DecodeCorrection, 1)
	}
	return p.memory.Calibration.Scales()
}
