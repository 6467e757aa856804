package queue

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"golang.org/x/time/rate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/dynamo-operator/dynamo-operator/internal/core/guard"
	"github.com/dynamo-operator/dynamo-operator/internal/core/roundrobin"
)

// The guards that keep one namespace from taking what others wait for.
const (
	// RoundRobin has namespaces take turns within a priority, and no priority
	// starve those below it.
	RoundRobin guard.Guard = "queue-round-robin"
	// Budgets demote objects that change too often, and alarms of namespaces that
	// raise too many.
	Budgets guard.Guard = "queue-budgets"
	// WorkerShares keep a namespace from occupying all workers.
	WorkerShares guard.Guard = "queue-worker-shares"
)

// Fairness is how the reconciles of one controller are shared among namespaces
// and objects.
type Fairness struct {
	// Workers is how many objects of one namespace are reconciled at once at most.
	// While several namespaces wait it is divided among them. 0 means no limit.
	Workers int
	// LowerPriorityEvery is after how many reconciles one of a lower priority
	// comes, if any waits. 0 means never.
	LowerPriorityEvery int
	// Window is the time that the budgets are for.
	Window time.Duration
	// ObjectBudget is how many reconciles of one object in a window are ahead of
	// child events. The rest come among them. 0 means all.
	ObjectBudget int
	// DegradedBudget is how many alarms of one namespace in a window are ahead of what
	// users do. The rest are child events like others. 0 means all.
	DegradedBudget int
}

// order decides which object is reconciled next:
//
//	priority --> namespaces take turns --> first in, first out
//
// It is the ordering of a client-go workqueue, which never holds an object twice
// and never returns one that is in flight. Its line's lock guards it.
type order struct {
	Fairness
	now     func() time.Time
	demoted func(namespace string)

	levels  map[int]*roundrobin.Queue[string, *entry]
	waiting map[reconcile.Request]*entry
	// requested are the priorities of objects that are about to be pushed, or that
	// will be once their reconcile ends.
	requested map[reconcile.Request]int
	// namespaces that have an object waiting or in flight.
	namespaces map[string]*namespaceState
	// waitingNamespaces is the number of namespaces with an object waiting.
	waitingNamespaces int
	// arrived counts pushes; skipped the pops in a row for which a lower priority
	// had to wait.
	arrived uint64
	skipped int
	// popped is the priority of what Pop returned last.
	popped int

	budgets  map[reconcile.Request]*rate.Limiter
	degraded map[string]*rate.Limiter
	swept    time.Time
}

// entry is an object that waits.
type entry struct {
	item     reconcile.Request
	priority int
	arrival  uint64
	at       roundrobin.Item[string, *entry]
}

type namespaceState struct {
	waiting int
	// userWork is how many of those that wait are ahead of child events.
	userWork int
	inFlight int
}

func newOrder(f Fairness, now func() time.Time, demoted func(string)) *order {
	return &order{
		Fairness: f, now: now, demoted: demoted,
		levels:     map[int]*roundrobin.Queue[string, *entry]{},
		waiting:    map[reconcile.Request]*entry{},
		requested:  map[reconcile.Request]int{},
		namespaces: map[string]*namespaceState{},
		budgets:    map[reconcile.Request]*rate.Limiter{},
		degraded:   map[string]*rate.Limiter{},
	}
}

// request sets the priority at which an object is to be pushed, or raises that
// of one that waits. The highest request counts.
func (o *order) request(item reconcile.Request, priority int) {
	if before, found := o.requested[item]; !found || priority > before {
		o.requested[item] = priority
	}
}

// Push adds an object that does not wait.
func (o *order) Push(item reconcile.Request) {
	priority, demoted := o.admit(item)
	if demoted {
		o.demoted(item.Namespace)
	}
	e := &entry{item: item, priority: priority, arrival: o.arrived}
	o.arrived++
	o.waiting[item] = e
	state := o.state(item.Namespace)
	if state.waiting == 0 {
		o.waitingNamespaces++
	}
	state.waiting++
	o.join(e)
}

// Touch raises the priority of an object that waits. It comes last among those of
// the higher priority, and keeps its age.
func (o *order) Touch(item reconcile.Request) {
	e := o.waiting[item]
	if priority, found := o.requested[item]; !found || priority <= e.priority {
		delete(o.requested, item)
		return
	}
	priority, _ := o.admit(item)
	if priority <= e.priority {
		return
	}
	o.leave(e)
	e.priority = priority
	o.join(e)
}

// Len is the number of objects that wait, whether or not one may be taken now.
func (o *order) Len() int { return len(o.waiting) }

// Pop takes the next object. Its namespace has one more in flight until done is
// called.
func (o *order) Pop() reconcile.Request {
	e := o.next()
	o.popped = e.priority
	delete(o.waiting, e.item)
	state := o.state(e.item.Namespace)
	state.waiting--
	if state.waiting == 0 {
		o.waitingNamespaces--
	}
	state.inFlight++
	if e.priority > PriorityChild {
		state.userWork--
		o.charge(e.item)
	}
	return e.item
}

// done is for an object whose reconcile has ended.
func (o *order) done(item reconcile.Request) {
	o.state(item.Namespace).inFlight--
	if *o.state(item.Namespace) == (namespaceState{}) {
		delete(o.namespaces, item.Namespace)
	}
}

// ready reports whether some object may be taken now.
func (o *order) ready() bool {
	for _, level := range o.levels {
		if o.oldest(level) != nil {
			return true
		}
	}
	return false
}

// next takes the object whose turn it is: of the highest priority, but for each
// one in so many, which is of the lower priority that has waited longest.
func (o *order) next() *entry {
	var first, longest *entry
	for _, priority := range slices.SortedFunc(maps.Keys(o.levels), func(a, b int) int { return cmp.Compare(b, a) }) {
		switch head := o.oldest(o.levels[priority]); {
		case head == nil:
		case first == nil:
			first = head
		case longest == nil || head.arrival < longest.arrival:
			longest = head
		}
	}
	switch {
	case longest == nil || o.LowerPriorityEvery == 0 || RoundRobin.Off():
		o.skipped = 0
	case o.skipped+1 >= o.LowerPriorityEvery:
		o.skipped, first = 0, longest
	default:
		o.skipped++
	}
	if RoundRobin.Off() {
		return o.take(first)
	}
	e, _ := o.levels[first.priority].Next(o.mayHaveWorker)
	o.drop(first.priority)
	return e
}

// oldest is the object of a priority that has waited longest, of those that may
// have a worker. Nil if there is none.
func (o *order) oldest(level *roundrobin.Queue[string, *entry]) (found *entry) {
	level.Heads(func(namespace string, head *entry) bool {
		if (found == nil || head.arrival < found.arrival) && o.mayHaveWorker(namespace) {
			found = head
		}
		return true
	})
	return found
}

// mayHaveWorker reports whether a namespace has workers left of its share.
func (o *order) mayHaveWorker(namespace string) bool {
	if o.Workers == 0 || WorkerShares.Off() {
		return true
	}
	share := (o.Workers + o.waitingNamespaces - 1) / max(o.waitingNamespaces, 1)
	return o.state(namespace).inFlight < max(share, 1)
}

func (o *order) join(e *entry) {
	if o.levels[e.priority] == nil {
		o.levels[e.priority] = &roundrobin.Queue[string, *entry]{}
	}
	e.at = o.levels[e.priority].Push(e.item.Namespace, e)
	if e.priority > PriorityChild {
		o.state(e.item.Namespace).userWork++
	}
}

func (o *order) leave(e *entry) {
	o.take(e)
	if e.priority > PriorityChild {
		o.state(e.item.Namespace).userWork--
	}
}

func (o *order) take(e *entry) *entry {
	o.levels[e.priority].Remove(e.at)
	o.drop(e.priority)
	return e
}

// drop forgets a priority that nobody has.
func (o *order) drop(priority int) {
	if o.levels[priority].Len() == 0 {
		delete(o.levels, priority)
	}
}

func (o *order) state(namespace string) *namespaceState {
	if o.namespaces[namespace] == nil {
		o.namespaces[namespace] = &namespaceState{}
	}
	return o.namespaces[namespace]
}

// admit is the priority that an object gets of the one that was requested, and
// whether its budget, or its namespace's, is spent.
func (o *order) admit(item reconcile.Request) (priority int, demoted bool) {
	priority = o.requested[item]
	delete(o.requested, item)
	if priority <= PriorityChild || Budgets.Off() {
		return priority, false
	}
	now := o.now()
	o.sweep(now)
	spent := o.budgets[item] != nil && o.budgets[item].TokensAt(now) < 1
	if priority > 0 && o.DegradedBudget > 0 && !spent {
		spent = !allow(o.degraded, item.Namespace, o.DegradedBudget, o.Window, now)
	}
	if spent {
		return PriorityChild, true
	}
	return priority, false
}

// charge counts a reconcile against its object's budget.
func (o *order) charge(item reconcile.Request) {
	if o.ObjectBudget > 0 {
		allow(o.budgets, item, o.ObjectBudget, o.Window, o.now())
	}
}

// allow takes a token of a key's bucket, which fills up once in a window.
func allow[K comparable](buckets map[K]*rate.Limiter, key K, budget int, window time.Duration, now time.Time) bool {
	if buckets[key] == nil {
		buckets[key] = rate.NewLimiter(rate.Every(window/time.Duration(budget)), budget)
	}
	return buckets[key].AllowN(now, 1)
}

// sweep forgets, once in a window, the buckets that are full again.
func (o *order) sweep(now time.Time) {
	if now.Sub(o.swept) < o.Window {
		return
	}
	o.swept = now
	full := func(b *rate.Limiter) bool { return b.TokensAt(now) >= float64(b.Burst()) }
	maps.DeleteFunc(o.budgets, func(_ reconcile.Request, b *rate.Limiter) bool { return full(b) })
	maps.DeleteFunc(o.degraded, func(_ string, b *rate.Limiter) bool { return full(b) })
}
