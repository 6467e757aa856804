// Package engine is a continuous-batching scheduler without a model: it admits,
// prefills, decodes and preempts as an engine would, takes the time a timing
// model names, and produces token positions. What the tokens say is not its
// business, nor is how they travel.
package engine

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dynamo-operator/dynamo-operator/internal/mocker/text"
	"github.com/dynamo-operator/dynamo-operator/internal/mocker/timing"
)

// Config is the size and speed of an engine.
type Config struct {
	Blocks           int // of key-value cache, per rank
	BlockSize        int // tokens
	MaxSequences     int
	MaxBatchedTokens int
	// BesideDecode bounds the prompt tokens of a step in which others decode.
	BesideDecode int
	// Watermark is the share of blocks admission leaves free.
	Watermark float64
	// Chunked lets a long prompt take several steps.
	Chunked bool
	// Sharing is prefix caching.
	Sharing bool
	// Ranks is the data-parallel size: so many independent schedulers.
	Ranks int
	// Speed divides every duration; 1 is real time.
	Speed float64
	Model timing.Model
}

// Request is one generation.
type Request struct {
	Prompt []text.Token
	// Seed determines the answer; Offset is how much of it was already produced
	// elsewhere, those tokens being part of Prompt.
	Seed      uint64
	Offset    int
	MaxTokens int
	// Prefilled means a prefill worker has computed the prompt: it costs room
	// here, but no time.
	Prefilled bool
	// Waited is how long the request was under way to the engine; it counts
	// towards what the model says others than the scheduler need for it.
	Waited time.Duration
	// Rank picks a data-parallel rank; -1 leaves the choice to the engine.
	Rank int
}

// Engine runs until its context ends.
type Engine struct {
	config Config
	ranks  []*rank

	mu    sync.Mutex
	awake chan struct{} // closed while the engine is awake
}

// Start begins the schedulers.
func Start(ctx context.Context, config Config) *Engine {
	e := &Engine{config: config, awake: make(chan struct{})}
	close(e.awake)
	for range max(1, config.Ranks) {
		r := newRank(config, e.gate)
		e.ranks = append(e.ranks, r)
		go r.run(ctx)
	}
	return e
}

// Submit queues a request. It fails at once if the request could never run.
func (e *Engine) Submit(request Request) (*Generation, error) {
	if request.MaxTokens < 1 {
		return nil, fmt.Errorf("max_tokens is %d, want at least 1", request.MaxTokens)
	}
	if request.Rank >= len(e.ranks) {
		return nil, fmt.Errorf("dp_rank %d of an engine with %d ranks", request.Rank, len(e.ranks))
	}
	room := int(float64(e.config.Blocks)*(1-e.config.Watermark)) * e.config.BlockSize
	if len(request.Prompt) > room {
		return nil, fmt.Errorf("prompt has %d tokens, the key-value cache holds %d", len(request.Prompt), room)
	}
	if !e.config.Chunked && len(request.Prompt) > e.config.MaxBatchedTokens {
		return nil, fmt.Errorf("prompt has %d tokens, a batch %d, and chunked prefill is off", len(request.Prompt), e.config.MaxBatchedTokens)
	}
	r := e.pick(request.Rank)
	g := &Generation{news: make(chan struct{}, 1), request: request}
	r.enqueue(g)
	return g, nil
}

// pick takes the rank with the least to do; of equal ones that which waits for
// longest for somebody to follow a request that ended, so that users who take
// turns stay where they were.
func (e *Engine) pick(wanted int) *rank {
	if wanted >= 0 {
		return e.ranks[wanted]
	}
	best := e.ranks[0]
	for _, r := range e.ranks[1:] {
		if less := r.load() - best.load(); less < 0 || less == 0 && r.vacant.Load() < best.vacant.Load() {
			best = r
		}
	}
	return best
}

// Sleep stops all schedulers after their current step, Wake lets them go on.
func (e *Engine) Sleep() {
	e.mu.Lock()
	defer e.mu.Unlock()
	select {
	case <-e.awake:
		e.awake = make(chan struct{})
	default:
	}
}

// Wake ends Sleep.
func (e *Engine) Wake() {
	e.mu.Lock()
	defer e.mu.Unlock()
	select {
	case <-e.awake:
	default:
		close(e.awake)
	}
}

func (e *Engine) gate() <-chan struct{} {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.awake
}

// Stats is the load of all ranks together.
type Stats struct {
	Running, Waiting           int
	ActiveBlocks, TotalBlocks  int
	PromptTokens, OutputTokens int64
}

// Stats reads the load.
func (e *Engine) Stats() Stats {
	var s Stats
	for _, r := range e.ranks {
		s.Running += int(r.running.Load())
		s.Waiting += int(r.waiting.Load())
		s.ActiveBlocks += int(r.activeBlocks.Load())
		s.TotalBlocks += e.config.Blocks
		s.PromptTokens += r.promptTokens.Load()
		s.OutputTokens += r.outputTokens.Load()
	}
	return s
}

// Generation is a request under way.
type Generation struct {
	request   Request
	news      chan struct{} // holds a token when something changed
	cancelled atomic.Bool
	// ready is when the scheduler may have the request.
	ready time.Time
	// hold is by how much the first token is delivered later than produced.
	hold time.Duration

	mu        sync.Mutex
	produced  int
	cached    int
	finished  bool
	held      bool // the first token is produced and not yet delivered
	delivered bool
}

// Next waits until more than seen tokens are produced or the request ended.
func (g *Generation) Next(ctx context.Context, seen int) (produced int, finished bool, err error) {
	for {
		g.mu.Lock()
		produced, finished = g.produced, g.finished
		held := g.held
		g.mu.Unlock()
		if !held && (produced > seen || finished) {
			return produced, finished, nil
		}
		select {
		case <-g.news:
		case <-ctx.Done():
			return produced, false, ctx.Err()
		}
	}
}

// Cached is how many prompt tokens were found in the cache; known with the first token.
func (g *Generation) Cached() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.cached
}

// Cancel drops the request at the next step.
func (g *Generation) Cancel() { g.cancelled.Store(true) }

// report tells what was produced at a moment. The first token is held back from
// that moment on, not from when we came to tell it: what is late stays late once.
func (g *Generation) report(produced int, finished bool, at time.Time) {
	g.mu.Lock()
	// A preempted sequence starts over; what was handed out stays handed out.
	g.produced = max(g.produced, produced)
	g.finished = finished
	if g.produced > 0 && !g.delivered {
		g.delivered = true
		if hold := time.Until(at.Add(g.hold)); hold >= minDelay {
			g.held = true
			time.AfterFunc(hold, g.release)
		}
	}
	g.mu.Unlock()
	g.notify()
}

// release delivers the first token, and what was produced since.
func (g *Generation) release() {
	g.mu.Lock()
	g.held = false
	g.mu.Unlock()
	g.notify()
}

func (g *Generation) notify() {
	select {
	case g.news <- struct{}{}:
	default:
	}
}
