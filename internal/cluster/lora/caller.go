package lora

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"time"

	"github.com/dynamo-operator/dynamo-operator/internal/core/guard"
	"github.com/dynamo-operator/dynamo-operator/internal/core/loraplan"
	"github.com/dynamo-operator/dynamo-operator/internal/core/roundrobin"
)

// The guards that keep one namespace's engines from holding up another's.
const (
	// NamespaceShares has namespaces take turns in both lanes, and leaves room in
	// the slow one.
	NamespaceShares guard.Guard = "lora-namespace-shares"
	// OneCallPerEngine has an engine called for one model at a time.
	OneCallPerEngine guard.Guard = "lora-one-call-per-engine"
	// IntentBeforeDial asks again whether a call is wanted before it is made.
	IntentBeforeDial guard.Guard = "lora-intent-before-dial"
)

// Limits bound the calls.
type Limits struct {
	// Quick is how many calls run at once.
	Quick int
	// Slow is how many calls may have taken longer than SlowAfter at once. They do
	// not count among the quick ones. One namespace has at most half of them, and
	// less while others have calls there.
	Slow int
	// SlowAfter is how long a call may stay among the quick ones.
	SlowAfter time.Duration
	// Timeout bounds one call.
	Timeout time.Duration
}

// Request is a call to be made on behalf of a model.
type Request struct {
	// Namespace is the model's, and the engine's.
	Namespace string
	Call      loraplan.Call
	// Wanted is asked right before the engine is called: the call may have been
	// queued for a while. Nil means yes.
	Wanted func(context.Context) bool
	// Done is given what came of the call, unless the process ends first.
	Done func(loraplan.Outcome)

	cut bool // made before, and cut short
}

// Caller makes calls in two lanes:
//
//	queue of the engine --> quick lane --(done)------------------> outcome
//	              |              |                                    ^
//	              |              +--(after SlowAfter)-> slow lane ----+
//	              |                                        ^
//	              +--(slow before, or no room there) ------+
//
// No call holds a place in the quick lane for longer than SlowAfter, so engines
// that hang cannot keep healthy ones waiting. An engine is called for one model at
// a time. Namespaces take turns in both lanes, and none takes all of the slow one.
type Caller struct {
	client *Client
	limits Limits
	// ctx ends all calls; it is the life of the process, not of a request.
	ctx context.Context

	mu          sync.Mutex
	engines     map[engineKey]*engine
	quick, slow lane
}

// engineKey names an engine. A namespace is part of it so that no namespace can
// queue calls for what is another's.
type engineKey struct {
	namespace string
	address   netip.Addr
}

// engine is one that has requests. It is in a lane's queue while it has some and
// none is under way.
type engine struct {
	key      engineKey
	requests []Request
	calling  int
	queued   bool
}

// lane has a number of places for calls.
type lane struct {
	places  int
	waiting roundrobin.Queue[string, *engine]
	inUse   map[string]int
	total   int
	// shared leaves room for one more namespace than there are.
	shared bool
}

// NewCaller makes a Caller whose calls end with ctx.
func NewCaller(ctx context.Context, client *Client, limits Limits) *Caller {
	return &Caller{
		client: client, limits: limits, ctx: ctx, engines: map[engineKey]*engine{},
		quick: lane{places: limits.Quick, inUse: map[string]int{}},
		slow:  lane{places: limits.Slow, inUse: map[string]int{}, shared: true},
	}
}

// Start makes a call in the background.
func (c *Caller) Start(r Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := engineKey{r.Namespace, r.Call.Endpoint.Address}
	e := c.engines[key]
	if e == nil {
		e = &engine{key: key}
		c.engines[key] = e
	}
	e.requests = append(e.requests, r)
	c.offer(e)
	c.dispatch()
}

// offer queues an engine for the lane of its first request.
func (c *Caller) offer(e *engine) {
	switch {
	case e.queued, e.calling > 0 && !OneCallPerEngine.Off():
	case len(e.requests) > 0:
		e.queued = true
		c.laneOf(e.requests[0]).waiting.Push(e.key.namespace, e)
	case e.calling == 0:
		delete(c.engines, e.key)
	}
}

func (c *Caller) laneOf(r Request) *lane {
	if r.Call.Patient {
		return &c.slow
	}
	return &c.quick
}

// dispatch begins the calls that there is room for.
func (c *Caller) dispatch() {
	for _, l := range []*lane{&c.quick, &c.slow} {
		for c.ctx.Err() == nil && l.total < l.places {
			e, ok := l.waiting.Next(l.mayEnter)
			if !ok {
				break
			}
			r := e.requests[0]
			e.requests = e.requests[1:]
			e.calling++
			e.queued = false
			l.enter(e.key.namespace)
			c.offer(e)
			go c.run(e, r, l)
		}
	}
}

// mayEnter reports whether a namespace has places left of its share.
func (l *lane) mayEnter(namespace string) bool {
	if l.total >= l.places {
		return false
	}
	if !l.shared || NamespaceShares.Off() {
		return true
	}
	present := len(l.inUse)
	l.waiting.Heads(func(waits string, _ *engine) bool {
		if l.inUse[waits] == 0 {
			present++
		}
		return true
	})
	if l.inUse[namespace] == 0 && l.waiting.LenOf(namespace) == 0 {
		present++
	}
	return l.inUse[namespace] < max(1, l.places/(present+1))
}

func (l *lane) enter(namespace string) {
	l.total++
	l.inUse[namespace]++
}

func (l *lane) leave(namespace string) {
	l.total--
	l.inUse[namespace]--
	if l.inUse[namespace] == 0 {
		delete(l.inUse, namespace)
	}
}

// run makes a call that has a place in a lane.
func (c *Caller) run(e *engine, r Request, in *lane) {
	if r.Wanted != nil && !IntentBeforeDial.Off() && !r.Wanted(c.ctx) {
		c.finish(e, r, in, loraplan.Outcome{Skipped: true, Unsure: r.cut})
		return
	}
	attempt := c.begin(r.Call)
	defer attempt.cancel()
	slow := time.NewTimer(c.limits.SlowAfter)
	defer slow.Stop()
	select {
	case outcome := <-attempt.outcome:
		c.finish(e, r, in, outcome)
		return
	case <-slow.C:
	}
	if in == &c.quick && !c.slowDown(e) {
		// It has to be made again in the slow lane; the engine must have lost it first.
		attempt.cancel()
		<-attempt.outcome
		c.putBack(e, r)
		return
	}
	outcome := <-attempt.outcome
	outcome.Slow = true
	c.finish(e, r, &c.slow, outcome)
}

// slowDown moves a call from the quick lane to the slow one, if that has room.
func (c *Caller) slowDown(e *engine) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.slow.mayEnter(e.key.namespace) {
		return false
	}
	c.quick.leave(e.key.namespace)
	c.slow.enter(e.key.namespace)
	c.dispatch()
	return true
}

// putBack queues a call for the slow lane, as its engine's next.
func (c *Caller) putBack(e *engine, r Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r.Call.Patient, r.cut = true, true
	c.quick.leave(e.key.namespace)
	e.calling--
	e.requests = append([]Request{r}, e.requests...)
	c.offer(e)
	c.dispatch()
}

// finish leaves the lane to the next and hands over what came of a call.
func (c *Caller) finish(e *engine, r Request, in *lane, outcome loraplan.Outcome) {
	c.mu.Lock()
	in.leave(e.key.namespace)
	e.calling--
	c.offer(e)
	c.dispatch()
	c.mu.Unlock()
	if c.ctx.Err() == nil {
		r.Done(outcome)
	}
}

// attempt is one request under way.
type attempt struct {
	outcome chan loraplan.Outcome
	cancel  context.CancelFunc
}

func (c *Caller) begin(call loraplan.Call) attempt {
	ctx, cancel := context.WithTimeout(c.ctx, c.limits.Timeout)
	a := attempt{outcome: make(chan loraplan.Outcome, 1), cancel: cancel}
	go func() {
		o, err := c.do(ctx, call)
		o.Problem, o.Unsure = c.problem(call.Task, err), unanswered(err)
		a.outcome <- o
	}()
	return a
}

func (c *Caller) do(ctx context.Context, call loraplan.Call) (o loraplan.Outcome, err error) {
	switch engine := call.Endpoint.Address; call.Task.Verb {
	case loraplan.List:
		o.Loaded, err = c.client.List(ctx, engine)
	case loraplan.Load:
		err = c.client.Load(ctx, engine, call.Task.Adapter)
	case loraplan.Unload:
		had := false
		had, err = c.client.Unload(ctx, engine, call.Task.Adapter.Name)
		o.Absent = err == nil && !had
	default:
		err = fmt.Errorf("no such call: %s", call.Task.Verb)
	}
	return o, err
}

// unanswered reports whether a call may have reached an engine that did not say what
// came of it.
func unanswered(err error) bool {
	for _, unsent := range []error{syscall.ECONNREFUSED, syscall.EHOSTUNREACH, syscall.ENETUNREACH} {
		if errors.Is(err, unsent) {
			return false
		}
	}
	_, transport := errors.AsType[net.Error](err)
	return transport || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, context.Canceled)
}

// problem words a failure without what differs from one time to the next, such
// as the ports of a connection.
func (c *Caller) problem(task loraplan.Task, err error) string {
	var timeout net.Error
	why := ""
	switch {
	case err == nil:
		return ""
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		why = fmt.Sprintf("no answer within %s", c.limits.Timeout)
	case errors.Is(err, syscall.ECONNREFUSED):
		why = "connection refused"
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		why = "no route to the engine"
	default:
		if _, transport := errors.AsType[net.Error](err); transport {
			why = "the connection broke"
		} else {
			why = err.Error()
		}
	}
	if task.Verb == loraplan.List {
		return plain("list adapters: " + why)
	}
	return plain(fmt.Sprintf("%s %s: %s", task.Verb, task.Adapter.Name, why))
}
