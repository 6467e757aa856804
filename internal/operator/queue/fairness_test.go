package queue

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// of is an object of a namespace, written as in kubectl.
func of(namespace, name string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}
}

// drainAll takes what may be taken, and ends each reconcile before the next.
func drainAll(q *queue) []string {
	var got []string
	for q.order.ready() {
		item, _ := q.Get()
		got = append(got, item.String())
		q.Done(item)
	}
	return got
}

func TestWhoIsReconciledNext(t *testing.T) {
	type add struct {
		item     reconcile.Request
		priority int
	}
	many := func(namespace string, n, priority int) []add {
		var all []add
		for i := range n {
			all = append(all, add{of(namespace, fmt.Sprint(i)), priority})
		}
		return all
	}
	cases := map[string]struct {
		fairness Fairness
		adds     [][]add
		want     []string
	}{
		"namespaces take turns within a priority": {
			adds: [][]add{many("a", 3, 0), many("b", 2, 0)},
			want: []string{"a/0", "b/0", "a/1", "b/1", "a/2"},
		},
		"a higher priority comes first": {
			adds: [][]add{many("a", 2, PriorityChild), many("b", 2, 0)},
			want: []string{"b/0", "b/1", "a/0", "a/1"},
		},
		"every third reconcile is of a lower priority that waits": {
			fairness: Fairness{LowerPriorityEvery: 3},
			adds:     [][]add{many("a", 5, 0), many("b", 2, PriorityChild)},
			want:     []string{"a/0", "a/1", "b/0", "a/2", "a/3", "b/1", "a/4"},
		},
		"of several lower priorities the one that has waited longest": {
			fairness: Fairness{LowerPriorityEvery: 2},
			adds:     [][]add{many("low", 1, handler.LowPriority), many("a", 3, 0), many("b", 1, PriorityChild)},
			want:     []string{"a/0", "low/0", "a/1", "b/0", "a/2"},
		},
		"who is raised comes last at its new priority": {
			adds: [][]add{{{of("a", "x"), PriorityChild}, {of("a", "y"), 0}, {of("a", "x"), 0}}},
			want: []string{"a/y", "a/x"},
		},
		"who is added again at a lower priority keeps its own": {
			adds: [][]add{{{of("a", "x"), 0}, {of("a", "y"), 0}, {of("a", "x"), PriorityChild}}},
			want: []string{"a/x", "a/y"},
		},
	}
	for rule, c := range cases {
		t.Run(rule, func(t *testing.T) {
			q := testLineOf(t, &Queues{}, c.fairness)
			for _, adds := range c.adds {
				for _, a := range adds {
					q.AddWithOpts(priorityqueue.AddOpts{Priority: &a.priority}, a.item)
				}
			}
			if diff := cmp.Diff(c.want, drainAll(q)); diff != "" {
				t.Error("-want +got", diff)
			}
		})
	}
}

// model is what a queue must hold, kept in the simplest way.
type model struct {
	*rapid.T
	q        *queue
	waiting  map[reconcile.Request]*modelEntry
	inFlight map[reconcile.Request]bool
	// again are objects that were added while they were in flight.
	again map[reconcile.Request]int
	joins int
	// served is, for each flow that waits, which others had a turn meanwhile.
	served map[modelFlow]map[string]int
	// passed is how many reconciles in a row a lower priority waited for.
	passed int
}

type modelEntry struct{ priority, joined int }

type modelFlow struct {
	namespace string
	priority  int
}

func (m *model) flow(f modelFlow) (items []reconcile.Request) {
	for item, e := range m.waiting {
		if item.Namespace == f.namespace && e.priority == f.priority {
			items = append(items, item)
		}
	}
	return items
}

func (m *model) join(item reconcile.Request, priority int) {
	e := m.waiting[item]
	if e != nil && e.priority >= priority {
		return
	}
	if f := (modelFlow{item.Namespace, priority}); len(m.flow(f)) == 0 {
		m.served[f] = map[string]int{}
	}
	m.waiting[item] = &modelEntry{priority, m.joins}
	m.joins++
}

func (m *model) add(item reconcile.Request, priority int) {
	m.q.AddWithOpts(priorityqueue.AddOpts{Priority: &priority}, item)
	if !m.inFlight[item] {
		m.join(item, priority)
	} else if before, found := m.again[item]; !found || before < priority {
		m.again[item] = priority
	}
}

func (m *model) done(item reconcile.Request) {
	m.q.Done(item)
	delete(m.inFlight, item)
	if priority, found := m.again[item]; found {
		delete(m.again, item)
		m.join(item, priority)
	}
}

// share is how many objects of a namespace may be in flight, and are.
func (m *model) share(namespace string) (may, are int) {
	behind := map[string]bool{}
	for item := range m.waiting {
		behind[item.Namespace] = true
	}
	for item := range m.inFlight {
		if item.Namespace == namespace {
			are++
		}
	}
	w := m.q.order.Workers
	return max(1, (w+len(behind)-1)/max(1, len(behind))), are
}

func (m *model) get(fair bool) {
	if !m.q.order.ready() {
		for item := range m.waiting {
			if may, are := m.share(item.Namespace); are < may {
				m.Fatalf("nobody is ready, but %s may have %d workers and has %d", item, may, are)
			}
		}
		return
	}
	item, priority, _ := m.q.GetWithPriority()
	e := m.waiting[item]
	if e == nil || m.inFlight[item] {
		m.Fatalf("%s came, which does not wait; in flight: %v", item, m.inFlight[item])
	}
	if e.priority != priority {
		m.Fatalf("%s came with priority %d, want %d", item, priority, e.priority)
	}
	if may, are := m.share(item.Namespace); are >= may {
		m.Fatalf("%s came although its namespace has %d of %d workers", item, are, may)
	}
	f := modelFlow{item.Namespace, priority}
	for _, other := range m.flow(f) {
		if m.waiting[other].joined < e.joined {
			m.Fatalf("%s came before %s of its namespace", item, other)
		}
	}
	m.checkStarvation(priority)
	delete(m.waiting, item)
	m.inFlight[item] = true
	m.served[f] = map[string]int{}
	for other, by := range m.served {
		if other.priority != priority || other.namespace == f.namespace || len(m.flow(other)) == 0 {
			continue
		}
		by[f.namespace]++
		if fair && by[f.namespace] > 1 {
			m.Fatalf("%s had two turns while %s waited", f.namespace, other.namespace)
		}
	}
}

// checkStarvation is for workers without a limit, where all who wait may come.
func (m *model) checkStarvation(priority int) {
	highest, lower := priority, false
	for _, e := range m.waiting {
		highest = max(highest, e.priority)
	}
	for _, e := range m.waiting {
		lower = lower || e.priority < highest
	}
	every := m.q.order.LowerPriorityEvery
	switch {
	case m.q.order.Workers < 100:
	case !lower:
		m.passed = 0
	case priority < highest && m.passed+1 < every:
		m.Fatalf("priority %d came before %d after %d reconciles", priority, highest, m.passed)
	case priority < highest:
		m.passed = 0
	default:
		m.passed++
		if m.passed >= every {
			m.Fatalf("a lower priority waited for %d reconciles", m.passed)
		}
	}
}

// Whatever is added in whatever order: nobody is lost, nobody is in flight twice,
// a namespace is first in, first out, and no other has two turns while it waits.
func TestNobodyIsLostAndNamespacesTakeTurns(t *testing.T) {
	for rule, workers := range map[string]int{"without a limit of workers": 1000, "with shares of workers": 3} {
		t.Run(rule, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				f := Fairness{Workers: workers, LowerPriorityEvery: rapid.IntRange(2, 5).Draw(t, "every")}
				q := newQueue("", Backoff(time.Millisecond, time.Second, 0, 0), &Queues{}, Options{Fairness: f})
				defer q.ShutDown()
				m := &model{
					T: t, q: q, waiting: map[reconcile.Request]*modelEntry{}, inFlight: map[reconcile.Request]bool{},
					again: map[reconcile.Request]int{}, served: map[modelFlow]map[string]int{},
				}
				inFlight := func() []reconcile.Request {
					return slices.SortedFunc(maps.Keys(m.inFlight), func(a, b reconcile.Request) int { return slices.Compare([]byte(a.String()), []byte(b.String())) })
				}
				fair := workers > 100 // who may have no worker has no turn
				t.Repeat(map[string]func(*rapid.T){
					"add": func(t *rapid.T) {
						item := of(rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(t, "namespace"), rapid.StringMatching("[0-9]").Draw(t, "name"))
						m.add(item, rapid.SampledFrom([]int{PriorityDegraded, 0, PriorityChild, handler.LowPriority}).Draw(t, "priority"))
					},
					"get": func(*rapid.T) { m.get(fair) },
					"done": func(t *rapid.T) {
						if all := inFlight(); len(all) > 0 {
							m.done(rapid.SampledFrom(all).Draw(t, "item"))
						}
					},
					"": func(*rapid.T) {
						if q.Len() != len(m.waiting) || q.unfinished() != len(m.waiting)+len(m.inFlight) {
							m.Fatalf("%d wait and %d are unfinished, want %d and %d in flight", q.Len(), q.unfinished(), len(m.waiting), len(m.inFlight))
						}
					},
				})
				for len(m.waiting)+len(m.inFlight)+len(m.again) > 0 {
					for _, item := range inFlight() {
						m.done(item)
					}
					m.get(fair)
				}
				if q.order.ready() || len(q.order.namespaces) > 0 && q.unfinished() == 0 && len(q.order.levels) > 0 {
					m.Fatalf("something is left: %v", q.order.namespaces)
				}
			})
		})
	}
}

func TestAnObjectThatChangesTooOftenIsDemoted(t *testing.T) {
	demoted := 0
	now := time.Unix(1000, 0)
	o := newOrder(Fairness{ObjectBudget: 2, Window: 10 * time.Second}, func() time.Time { return now }, func(string) { demoted++ })
	edit := func(rule string, want int) {
		t.Helper()
		o.request(of("a", "x"), 0)
		o.Push(of("a", "x"))
		item := o.Pop()
		o.done(item)
		if o.popped != want {
			t.Errorf("%s: priority %d, want %d", rule, o.popped, want)
		}
	}
	edit("the first change", 0)
	edit("the second change", 0)
	edit("one more than the budget", PriorityChild)
	if demoted != 1 {
		t.Errorf("%d were counted as demoted", demoted)
	}
	o.request(of("a", "y"), 0)
	o.Push(of("a", "y"))
	o.Pop()
	if o.popped != 0 {
		t.Errorf("another object of the namespace has priority %d", o.popped)
	}
	now = now.Add(5 * time.Second)
	edit("half a window later half of the budget is back", 0)
	edit("and no more", PriorityChild)
	now = now.Add(time.Minute)
	edit("a quiet object has its whole budget", 0)
	now = now.Add(time.Minute)
	o.sweep(now)
	if len(o.budgets) > 0 {
		t.Errorf("%d budgets of quiet objects are kept", len(o.budgets))
	}
}

func TestANamespaceThatRaisesTooManyAlarmsRaisesThemAsNews(t *testing.T) {
	now := time.Unix(1000, 0)
	o := newOrder(Fairness{DegradedBudget: 2, Window: 10 * time.Second}, func() time.Time { return now }, func(string) {})
	alarm := func(rule, namespace, name string, want int) {
		t.Helper()
		o.request(of(namespace, name), PriorityDegraded)
		o.Push(of(namespace, name))
		o.done(o.Pop())
		if o.popped != want {
			t.Errorf("%s: priority %d, want %d", rule, o.popped, want)
		}
	}
	alarm("the first alarm", "a", "x", PriorityDegraded)
	alarm("the second alarm, of another object", "a", "y", PriorityDegraded)
	alarm("one more than the budget", "a", "z", PriorityChild)
	alarm("another namespace has its own budget", "b", "x", PriorityDegraded)
	now = now.Add(time.Minute)
	alarm("a minute later", "a", "z", PriorityDegraded)
}

func TestANamespaceDoesNotOccupyAllWorkers(t *testing.T) {
	q := testLineOf(t, &Queues{}, Fairness{Workers: 2})
	for i := range 4 {
		q.Add(of("slow", fmt.Sprint(i)))
	}
	for range 2 {
		take(t, q)
	}
	got := make(chan reconcile.Request)
	go func() {
		for {
			item, shutdown := q.Get()
			if shutdown {
				close(got)
				return
			}
			got <- item
		}
	}()
	q.Add(of("quick", "a"))
	if item := <-got; item != of("quick", "a") {
		t.Errorf("%s came while two of its namespace are in flight", item)
	}
	q.Done(of("quick", "a"))
	q.Done(of("slow", "0"))
	if item := <-got; item != of("slow", "2") {
		t.Errorf("%s came once its namespace had a worker less", item)
	}
	q.ShutDown()
	if item, open := <-got; open {
		t.Errorf("%s came after the end", item)
	}
}

func TestDelays(t *testing.T) {
	type got struct {
		item  string
		after time.Duration
	}
	cases := map[string]struct {
		add  func(*queue)
		want []got
	}{
		"an object comes when it is due": {
			func(q *queue) { q.AddAfter(of("a", "x"), time.Second) },
			[]got{{"a/x", time.Second}},
		},
		"the earlier of two times counts": {
			func(q *queue) { q.AddAfter(of("a", "x"), time.Minute); q.AddAfter(of("a", "x"), time.Second) },
			[]got{{"a/x", time.Second}},
		},
		"who comes earlier for another reason does not come again": {
			func(q *queue) { q.AddAfter(of("a", "x"), time.Second); q.Add(of("a", "x")) },
			[]got{{"a/x", 0}},
		},
		"who waits already does not come again": {
			func(q *queue) { q.Add(of("a", "x")); q.AddAfter(of("a", "x"), time.Second) },
			[]got{{"a/x", 0}},
		},
		"a delay that begins anew is waited for": {
			func(q *queue) {
				q.AddAfter(of("a", "x"), time.Second)
				q.Add(of("a", "x"))
				item, _ := q.Get()
				q.AddAfter(item, time.Minute)
				q.Done(item)
			},
			[]got{{"a/x", time.Minute}},
		},
		"failures wait longer each time": {
			func(q *queue) {
				q.AddRateLimited(of("a", "x"))
				q.AddRateLimited(of("a", "y"))
				q.AddRateLimited(of("a", "y"))
			},
			[]got{{"a/x", time.Millisecond}, {"a/y", time.Millisecond}},
		},
	}
	for rule, c := range cases {
		t.Run(rule, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := newQueue("", Backoff(time.Millisecond, time.Second, 0, 0), &Queues{}, Options{})
				begin := time.Now()
				c.add(q)
				var mu sync.Mutex
				var all []got
				var worker sync.WaitGroup
				worker.Go(func() {
					for {
						item, shutdown := q.Get()
						if shutdown {
							return
						}
						mu.Lock()
						all = append(all, got{item.String(), time.Since(begin)})
						mu.Unlock()
						q.Done(item)
					}
				})
				time.Sleep(time.Hour)
				q.ShutDown()
				worker.Wait()
				if diff := cmp.Diff(c.want, all, cmp.AllowUnexported(got{})); diff != "" {
					t.Error("-want +got", diff)
				}
			})
		})
	}
}
