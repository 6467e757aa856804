package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"time"
)

// result is what one run found.
type result struct {
	scale
	// Posted is a bare client that makes the same objects, Patched one that makes
	// them by server-side apply.
	Posted, Patched bareResult
	Phases          []phaseResult
}

// bareResult is what the same objects cost a bare client.
type bareResult struct {
	Objects int
	Wall    time.Duration
	Server  time.Duration
}

func (b bareResult) String() string {
	return fmt.Sprintf("%.1f s, API server CPU %.1f s", b.Wall.Seconds(), b.Server.Seconds())
}

// phaseResult is what one phase cost.
type phaseResult struct {
	Name string
	Wall time.Duration
	CPU  time.Duration
	// Server is what the API server used meanwhile.
	Server   time.Duration
	Peak     int64
	Requests requests
	P50, P99 float64
	// Depth is how many objects stood in line at most.
	Depth int
}

// phase runs a part of the benchmark and accounts for it.
func (s *stage) phase(ctx context.Context, name string, do func(context.Context) error) (phaseResult, error) {
	before, err := s.account(ctx)
	if err != nil {
		return phaseResult{}, err
	}
	operator, begin := s.operator, time.Now()
	depth := operator.watchDepth(ctx)
	if err := do(ctx); err != nil {
		return phaseResult{}, err
	}
	p := phaseResult{Name: name, Wall: time.Since(begin), Depth: depth()}
	after, err := s.account(ctx)
	if err != nil {
		return p, err
	}
	if s.operator != operator {
		before.used, before.passes = usage{}, nil // another process, which began at nothing
	}
	p.CPU, p.Peak, p.Server = after.used.cpu-before.used.cpu, after.used.peak, after.server-before.server
	p.P50, p.P99 = quantile(before.passes, after.passes, 0.5), quantile(before.passes, after.passes, 0.99)
	p.Requests, err = s.since(before.log)
	return p, err
}

// account is where all counters stand.
type account struct {
	log    int64
	used   usage
	server time.Duration
	passes map[float64]float64
}

func (s *stage) account(ctx context.Context) (account, error) {
	var a account
	var err error
	if a.log, err = s.audit.End(); err != nil {
		return a, err
	}
	if a.used, err = s.operator.usage(); err != nil {
		return a, err
	}
	if a.server, err = s.serverCPU(ctx); err != nil {
		return a, err
	}
	a.passes, err = s.operator.passes()
	return a, err
}

// quantile is the upper bound of the bucket that a quantile is in.
func quantile(before, after map[float64]float64, q float64) float64 {
	bounds := slices.Sorted(maps.Keys(after))
	if len(bounds) == 0 {
		return 0
	}
	total := after[math.Inf(1)] - before[math.Inf(1)]
	if total <= 0 {
		total = after[bounds[len(bounds)-1]] - before[bounds[len(bounds)-1]]
	}
	if total <= 0 {
		return 0
	}
	for _, bound := range bounds {
		if after[bound]-before[bound] >= q*total {
			return bound
		}
	}
	return bounds[len(bounds)-1]
}

func (r result) find(name string) phaseResult {
	for _, p := range r.Phases {
		if p.Name == name {
			return p
		}
	}
	return phaseResult{}
}

// ratio is how much longer the operator takes than the bare client.
func (r result) ratio() float64 { return r.find("create").Wall.Seconds() / r.Posted.Wall.Seconds() }

// perGraph is how many writes a graph costs until everything is there and told.
func (r result) perGraph() float64 {
	return float64(r.find("create").Requests.writes()+r.find("settle").Requests.writes()) / float64(r.graphs)
}

// peak is the largest resident size in any phase.
func (r result) peak() int64 {
	var most int64
	for _, p := range r.Phases {
		most = max(most, p.Peak)
	}
	return most
}

// table is the result for people who read Markdown.
func (r result) table() string {
	var b strings.Builder
	fmt.Fprintln(&b, "| phase | time | CPU of operator, API server | peak memory | writes | requests by verb | pass p50, p99 | in line |")
	fmt.Fprintln(&b, "|---|---:|---:|---:|---:|---|---|---:|")
	for _, p := range r.Phases {
		var verbs []string
		for _, verb := range slices.Sorted(maps.Keys(p.Requests)) {
			verbs = append(verbs, fmt.Sprintf("%d %s", p.Requests[verb], verb))
		}
		fmt.Fprintf(&b, "| %s | %.1f s | %.1f s, %.1f s | %d MiB | %d | %s | ≤ %.3g s, ≤ %.3g s | %d |\n",
			p.Name, p.Wall.Seconds(), p.CPU.Seconds(), p.Server.Seconds(), p.Peak>>20, p.Requests.writes(), strings.Join(verbs, ", "), p.P50, p.P99, p.Depth)
	}
	return b.String()
}

// comparison says how the operator does against the bare client, and what the
// difference is spent on.
func (r result) comparison() string {
	create := r.find("create")
	return fmt.Sprintf("The bare client makes the same %d objects in %s: creating takes **%.2f times** as long. %s"+
		"Until all children are there the operator sends %.1f writes a graph where %.1f make the objects, and %.1f until it has settled: "+
		"the rest are its record of the provider, events and statuses.",
		r.Posted.Objects, r.Posted, r.ratio(), r.spending(),
		float64(create.Requests.writes())/float64(r.graphs), float64(r.Posted.Objects)/float64(r.graphs)-1, r.perGraph())
}

// spending says what takes the operator longer, as far as a bare client that
// writes as it does was measured. A machine whose speed changes between the two
// can leave nothing to tell apart.
func (r result) spending() string {
	if r.Patched.Objects == 0 {
		return ""
	}
	said := fmt.Sprintf("By server-side apply, as the operator writes, it takes %s. ", r.Patched)
	each := r.Patched.Wall.Seconds() / float64(r.Patched.Objects)
	children := r.Posted.Objects - r.graphs
	apply := (r.Patched.Wall - r.Posted.Wall).Seconds()
	further := each * float64(r.find("create").Requests.writes()-children)
	more := (r.find("create").Wall - r.Posted.Wall).Seconds()
	if apply <= 0 || more <= apply+further {
		return said
	}
	return said + fmt.Sprintf("Of the %.1f s more that the operator takes, about %.1f s are the price of that, %.1f s the price of further writes, "+
		"and %.1f s are left for reads, watches and what it does itself. ", more, apply, further, more-apply-further)
}

// label names the run under a plot.
func (r result) label() string {
	if r.controllers {
		return fmt.Sprintf("%d, whole", r.graphs)
	}
	return fmt.Sprintf("%d graphs", r.graphs)
}

// text is the result for people at a terminal.
func (r result) text() string { return r.table() + "\n" + r.comparison() + "\n" }

// limits are what a run must keep to.
type limits struct {
	Ratio    float64 `json:"ratio"`
	PerGraph float64 `json:"writesPerGraph"`
	Idle     int     `json:"idleWrites"`
	Peak     int64   `json:"peakMiBAt1000"`
	Exponent float64 `json:"exponent"`
	// Seen are the ratios of earlier runs by their number of graphs. No run may
	// be much slower than they were, even if it is within the limit.
	Seen map[int][]float64 `json:"seen"`
}

// ratio is the most that a run of some graphs may take: a fifth more than the
// mean of earlier ones, and never more than the limit.
func (l limits) ratio(graphs int) float64 {
	seen := l.Seen[graphs]
	if len(seen) == 0 {
		return l.Ratio
	}
	sum := 0.0
	for _, r := range seen {
		sum += r
	}
	return min(l.Ratio, 1.2*sum/float64(len(seen)))
}

// check holds results against a file of ranges.
func check(path string, results []result) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var l limits
	if err := json.Unmarshal(text, &l); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	var problems []string
	fail := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	for _, r := range alone(results) {
		if most := l.ratio(r.graphs); r.ratio() > most {
			fail("%d graphs: %.2f times the bare client, at most %.2f", r.graphs, r.ratio(), most)
		}
		if r.perGraph() > l.PerGraph {
			fail("%d graphs: %.1f writes a graph, at most %.1f", r.graphs, r.perGraph(), l.PerGraph)
		}
		for _, phase := range []string{"idle", "restart", "delete"} {
			if n := r.find(phase).Requests.writes(); n > l.Idle {
				fail("%d graphs: %d writes in phase %s, at most %d", r.graphs, n, phase, l.Idle)
			}
		}
		if peak := r.peak() >> 20; r.graphs <= 1000 && peak > l.Peak {
			fail("%d graphs: %d MiB, at most %d", r.graphs, peak, l.Peak)
		}
	}
	if g, ok := growthOf(results); ok {
		// Nobody's time grows less than that of the API server alone.
		if most := max(l.Exponent, g.bare); g.operator > most {
			fail("time grows with the power %.2f of the number of graphs, at most %.2f", g.operator, most)
		}
		if most := max(g.own, g.writes); most > l.Exponent {
			fail("what the operator does grows with the power %.2f of the number of graphs, at most %.2f", most, l.Exponent)
		}
	}
	if len(problems) > 0 {
		return fmt.Errorf("outside the range of %s:\n  %s", path, strings.Join(problems, "\n  "))
	}
	return nil
}

// alone are the runs without controllers, whose own work would be measured too.
func alone(results []result) []result {
	return slices.DeleteFunc(slices.Clone(results), func(r result) bool { return r.controllers })
}

// growth is how costs grow from the smallest run to the largest; an exponent of
// 1 is in proportion.
type growth struct {
	from, to int
	// operator and bare are the times to create, own is the operator's CPU time
	// until everything is there and told, and writes are its writes until then.
	operator, bare, own, writes float64
}

func growthOf(results []result) (growth, bool) {
	results = alone(results)
	if len(results) < 2 {
		return growth{}, false
	}
	first, last := results[0], results[len(results)-1]
	power := func(cost func(result) float64) float64 {
		return math.Log(cost(last)/cost(first)) / math.Log(float64(last.graphs)/float64(first.graphs))
	}
	return growth{
		from: first.graphs, to: last.graphs,
		operator: power(func(r result) float64 { return r.find("create").Wall.Seconds() }),
		bare:     power(func(r result) float64 { return r.Posted.Wall.Seconds() }),
		own:      power(func(r result) float64 { return (r.find("create").CPU + r.find("settle").CPU).Seconds() }),
		writes:   power(func(r result) float64 { return r.perGraph() * float64(r.graphs) }),
	}, true
}

// String says it for a page.
func (g growth) String() string {
	return fmt.Sprintf("From %d to %d graphs the time to create grows with the power %.2f of their number, and the bare client's with %.2f. "+
		"What is the operator's own grows with %.2f (its CPU time) and %.2f (its writes).", g.from, g.to, g.operator, g.bare, g.own, g.writes)
}
