package engine

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// rank runs one scheduler with a cache of its own in real time.
type rank struct {
	scheduler *scheduler
	gate      func() <-chan struct{}
	// until is the moment the work done so far should have taken; sleeping to
	// it instead of for a duration keeps timer slack from adding up.
	until time.Time

	mu      sync.Mutex
	backlog []*Generation
	coming  int // requests that have not arrived yet
	bell    chan struct{}

	vacant                         atomic.Int64 // since when, in steps' own time
	running, waiting, activeBlocks atomic.Int64
	promptTokens, outputTokens     atomic.Int64
}

func newRank(config Config, gate func() <-chan struct{}) *rank {
	return &rank{scheduler: newScheduler(config), gate: gate, bell: make(chan struct{}, 1)}
}

func (r *rank) load() int64 { return r.running.Load() + r.waiting.Load() }

// enqueue never blocks: the line is as long as it gets. A request waits in it
// from now on, though the scheduler sees it only when it has arrived.
func (r *rank) enqueue(g *Generation) {
	r.waiting.Add(1)
	config := r.scheduler.config
	var delay time.Duration
	if g.request.Prefilled {
		delay = time.Duration(float64(config.Model.Transfer(len(g.request.Prompt))) / config.Speed)
	} else {
		g.hold = time.Duration(float64(config.Model.Delivery())/config.Speed) - g.request.Waited
	}
	g.ready = time.Now().Add(delay)
	if delay < minDelay {
		r.arrive(g)
		return
	}
	r.mu.Lock()
	r.coming++
	r.mu.Unlock()
	time.AfterFunc(delay, func() {
		r.mu.Lock()
		r.coming--
		r.mu.Unlock()
		r.arrive(g)
	})
}

// minDelay is below what a timer can do.
const minDelay = 50 * time.Microsecond

func (r *rank) arrive(g *Generation) {
	r.mu.Lock()
	r.backlog = append(r.backlog, g)
	r.mu.Unlock()
	select {
	case r.bell <- struct{}{}:
	default:
	}
}

func (r *rank) run(ctx context.Context) {
	r.until = time.Now()
	for ctx.Err() == nil {
		if !r.receive(ctx) || !r.pause(ctx, r.scheduler.plan()) {
			return
		}
		r.scheduler.finish(r.until)
		r.publish()
	}
}

// receive takes in new requests, waiting for one when there is nothing to do.
func (r *rank) receive(ctx context.Context) bool {
	if !r.await(ctx) {
		return false
	}
	for {
		r.mu.Lock()
		arrived := r.backlog
		r.backlog = nil
		r.mu.Unlock()
		for _, g := range arrived {
			if r.scheduler.idle() && g.ready.After(r.until) {
				// Work began when the request came, however late we wake up to it.
				r.until = g.ready
			}
			r.scheduler.add(g)
		}
		if !r.scheduler.idle() {
			return true
		}
		r.publish()
		select {
		case <-r.bell:
		case <-ctx.Done():
			return false
		}
		if !r.await(ctx) {
			return false
		}
	}
}

// await passes while the engine is awake.
func (r *rank) await(ctx context.Context) bool {
	select {
	case <-r.gate():
		return true
	case <-ctx.Done():
		return false
	}
}

// maxLag bounds how far behind its own clock a scheduler may catch up: a
// stopped process must not race through the time it missed. Stretched time
// leaves more of it.
const maxLag = 100 * time.Millisecond

func (r *rank) pause(ctx context.Context, d time.Duration) bool {
	now := time.Now()
	speed := r.scheduler.config.Speed
	if r.until.Before(now.Add(-time.Duration(float64(maxLag) / min(1, speed)))) {
		r.until = now
	}
	r.until = r.until.Add(time.Duration(float64(d) / speed))
	left := r.until.Sub(now)
	if left <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(left)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func (r *rank) publish() {
	s := r.scheduler
	if running := int64(len(s.batch)); running < r.running.Swap(running) {
		r.vacant.Store(r.until.UnixNano())
	}
	r.promptTokens.Store(s.promptTokens)
	r.outputTokens.Store(s.outputTokens)
	r.mu.Lock()
	r.waiting.Store(int64(len(s.queue) + len(r.backlog) + r.coming))
	r.mu.Unlock()
	r.activeBlocks.Store(int64(s.cache.Active()))
}
