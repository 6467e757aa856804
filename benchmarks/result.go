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
	Graphs      int
	Controllers bool
	Objects     int
	Bare        time.Duration
	Phases      []phaseResult
}

// phaseResult is what one phase cost.
type phaseResult struct {
	Name     string
	Wall     time.Duration
	CPU      time.Duration
	Peak     int64
	Requests requests
	P50, P99 float64
}

// phase runs a part of the benchmark and accounts for it.
func (s *stage) phase(ctx context.Context, name string, do func(context.Context) error) (phaseResult, error) {
	before, err := s.account()
	if err != nil {
		return phaseResult{}, err
	}
	operator, begin := s.operator, time.Now()
	if err := do(ctx); err != nil {
		return phaseResult{}, err
	}
	p := phaseResult{Name: name, Wall: time.Since(begin)}
	after, err := s.account()
	if err != nil {
		return p, err
	}
	if s.operator != operator {
		before.used, before.passes = usage{}, nil // another process, which began at nothing
	}
	p.CPU, p.Peak = after.used.cpu-before.used.cpu, after.used.peak
	p.P50, p.P99 = quantile(before.passes, after.passes, 0.5), quantile(before.passes, after.passes, 0.99)
	p.Requests, err = s.audit.since(before.log)
	return p, err
}

// account is where all counters stand.
type account struct {
	log    int64
	used   usage
	passes map[float64]float64
}

func (s *stage) account() (account, error) {
	var a account
	var err error
	if a.log, err = s.audit.end(); err != nil {
		return a, err
	}
	if a.used, err = s.operator.usage(); err != nil {
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
func (r result) ratio() float64 { return r.find("create").Wall.Seconds() / r.Bare.Seconds() }

// perGraph is how many writes a graph costs to come up.
func (r result) perGraph() float64 {
	return float64(r.find("create").Requests.writes()) / float64(r.Graphs)
}

// table is the result for people who read Markdown.
func (r result) table() string {
	var b strings.Builder
	fmt.Fprintln(&b, "| phase | time | operator CPU | peak memory | writes | requests by verb | pass p50, p99 |")
	fmt.Fprintln(&b, "|---|---:|---:|---:|---:|---|---|")
	for _, p := range r.Phases {
		var verbs []string
		for _, verb := range slices.Sorted(maps.Keys(p.Requests)) {
			verbs = append(verbs, fmt.Sprintf("%d %s", p.Requests[verb], verb))
		}
		fmt.Fprintf(&b, "| %s | %.1f s | %.1f s | %d MiB | %d | %s | ≤ %.3g s, ≤ %.3g s |\n",
			p.Name, p.Wall.Seconds(), p.CPU.Seconds(), p.Peak>>20, p.Requests.writes(), strings.Join(verbs, ", "), p.P50, p.P99)
	}
	return b.String()
}

// text is the result for people at a terminal.
func (r result) text() string {
	return fmt.Sprintf("%s\nbare client: %d objects in %.1f s; create takes %.2f times as long, %.1f writes a graph\n",
		r.table(), r.Objects, r.Bare.Seconds(), r.ratio(), r.perGraph())
}

// limits are what a run must keep to.
type limits struct {
	Ratio    float64 `json:"ratio"`
	PerGraph float64 `json:"writesPerGraph"`
	Idle     int     `json:"idleWrites"`
	Peak     int64   `json:"peakMiBAt1000"`
	Exponent float64 `json:"exponent"`
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
	for _, r := range results {
		if r.ratio() > l.Ratio {
			fail("%d graphs: %.2f times the bare client, at most %.2f", r.Graphs, r.ratio(), l.Ratio)
		}
		if r.perGraph() > l.PerGraph {
			fail("%d graphs: %.1f writes a graph, at most %.1f", r.Graphs, r.perGraph(), l.PerGraph)
		}
		for _, phase := range []string{"idle", "restart"} {
			if n := r.find(phase).Requests.writes(); n > l.Idle {
				fail("%d graphs: %d writes while %s, at most %d", r.Graphs, n, phase, l.Idle)
			}
		}
		if peak := r.find("create").Peak >> 20; r.Graphs <= 1000 && peak > l.Peak {
			fail("%d graphs: %d MiB, at most %d", r.Graphs, peak, l.Peak)
		}
	}
	if e, ok := exponent(results); ok && e > l.Exponent {
		fail("time grows with the power %.2f of the number of graphs, at most %.2f", e, l.Exponent)
	}
	if len(problems) > 0 {
		return fmt.Errorf("outside the range of %s:\n  %s", path, strings.Join(problems, "\n  "))
	}
	return nil
}

// exponent is how the time to create grows from the first run to the last: 1 is
// in proportion.
func exponent(results []result) (float64, bool) {
	if len(results) < 2 {
		return 0, false
	}
	first, last := results[0], results[len(results)-1]
	grown := last.find("create").Wall.Seconds() / first.find("create").Wall.Seconds()
	return math.Log(grown) / math.Log(float64(last.Graphs)/float64(first.Graphs)), true
}
