package namespacescope

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// ErrNotWriter is why an operator does not write: it holds no fresh Lease.
var ErrNotWriter = errors.New("not the writer")

// Term is how long a renewal of a Lease lets its holder write: less than others wait
// before they take it.
type Term struct {
	// Lease is what is renewed, for messages.
	Lease string
	// Deadline is how long a renewal is good for.
	Deadline time.Duration
	Clock    clock.WithDelayedExecution

	mu sync.Mutex
	// renewed is when the last request began that renewed; zero if it is not held.
	renewed time.Time
	// since is when the first renewal without a gap was answered.
	since time.Time
	why   error
	ctx   context.Context
	end   context.CancelCauseFunc
	watch clock.Timer
}

// Renewed takes note of a renewal, which was asked for at a time: who sees it sees
// it later, however long the answer took.
func (t *Term) Renewed(began time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.Clock.Now()
	left := t.Deadline - elapsed(began, now)
	if left <= 0 {
		return // an answer that came too late
	}
	if t.renewed.IsZero() || elapsed(t.renewed, now) >= t.Deadline {
		t.lose(fmt.Errorf("%w: Lease %s was not renewed within %s", ErrNotWriter, t.Lease, t.Deadline))
		t.ctx, t.end = context.WithCancelCause(context.Background())
		t.since = now
	}
	t.renewed = began
	if t.watch != nil {
		t.watch.Stop()
	}
	t.watch = t.Clock.AfterFunc(left, func() { go t.expire() }) // fake clocks call it under their lock
}

// expire ends what goes on when a renewal does not come.
func (t *Term) expire() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.renewed.IsZero() || elapsed(t.renewed, t.Clock.Now()) < t.Deadline {
		return
	}
	t.lose(fmt.Errorf("%w: Lease %s was not renewed within %s", ErrNotWriter, t.Lease, t.Deadline))
}

// Lost ends the term.
func (t *Term) Lost(why error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lose(fmt.Errorf("%w: Lease %s: %w", ErrNotWriter, t.Lease, why))
}

func (t *Term) lose(why error) {
	t.renewed, t.since, t.why = time.Time{}, time.Time{}, why
	if t.end != nil {
		t.end(why)
	}
}

// Left is for how long one may write now without another renewal.
func (t *Term) Left() (time.Duration, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.renewed.IsZero() {
		if t.why != nil {
			return 0, t.why
		}
		return 0, fmt.Errorf("%w: Lease %s is not held", ErrNotWriter, t.Lease)
	}
	left := t.Deadline - elapsed(t.renewed, t.Clock.Now())
	if left <= 0 {
		return 0, fmt.Errorf("%w: Lease %s was not renewed within %s", ErrNotWriter, t.Lease, t.Deadline)
	}
	return left, nil
}

// Lasting is for how long the term lasts without a gap; zero if it does not.
func (t *Term) Lasting() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.since.IsZero() {
		return 0
	}
	return t.Clock.Now().Sub(t.since)
}

// Context ends with the term, for its reason.
func (t *Term) Context() context.Context {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ctx == nil {
		return context.Background()
	}
	return t.ctx
}

// elapsed is the time between two looks at our clock, the longer of what the
// monotonic and the wall clock say: a machine that slept has a monotonic clock that
// did, too. A wall clock that is set forward costs a renewal.
func elapsed(from, to time.Time) time.Duration {
	return max(to.Sub(from), to.Round(0).Sub(from.Round(0)))
}
