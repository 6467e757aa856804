package activator

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"
)

// Told is what a Lease says of a graph.
type Told struct {
	// LastRequest is when the last one came.
	LastRequest time.Time
	// Models are those that the graph last served.
	Models []string
	// Start is how long requests were held when it last woke.
	Start time.Duration
}

// Lease is the graph's.
type Lease interface {
	// Read is what it says.
	Read(ctx context.Context) (Told, error)
	// Renew writes it.
	Renew(ctx context.Context, told Told) error
}

// renewer tells of requests: at once if there was none for a while, and otherwise rarely.
// While nobody asks it writes nothing.
type renewer struct {
	lease  Lease
	period time.Duration
	log    *slog.Logger
	wake   chan struct{}

	mu       sync.Mutex
	told     Told
	inflight int
	dirty    bool      // there is something to tell
	urgent   bool      // at once
	written  time.Time // when something was
}

func newRenewer(lease Lease, period time.Duration, log *slog.Logger) *renewer {
	return &renewer{lease: lease, period: period, log: log, wake: make(chan struct{}, 1)}
}

// begin counts a request, and returns what ends it.
func (n *renewer) begin() (end func()) {
	n.count(1)
	return func() { n.count(-1) }
}

func (n *renewer) count(by int) {
	n.mu.Lock()
	n.inflight += by
	n.told.LastRequest, n.dirty = time.Now(), true
	n.mu.Unlock()
	n.kick()
}

// now has the last request told, unless it just was.
func (n *renewer) now() {
	n.mu.Lock()
	told := !n.dirty && time.Since(n.written) < time.Second
	n.mu.Unlock()
	if !told {
		n.again()
	}
}

// again has it told at once whatever was written.
func (n *renewer) again() {
	n.mu.Lock()
	n.dirty, n.urgent = true, true
	n.mu.Unlock()
	n.kick()
}

// note remembers the models that are served, and forgets others once these are all.
// Nothing is written for that alone.
func (n *renewer) note(models []string, all bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !all {
		models = slices.Concat(models, n.told.Models)
	}
	n.told.Models = slices.Compact(slices.Sorted(slices.Values(models)))
}

// leastStart is what a start takes at least. Who was held for less has met a frontend that
// did not answer for a moment, which says nothing of how long workers take.
const leastStart = 3 * time.Second

// woke remembers how long a start took.
func (n *renewer) woke(took time.Duration) {
	if took < leastStart {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.told.Start = took
}

func (n *renewer) models() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.told.Models
}

// remembers reports whether the graph has served a model before.
func (n *renewer) remembers(model string) bool { return slices.Contains(n.models(), model) }

// knows reports whether the graph has served a model before, or nothing is known of that.
// What it never served is not worth a start.
func (n *renewer) knows(model string) bool {
	known := n.models()
	return len(known) == 0 || slices.Contains(known, model)
}

func (n *renewer) start() time.Duration {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.told.Start == 0 {
		return expectedStart
	}
	return n.told.Start
}

func (n *renewer) kick() {
	select {
	case n.wake <- struct{}{}:
	default:
	}
}

// run writes until ctx ends. What was told before is read first, so that a new frontend
// knows the models of a graph that sleeps.
func (n *renewer) run(ctx context.Context) {
	n.remember(ctx)
	failures := 0
	for {
		due, pending := n.due(time.Now())
		var timer <-chan time.Time
		if pending {
			timer = time.After(due)
		}
		select {
		case <-ctx.Done():
			return
		case <-n.wake:
			continue
		case <-timer:
		}
		told := n.take(time.Now())
		write, cancel := context.WithTimeout(ctx, 5*time.Second)
		err := n.lease.Renew(write, told)
		cancel()
		if err == nil {
			failures = 0
			continue
		}
		n.log.Warn("cannot tell of requests", "error", err)
		n.again()
		sleep(ctx, min(5*time.Second, 250*time.Millisecond<<min(failures, 5)))
		failures++
	}
}

// due is in how long something is to be written, if anything is.
func (n *renewer) due(now time.Time) (time.Duration, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case n.dirty && n.urgent:
		return 0, true
	case n.dirty || n.inflight > 0:
		return max(0, n.written.Add(n.period).Sub(now)), true
	default:
		return 0, false
	}
}

// take is what is written now. A request that is being answered is one of now.
func (n *renewer) take(now time.Time) Told {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.inflight > 0 {
		n.told.LastRequest = now
	}
	n.dirty, n.urgent, n.written = false, false, now
	return n.told
}

// remember reads what was told before. It is asked again until it answers, for no longer
// than it takes to be asked something else.
func (n *renewer) remember(ctx context.Context) {
	for {
		read, cancel := context.WithTimeout(ctx, 5*time.Second)
		told, err := n.lease.Read(read)
		cancel()
		if err == nil {
			n.mu.Lock()
			if len(n.told.Models) == 0 {
				n.told.Models = told.Models
			}
			if n.told.Start == 0 {
				n.told.Start = told.Start
			}
			n.mu.Unlock()
			return
		}
		n.log.Warn("cannot read the Lease", "error", err)
		select {
		case <-ctx.Done():
			return
		case <-n.wake:
			n.kick()
			return
		case <-time.After(2 * time.Second):
		}
	}
}
