package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/guard"
	"github.com/dynamo-operator/dynamo-operator/internal/operator/queue"
	"github.com/dynamo-operator/dynamo-operator/internal/testkit/auditlog"
)

// variant is the operator without some of what paces it.
type variant struct {
	name string
	off  []guard.Guard
}

// variants are what is compared. Deferring knows user work by its priority, so that
// it ends with the priorities.
func variants() []variant {
	return []variant{
		{name: "as shipped"},
		{"without batching", []guard.Guard{queue.Batching}},
		{"without longer batching", []guard.Guard{queue.LongBatching}},
		{"without settling", []guard.Guard{queue.Settling}},
		{"without deferring", []guard.Guard{queue.Deferring}},
		{"without priorities and deferring", []guard.Guard{queue.Priorities, queue.Deferring}},
		{"without settling and deferring", []guard.Guard{queue.Settling, queue.Deferring}},
		{"without any", []guard.Guard{queue.Batching, queue.LongBatching, queue.Settling, queue.Deferring, queue.Priorities}},
	}
}

// paced is what a crowd of graphs cost with one variant.
type paced struct {
	variant string
	// child is until the last child existed, status until the last status was true.
	child, status time.Duration
	// lag is the longest time from the last child of a graph until its status was
	// true, usual the median of all graphs.
	lag, usual time.Duration
	// writes and statuses are requests of the operator; a graph's share of them.
	writes, statuses float64
	cpu, server      time.Duration
}

// pacing is the table for a number of graphs.
type pacing struct {
	graphs int
	rows   []paced
	// bare are the times of the bare client, at the beginning and at the end.
	bare []bareResult
}

// measurePacing compares variants of one program, each on a fresh control plane.
func measurePacing(ctx context.Context, o options) error {
	var tables []pacing
	for _, count := range o.counts {
		table := pacing{graphs: count}
		var all []unstructured.Unstructured
		limited := func() error {
			bare, err := limit(ctx, o.bin, scale{graphs: count}, all, post)
			if err != nil {
				return fmt.Errorf("bare client: %w", err)
			}
			table.bare = append(table.bare, bare)
			fmt.Fprintf(os.Stderr, "%d graphs, bare client: %.1f s\n", count, bare.Wall.Seconds())
			return nil
		}
		for i, v := range variants() {
			row, made, err := pace(ctx, o, count, v)
			if err != nil {
				return fmt.Errorf("%d graphs, %s: %w", count, v.name, err)
			}
			fmt.Fprintf(os.Stderr, "%d graphs, %s: last child %.1f s, last status %.1f s\n", count, v.name, row.child.Seconds(), row.status.Seconds())
			table.rows = append(table.rows, row)
			if i > 0 {
				continue
			}
			all = made
			if err := limited(); err != nil {
				return err
			}
		}
		if err := limited(); err != nil { // the machine may have become slower
			return err
		}
		fmt.Println(table.text())
		tables = append(tables, table)
		if o.write != "" {
			if err := writePacing(o.write, tables); err != nil {
				return err
			}
		}
	}
	return nil
}

// pace measures one variant. What takes only seconds is done three times, in a
// namespace each, and the middle one counts.
func pace(ctx context.Context, o options, count int, v variant) (paced, []unstructured.Unstructured, error) {
	s, err := setUp(ctx, o.bin, false)
	if err != nil {
		return paced{}, nil, err
	}
	defer s.tearDown()
	s.program = o.operator
	for _, g := range v.off {
		s.off = append(s.off, string(g))
	}
	if s.operator, err = startOperator(ctx, s); err != nil {
		return paced{}, nil, err
	}
	if err := s.warmUp(ctx); err != nil {
		return paced{}, nil, fmt.Errorf("warm up: %w", err)
	}
	times := 1
	if count <= 100 {
		times = 3
	}
	var rows []paced
	for i := range times {
		row, err := s.crowd(ctx, fmt.Sprintf("%s-%d", namespace, i), count)
		if err != nil {
			return paced{}, nil, err
		}
		row.variant = v.name
		rows = append(rows, row)
	}
	slices.SortFunc(rows, func(a, b paced) int { return cmp.Compare(a.status, b.status) })
	all, err := s.objects(ctx, namespace+"-0")
	return rows[len(rows)/2], all, err
}

// crowd makes graphs in a namespace of their own and reads in the audit log what
// came when.
func (s *stage) crowd(ctx context.Context, ns string, count int) (paced, error) {
	if err := s.client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}); err != nil {
		return paced{}, err
	}
	before, err := s.account(ctx)
	if err != nil {
		return paced{}, err
	}
	begin := time.Now()
	err = each(ctx, count, func(ctx context.Context, i int) error {
		g := newGraph(i, "1")
		g.Namespace = ns
		return s.client.Create(ctx, g)
	})
	if err != nil {
		return paced{}, err
	}
	if err := errors.Join(s.children(ctx, ns, count, "1"), s.settle(ctx), s.trueStatuses(ctx, ns, count)); err != nil {
		return paced{}, err
	}
	after, err := s.account(ctx)
	if err != nil {
		return paced{}, err
	}
	t := timeline{begin: begin}
	if err := s.audit.Since(before.log, t.add); err != nil {
		return paced{}, err
	}
	row := t.row(count)
	row.cpu, row.server = after.used.cpu-before.used.cpu, after.server-before.server
	return row, nil
}

// trueStatuses fails if a status does not tell of the spec and all services of its
// graph: then what was measured is not the time until it did.
func (s *stage) trueStatuses(ctx context.Context, ns string, count int) error {
	var list v1alpha1.DynamoGraphDeploymentList
	if err := s.client.List(ctx, &list, client.InNamespace(ns)); err != nil {
		return err
	}
	if len(list.Items) != count {
		return fmt.Errorf("%d of %d graphs", len(list.Items), count)
	}
	for i := range list.Items {
		g := &list.Items[i]
		if g.Status.ObservedGeneration != g.Generation || len(g.Status.Services) != services {
			return fmt.Errorf("the status of %s is about generation %d of %d and %d of %d services",
				g.Name, g.Status.ObservedGeneration, g.Generation, len(g.Status.Services), services)
		}
	}
	return nil
}

// timeline is what the audit log tells of a crowd.
type timeline struct {
	begin            time.Time
	writes, statuses int
	child, status    time.Time
	// made and told are, by graph, when its last child was made and when its last
	// status was written.
	made, told map[string]time.Time
}

// graphName is how long the name of a graph is; those of its children begin with it.
var graphName = len(newGraph(0, "1").Name)

func (t *timeline) add(e auditlog.Entry) {
	if !strings.HasPrefix(e.UserAgent, "dynamo-operator") || e.Ref.Resource == "leases" || !e.Writes() {
		return
	}
	t.writes++
	if t.made == nil {
		t.made, t.told = map[string]time.Time{}, map[string]time.Time{}
	}
	name := e.Ref.Name[:min(graphName, len(e.Ref.Name))]
	switch {
	case e.Ref.Subresource == "status":
		t.statuses++
		t.status = latest(t.status, e.Answered)
		if e.Ref.Resource == "dynamographdeployments" {
			t.told[name] = latest(t.told[name], e.Answered)
		}
	case e.Made() && e.Ref.Resource != "events":
		t.child = latest(t.child, e.Answered)
		t.made[name] = latest(t.made[name], e.Answered)
	}
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func (t *timeline) row(count int) paced {
	var lags []time.Duration
	for name, told := range t.told {
		lags = append(lags, max(0, told.Sub(t.made[name])))
	}
	slices.Sort(lags)
	row := paced{
		child: t.child.Sub(t.begin), status: t.status.Sub(t.begin),
		writes: float64(t.writes) / float64(count), statuses: float64(t.statuses) / float64(count),
	}
	if len(lags) > 0 {
		row.usual, row.lag = lags[len(lags)/2], lags[len(lags)-1]
	}
	return row
}

// limit is the mean time of the bare client.
func (p pacing) limit() float64 {
	sum := 0.0
	for _, b := range p.bare {
		sum += b.Wall.Seconds()
	}
	return sum / float64(len(p.bare))
}

// text is the table for people who read Markdown.
func (p pacing) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "### %d graphs\n\n", p.graphs)
	fmt.Fprintln(&b, "| operator | last child | last status true | of the bare client | from last child to true status: median, longest | writes a graph | of them statuses | CPU of operator, API server |")
	fmt.Fprintln(&b, "|---|---:|---:|---:|---:|---:|---:|---:|")
	for _, r := range p.rows {
		fmt.Fprintf(&b, "| %s | %.1f s | %.1f s%s | %.2f | %.1f s, %.1f s | %.1f | %.1f | %.1f s, %.1f s |\n", r.variant, r.child.Seconds(), r.status.Seconds(),
			p.change(r), r.status.Seconds()/p.limit(), r.usual.Seconds(), r.lag.Seconds(), r.writes, r.statuses, r.cpu.Seconds(), r.server.Seconds())
	}
	var bare []string
	for _, one := range p.bare {
		bare = append(bare, fmt.Sprintf("%.1f s", one.Wall.Seconds()))
	}
	fmt.Fprintf(&b, "\nThe bare client makes the same %d objects in %s (before and after the others).\n", p.bare[0].Objects, strings.Join(bare, " and "))
	return b.String()
}

// change is how much longer a variant takes than the first.
func (p pacing) change(r paced) string {
	if r.variant == p.rows[0].variant {
		return ""
	}
	return fmt.Sprintf(" (%+.0f %%)", 100*(r.status.Seconds()/p.rows[0].status.Seconds()-1))
}

// pacingTitle begins the part of the page that measurePacing writes.
const pacingTitle = "## What pacing gains"

func writePacing(folder string, tables []pacing) error {
	var b strings.Builder
	fmt.Fprintf(&b, pacingTitle+"\n\nWritten by `make bench-pacing` on %d cores, %s.\n\n", runtime.NumCPU(), time.Now().UTC().Format(time.DateOnly))
	fmt.Fprint(&b, `The operator with all that paces its work, and without one thing after the other: the same program,
each time on a fresh control plane of API server and etcd. A status is true when it is not written
again: here nothing starts pods, so it says that none is ready. All times are by the audit log. From a
graph's last child until its status is true is the time in which a user sees less than there is; it
counts everything, the wait behind other graphs too. What each thing is for, and what went because
it gained nothing, is in [the design](design/0005-making-before-telling.md).

`)
	for _, t := range tables {
		fmt.Fprintln(&b, t.text())
	}
	return replacePart(folder, strings.TrimRight(b.String(), "\n")+"\n")
}
