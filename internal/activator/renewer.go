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
	// Declared are those that its workers are told to serve, which is for others to say.
	Declared []string
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
	read     bool      // what was told before is known

	rereadMu sync.Mutex
	reread   time.Time // when it was last read once more
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

// declares reports whether workers are told to serve a model.
func (n *renewer) declares(model string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Contains(n.told.Declared, model)
}

// knows reports whether the graph has served a model before, or is to, or nothing is known
// of that. What it never served is not worth a start.
func (n *renewer) knows(model string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.told.Models) == 0 || slices.Contains(n.told.Models, model) || slices.Contains(n.told.Declared, model)
}

// listed are the models that a graph which sleeps shows.
func (n *renewer) listed() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Compact(slices.Sorted(slices.Values(slices.Concat(n.told.Models, n.told.Declared))))
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
		if !n.recalled() {
			_ = n.recall(ctx) // without it models are not written
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
	told := n.told
	if !n.read { // others may know more
		told.Models = nil
	}
	return told
}

// remember reads what was told before. It is asked again until it answers, for no longer
// than it takes to be asked something else: then it is before something is written.
func (n *renewer) remember(ctx context.Context) {
	for {
		if n.recall(ctx) == nil {
			return
		}
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

// rereading is how often a Lease is read at most for those who ask a sleeping graph for a
// model that it is not known to serve.
const rereading = 3 * time.Second

// look reads the Lease once more, unless that was done a moment ago. Others write on it as
// well: frontends that were asked for other models, and the operator when workers are told
// to serve others. One that cannot be read says nothing, and what is remembered counts. Who
// looks while another does waits for its answer.
func (n *renewer) look(ctx context.Context) {
	n.rereadMu.Lock()
	defer n.rereadMu.Unlock()
	if time.Since(n.reread) >= rereading {
		// What one finds out counts for others: it may not end with them.
		_ = n.recall(context.WithoutCancel(ctx))
		n.reread = time.Now()
	}
}

func (n *renewer) recalled() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.read
}

// recall reads what the Lease says.
func (n *renewer) recall(ctx context.Context) error {
	read, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	told, err := n.lease.Read(read)
	if err != nil {
		n.log.Warn("cannot read the Lease", "error", err)
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.read, n.told.Declared = true, told.Declared
	n.told.Models = slices.Compact(slices.Sorted(slices.Values(slices.Concat(n.told.Models, told.Models))))
	if n.told.Start == 0 {
		n.told.Start = told.Start
	}
	return nil
}
