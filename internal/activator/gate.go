package activator

import (
	"context"
	"errors"
	"sync"
	"time"
)

// pollPeriod is how often a frontend is asked while requests are held.
const pollPeriod = 100 * time.Millisecond

const (
	// expectedStart is how long a graph takes to start of which nothing is known.
	expectedStart = 2 * time.Minute
	mostRetry     = 10 * time.Minute
)

// gate is where requests are held.
type gate struct {
	frontend *frontend
	signal   *renewer
	limits   Limits

	mu     sync.Mutex
	held   int
	bytes  int64
	since  time.Time // the first of those that are held
	closed chan struct{}
	once   sync.Once
}

func newGate(f *frontend, signal *renewer, limits Limits) *gate {
	f.noted = signal.note
	return &gate{frontend: f, signal: signal, limits: limits, closed: make(chan struct{})}
}

func (g *gate) close() { g.once.Do(func() { close(g.closed) }) }

func (g *gate) wait(header string) time.Duration { return maxWait(header, g.limits.Wait) }

// reserve takes room for the body of a request.
func (g *gate) reserve(asked *request) (ticket int64, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	ticket = max(int64(len(asked.read)), asked.length)
	switch {
	case !asked.whole && asked.length < 0 || ticket > g.limits.Bytes:
		return 0, errTooLarge
	case g.bytes+ticket > g.limits.Bytes:
		return 0, errFull
	}
	g.bytes += ticket
	return ticket, nil
}

// release gives it back.
func (g *gate) release(ticket int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.bytes -= ticket
}

// enter counts a request in, and has the graph woken.
func (g *gate) enter(asked *request) (ticket int64, err error) {
	if ticket, err = g.reserve(asked); err != nil {
		return 0, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.held >= g.limits.Requests {
		g.bytes -= ticket
		return 0, errFull
	}
	if g.held == 0 {
		g.since = time.Now()
		g.signal.now()
	}
	g.held++
	return ticket, nil
}

// leave counts it out.
func (g *gate) leave(ticket int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.held--
	g.bytes -= ticket
}

// open returns when a model is ready, or with errStill after a while. One that no worker is
// told to serve is not waited for once others have been listed for so long as the last takes.
func (g *gate) open(ctx context.Context, model string, last, while time.Duration) error {
	still := time.NewTimer(while)
	defer still.Stop()
	poll := time.NewTicker(pollPeriod)
	defer poll.Stop()
	for {
		if g.frontend.ready(ctx, model) {
			g.mu.Lock()
			g.signal.woke(time.Since(g.since))
			g.mu.Unlock()
			return nil
		}
		if g.frontend.lacks(model, last) && !g.signal.declares(model) {
			return errUnknownModel
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-g.closed:
			return errClosing
		case <-still.C:
			return errStill
		case <-poll.C:
		}
	}
}

// retryAfter is in how many seconds a refused request has a chance.
func (g *gate) retryAfter(why error) int {
	if errors.Is(why, errClosing) {
		return 1
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	left := g.signal.start()
	if g.held > 0 {
		left -= time.Since(g.since)
	}
	return int(min(mostRetry, max(time.Second, left)).Seconds())
}
