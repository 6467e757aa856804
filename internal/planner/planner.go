// Package planner scales one graph: it looks, has package decision decide, writes, and
// says what it did.
//
//	graph, frontends -> observation -> decision -> kube.Scale -> journal
//
// It is a program of its own, started as the original's planner is.
package planner

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/commandline"
	"github.com/dynamo-operator/dynamo-operator/internal/core/diagnosis"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/perfmodel"
	"github.com/dynamo-operator/dynamo-operator/internal/core/planner/capacity"
	"github.com/dynamo-operator/dynamo-operator/internal/core/planner/decision"
	"github.com/dynamo-operator/dynamo-operator/internal/core/planner/journal"
	"github.com/dynamo-operator/dynamo-operator/internal/core/planner/observation"
	"github.com/dynamo-operator/dynamo-operator/internal/core/planner/original"
	"github.com/dynamo-operator/dynamo-operator/internal/planner/config"
	"github.com/dynamo-operator/dynamo-operator/internal/planner/kube"
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
	timing  *timing
	traffic observation.Traffic
	starts  [decision.Roles]observation.Starts
	memory  decision.Memory
	// lengths are those of the last look that saw any.
	lengths capacity.Lengths
	// What the original's policy keeps.
	interval observation.Counters
	decided  time.Duration
	past     original.Memory

	mu      sync.Mutex // of what HTTP shows
	journal journal.Journal
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
	parts, failed := find(g.Components, p.Config.Mode)
	places, err := p.Cluster.Places(ctx, parts.all())
	if err != nil {
		return err
	}
	if failed == "" && p.timing == nil {
		if p.timing, err = newTiming(p.Config, parts); err != nil {
			return err
		}
		p.Log.Info("replicas are timed", "by", p.timing.by)
	}
	look := p.Scraper.Look(ctx, now, places.Frontends)
	reading, traffic := p.traffic.Next(look, p.Config.Tick)
	p.traffic = traffic
	snapshot := p.snapshot(now, g, parts, places, reading)
	if failed != "" {
		snapshot.Failed = failed
	}
	p.complain("")
	rules := p.rules(parts, reading.Lengths)
	d, decided := p.decide(rules, snapshot, reading)
	if !decided {
		p.metrics.observe(rules, snapshot, d, p.Config.Tick)
		return nil
	}
	return p.act(ctx, g, parts, rules, snapshot, d)
}

// act writes what was decided and keeps why.
func (p *Planner) act(ctx context.Context, g *kube.Graph, parts components, rules decision.Config, s decision.Snapshot, d decision.Decision) error {
	told := journal.Context{
		At: p.Now(), Graph: g.Namespace + "/" + g.Name, Policy: string(p.Config.Policy), Config: rules, Seen: s, Startup: s.Startup, Advisory: p.Config.Advisory,
	}
	if p.timing != nil {
		told.Timing = p.timing.by
	}
	record := journal.Tell(told, d)
	change := map[string]int{}
	for role, component := range parts.scaled {
		if component != nil && d.Replicas[role] != s.Roles[role].Wanted {
			change[component.Name] = d.Replicas[role]
		}
	}
	var err error
	if len(change) > 0 && !p.Config.Advisory {
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

// components are the services that matter.
type components struct {
	frontends []graph.Component
	// scaled are nil where a role is none of this planner's.
	scaled [decision.Roles]*graph.Component
	// aggregated says that the decode role is that of workers which do both.
	aggregated bool
}

func (c components) all() []graph.Component {
	all := c.frontends
	for _, s := range c.scaled {
		if s != nil {
			all = append(slices.Clip(all), *s)
		}
	}
	return all
}

// find is the components of a graph that a mode is about, or what is missing. Of a role
// there has to be one: it is not known how two would share the load.
func find(all []graph.Component, mode config.Mode) (parts components, missing string) {
	var found [decision.Roles][]graph.Component
	var both []graph.Component
	for _, c := range all {
		sub := graph.RoleOf(c.SubType)
		switch {
		case c.Role == graph.RoleFrontend || c.Type == "main":
			c.Role = graph.RoleFrontend
			parts.frontends = append(parts.frontends, c)
		case c.Role == graph.RolePrefill || c.Role.RunsEngine() && sub == graph.RolePrefill:
			found[decision.Prefill] = append(found[decision.Prefill], c)
		case c.Role == graph.RoleDecode || c.Role.RunsEngine() && sub == graph.RoleDecode:
			found[decision.Decode] = append(found[decision.Decode], c)
		case c.Role.RunsEngine():
			both = append(both, c)
		}
	}
	var wanted []decision.Role
	switch mode {
	case config.Aggregated:
		parts.aggregated = true
		if len(both) > 0 {
			found[decision.Decode] = both
		}
		wanted = []decision.Role{decision.Decode}
	case config.PrefillOnly:
		wanted = []decision.Role{decision.Prefill}
	case config.DecodeOnly:
		wanted = []decision.Role{decision.Decode}
	default:
		wanted = []decision.Role{decision.Prefill, decision.Decode}
	}
	for _, role := range wanted {
		if n := len(found[role]); n != 1 {
			return parts, fmt.Sprintf("the graph has %d services of %s, and one is scaled", n, role)
		}
	}
	for _, role := range wanted {
		parts.scaled[role] = &found[role][0]
	}
	return parts, ""
}

// gpus are those of one replica of each role; a role that is not scaled has none.
func (p *Planner) gpus(parts components) decision.Vector {
	var each decision.Vector
	for role, c := range parts.scaled {
		switch {
		case c == nil:
		case p.Config.GPUs[role] > 0:
			each[role] = p.Config.GPUs[role]
		default:
			each[role] = max(1, c.Resources.GPUs*int(max(1, c.Nodes))) // engines without GPUs are counted too
		}
	}
	return each
}

// rules are what a decision depends on besides what is seen.
func (p *Planner) rules(parts components, seen capacity.Lengths) decision.Config {
	if seen.Input > 0 {
		p.lengths = seen
	}
	c := decision.Config{
		Tick: p.Config.Tick, Target: capacity.Target{FirstToken: p.Config.TTFT.Seconds(), Token: p.Config.ITL.Seconds()},
		GPUs: p.gpus(parts), Floors: p.Config.Floors, Budget: p.Config.Budget, Pause: p.Config.Pause,
		FilterLevel: p.Config.QLevel, FilterTrend: p.Config.QTrend, FilterNoise: p.Config.RNoise,
	}
	if p.timing != nil {
		c.Model = p.timing.model
	} else {
		c.Model = capacity.H200()
	}
	if parts.aggregated {
		c.Model = capacity.Aggregated{Model: c.Model, Lengths: p.lengths}
	}
	return c.Defaults()
}

// snapshot is what there is of both roles, and of requests.
func (p *Planner) snapshot(now time.Duration, g *kube.Graph, parts components, places kube.Places, r observation.Reading) decision.Snapshot {
	s := decision.Snapshot{
		Now: now, Failed: r.Failed, Bins: r.Bins, Lengths: r.Lengths, Queue: r.Queue, Active: r.Active, Observed: r.Observed,
	}
	for role, component := range parts.scaled {
		if component == nil {
			continue
		}
		seen := observation.Replicas{Wanted: g.Wanted[component.Name], Draining: places.Ending[component.Name]}
		status := g.Status.Services[component.Name]
		seen.Ready, seen.Message = ready(status), status.Message
		seen.Unschedulable = strings.Contains(seen.Message, string(diagnosis.Unschedulable))
		starts := p.starts[role].Next(now, seen)
		p.starts[role] = starts
		state := decision.State{Wanted: seen.Wanted, Ready: seen.Ready, Draining: seen.Draining, Starting: starts.Starting(now)}
		if homeless := starts.Unschedulable(now); homeless > 0 {
			state.Unschedulable, state.UnschedulableFor, state.Resource = len(state.Starting), homeless, observation.Lacking(seen.Message)
		}
		if meta.IsStatusConditionTrue(g.Status.Conditions, v1alpha1.ConditionScalingLimited) {
			state.Starting = nil // a budget holds them back: they are on nobody's way
		}
		s.Roles[role] = state
	}
	s.Startup = observation.Startup(p.starts[:]...)
	if parts.aggregated {
		// Those who wait are served by the same replicas as those who are answered.
		s.Roles[decision.Prefill] = decision.State{Wanted: s.Roles[decision.Decode].Ready, Ready: s.Roles[decision.Decode].Ready}
		s.Active, s.Queue = s.Active+s.Queue, 0
	}
	return s
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
func (p *Planner) decide(rules decision.Config, s decision.Snapshot, r observation.Reading) (decision.Decision, bool) {
	if p.Config.Policy == config.Original {
		return p.decideAsOriginal(s, r)
	}
	if p.Config.NoCorrection {
		p.memory.Calibration = capacity.Calibration{}
	}
	var d decision.Decision
	d, p.memory = decision.Decide(rules, s, p.memory)
	return d, true
}

func (p *Planner) decideAsOriginal(s decision.Snapshot, r observation.Reading) (decision.Decision, bool) {
	wanted := decision.Vector{s.Roles[decision.Prefill].Wanted, s.Roles[decision.Decode].Wanted}
	hold := decision.Decision{Replicas: wanted, Reason: decision.Steady}
	p.interval = p.interval.Plus(r.Delta)
	if s.Now-p.decided < p.Config.Interval || p.timing == nil || p.timing.profile == nil {
		return hold, false
	}
	seen := p.interval
	p.interval, p.decided = observation.Counters{}, s.Now
	c := original.Default()
	c.Interval, c.FirstToken, c.Token = p.Config.Interval.Seconds(), float64(p.Config.TTFT.Milliseconds()), float64(p.Config.ITL)/1e6
	c.MinEndpoint, c.PrefillGPUs, c.DecodeGPUs = p.Config.Floors[decision.Decode], max(1, p.timing.gpus[decision.Prefill]), max(1, p.timing.gpus[decision.Decode])
	if c.Budget = p.Config.Budget; c.Budget <= 0 {
		c.Budget = -1
	}
	c.Predictor, c.Log1p, c.QLevel, c.QTrend, c.RMeasure, c.NoCorrection = p.Config.Predictor, p.Config.Log1p, p.Config.QLevel, p.Config.QTrend, p.Config.RNoise, p.Config.NoCorrection
	c.WithoutPrefill, c.WithoutDecode = p.Config.Mode == config.DecodeOnly, p.Config.Mode == config.PrefillOnly
	var said original.Decision
	said, p.past = original.Decide(c, p.timing.profile, original.Observation{
		Requests: seen.Ended, Input: seen.Input.Mean(), Output: seen.Output.Mean(), FirstToken: 1e3 * seen.FirstToken.Mean(), Token: 1e3 * seen.Token.Mean(),
		Duration: seen.Duration.Mean(), Prefill: s.Roles[decision.Prefill].Ready, Decode: s.Roles[decision.Decode].Ready,
		GraphReady: len(s.Roles[decision.Prefill].Starting)+len(s.Roles[decision.Decode].Starting) == 0,
	}, p.past)
	if said.Outcome != original.Decided {
		hold.Limited = string(said.Outcome)
		return hold, true
	}
	hold.Replicas, hold.Horizon = decision.Vector{said.Prefill, said.Decode}, p.Config.Interval
	hold.Forecast.Level, hold.Forecast.Rate = seen.Ended/c.Interval, said.Requests/c.Interval
	hold.Reason = decision.Grow
	if hold.Replicas.GPUs(p.timing.gpus) < wanted.GPUs(p.timing.gpus) {
		hold.Reason = decision.Shrink
	} else if hold.Replicas == wanted {
		hold.Reason = decision.Steady
	}
	hold.Roles[decision.Prefill].Need, hold.Roles[decision.Decode].Need = said.Prefill, said.Decode
	return hold, true
}

// timing is how long replicas take, and who says so.
type timing struct {
	model   capacity.Model
	profile *original.Profile
	gpus    decision.Vector
	by      string
}

// newTiming takes the profile that a planner is pointed at; without one the performance
// model of what workers are started with; and where that knows neither, the published
// profile of a model of 8 billion parameters, which what requests get then corrects.
func newTiming(c config.Config, parts components) (*timing, error) {
	t := &timing{gpus: (&Planner{Config: c}).gpus(parts)}
	profile, err := capacity.ReadProfile(os.DirFS(c.Profile))
	switch {
	case err == nil:
		if t.model, err = profile.Model(); err != nil {
			return nil, fmt.Errorf("profile %s: %w", c.Profile, err)
		}
		t.by = "the profile that it was given"
		if c.Policy == config.Original {
			if t.profile, err = original.NewProfile(profile); err != nil {
				return nil, fmt.Errorf("profile %s: %w", c.Profile, err)
			}
		}
		return t, nil
	case !errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("profile %s: %w", c.Profile, err)
	case c.Policy == config.Original:
		return nil, fmt.Errorf("profile %s: the original decides by one: %w", c.Profile, err)
	}
	if model, by, err := estimated(c, parts, t.gpus); err == nil {
		t.model, t.by = model, by
	} else {
		t.model, t.by = capacity.H200(), fmt.Sprintf("the published profile of 8 billion parameters on one H200 (%v)", err)
	}
	return t, nil
}

// estimated is the performance model of the engines.
func estimated(c config.Config, parts components, gpus decision.Vector) (capacity.Model, string, error) {
	catalog := perfmodel.Default()
	gpu, err := catalog.GPU(c.GPU)
	if err != nil {
		return nil, "", err
	}
	var engines [decision.Roles]*perfmodel.Estimator
	name := c.Model
	for role, component := range parts.scaled {
		if component == nil {
			continue
		}
		setup := perfmodel.Setup{GPU: gpu, Engine: perfmodel.VLLM, Parallel: perfmodel.Parallel{TP: max(1, gpus[role])}}
		if component.Engine != graph.EngineNone {
			setup.Engine = perfmodel.Engine(component.Engine)
		}
		if name == "" {
			name = served(*component)
		}
		if setup.Model, err = catalog.Model(name); err != nil {
			return nil, "", err
		}
		if engines[role], err = catalog.Estimator(setup); err != nil {
			return nil, "", err
		}
	}
	for role, other := range map[decision.Role]decision.Role{decision.Prefill: decision.Decode, decision.Decode: decision.Prefill} {
		if engines[role] == nil {
			engines[role] = engines[other]
		}
	}
	if engines[decision.Prefill] == nil {
		return nil, "", errors.New("no service is scaled")
	}
	model, err := capacity.FromEstimators(engines[decision.Prefill], engines[decision.Decode])
	return model, fmt.Sprintf("the performance model of %s on %s", name, c.GPU), err
}

// served is the model that a worker is started with.
func served(c graph.Component) string {
	main := c.MainContainer()
	words := strings.Fields(strings.Join(append(append([]string{}, main.Command...), main.Args...), " "))
	name, _ := commandline.NewLooseArgs(words).Value("--model", "--model-path", "--model-name")
	return strings.Trim(name, `"'`)
}
