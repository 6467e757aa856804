package lora

import (
	"context"
	"errors"
	"fmt"
	"net"
	"syscall"
	"time"

	"github.com/dynamo-operator/dynamo-operator/internal/model"
)

// Limits bound the calls.
type Limits struct {
	// Quick is how many calls run at once.
	Quick int
	// Slow is how many calls may have taken longer than Patience at once. They do
	// not count among the quick ones.
	Slow int
	// Patience is how long a call may stay among the quick ones.
	Patience time.Duration
	// Timeout bounds one call.
	Timeout time.Duration
}

// Caller makes calls in two lanes:
//
//	wait --> quick lane --(done)--------------------------> outcome
//	              |                                            ^
//	              +--(after Patience)--> slow lane --(done)----+
//	                                        ^
//	wait (slow before, or no room there) ---+
//
// No call holds a place in the quick lane for longer than Patience, so engines
// that hang cannot keep healthy ones waiting.
type Caller struct {
	client *Client
	limits Limits
	quick  chan struct{}
	slow   chan struct{}
	// ctx ends all calls; it is the life of the process, not of a request.
	ctx context.Context
}

// NewCaller makes a Caller whose calls end with ctx.
func NewCaller(ctx context.Context, client *Client, limits Limits) *Caller {
	return &Caller{
		client: client, limits: limits, ctx: ctx,
		quick: make(chan struct{}, limits.Quick),
		slow:  make(chan struct{}, limits.Slow),
	}
}

// Start makes a call in the background and hands over what came of it; nothing
// if the process ends first.
func (c *Caller) Start(call model.Call, done func(model.Outcome)) {
	go func() {
		outcome := c.run(call)
		if c.ctx.Err() == nil {
			done(outcome)
		}
	}()
}

func (c *Caller) run(call model.Call) model.Outcome {
	if !call.Patient {
		if outcome, settled := c.inQuickLane(call); settled {
			return outcome
		}
	}
	if !c.enter(c.slow) {
		return model.Outcome{}
	}
	defer leave(c.slow)
	begun := time.Now()
	attempt := c.begin(call)
	defer attempt.cancel()
	outcome := <-attempt.outcome
	outcome.Slow = time.Since(begun) > c.limits.Patience
	return outcome
}

// inQuickLane makes a call that is expected to be quick. One that is not and
// finds no room in the slow lane is given up and has to be made again there.
func (c *Caller) inQuickLane(call model.Call) (outcome model.Outcome, settled bool) {
	if !c.enter(c.quick) {
		return model.Outcome{}, true
	}
	attempt := c.begin(call)
	defer attempt.cancel()
	patience := time.NewTimer(c.limits.Patience)
	defer patience.Stop()
	select {
	case outcome := <-attempt.outcome:
		leave(c.quick)
		return outcome, true
	case <-patience.C:
	}
	select {
	case c.slow <- struct{}{}:
		leave(c.quick)
		defer leave(c.slow)
		outcome := <-attempt.outcome
		outcome.Slow = true
		return outcome, true
	default:
		leave(c.quick)
		return model.Outcome{}, false
	}
}

func (c *Caller) enter(lane chan struct{}) bool {
	select {
	case lane <- struct{}{}:
		return true
	case <-c.ctx.Done():
		return false
	}
}

func leave(lane chan struct{}) { <-lane }

// attempt is one request under way.
type attempt struct {
	outcome chan model.Outcome
	cancel  context.CancelFunc
}

func (c *Caller) begin(call model.Call) attempt {
	ctx, cancel := context.WithTimeout(c.ctx, c.limits.Timeout)
	a := attempt{outcome: make(chan model.Outcome, 1), cancel: cancel}
	go func() {
		loaded, err := c.do(ctx, call)
		a.outcome <- model.Outcome{Loaded: loaded, Problem: c.problem(call.Task, err)}
	}()
	return a
}

func (c *Caller) do(ctx context.Context, call model.Call) ([]string, error) {
	switch engine := call.Endpoint.Address; call.Task.Verb {
	case model.List:
		return c.client.List(ctx, engine)
	case model.Load:
		return nil, c.client.Load(ctx, engine, call.Task.Adapter)
	case model.Unload:
		return nil, c.client.Unload(ctx, engine, call.Task.Adapter.Name)
	default:
		return nil, fmt.Errorf("no such call: %s", call.Task.Verb)
	}
}

// problem words a failure without what differs from one time to the next, such
// as the ports of a connection.
func (c *Caller) problem(task model.Task, err error) string {
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
	if task.Verb == model.List {
		return plain("list adapters: " + why)
	}
	return plain(fmt.Sprintf("%s %s: %s", task.Verb, task.Adapter.Name, why))
}
