package engine

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dynamo-operator/dynamo-operator/internal/mockengine/kv"
	"github.com/dynamo-operator/dynamo-operator/internal/mockengine/text"
)

// rank is one scheduler with a cache of its own. A step is:
//
//	inbox -> waiting --admit--> running: prefill what is new, then one decode
//	                   ^                 step for all; the finished leave
//	                   +----- preempt ---------+  (when no block is left)
type rank struct {
	config Config
	gate   func() <-chan struct{}
	cache  *kv.Manager
	queue  []*sequence // waiting, first in line first
	batch  []*sequence // running, oldest first
	// until is the moment the work done so far should have taken; sleeping to
	// it instead of for a duration keeps timer slack from adding up.
	until time.Time

	mu      sync.Mutex
	backlog []*Generation
	bell    chan struct{}

	running, waiting, activeBlocks atomic.Int64
	promptTokens, outputTokens     atomic.Int64
}

// sequence is a generation inside the scheduler.
type sequence struct {
	generation *Generation
	blocks     *kv.Sequence
	// pending is how many prompt tokens are still to be computed; -1 before the
	// blocks are allocated.
	pending  int
	produced int
}

func newRank(config Config, gate func() <-chan struct{}) *rank {
	return &rank{config: config, gate: gate, cache: kv.NewManager(config.Blocks), bell: make(chan struct{}, 1)}
}

func (r *rank) load() int64 { return r.running.Load() + r.waiting.Load() }

// enqueue never blocks: the line is as long as it gets.
func (r *rank) enqueue(g *Generation) {
	r.mu.Lock()
	r.backlog = append(r.backlog, g)
	r.mu.Unlock()
	r.waiting.Add(1)
	select {
	case r.bell <- struct{}{}:
	default:
	}
}

func (r *rank) run(ctx context.Context) {
	r.until = time.Now()
	for ctx.Err() == nil {
		if !r.receive(ctx) {
			return
		}
		r.dropCancelled()
		r.admit()
		if !r.pause(ctx, r.prefill()) || !r.decode(ctx) {
			return
		}
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
			r.queue = append(r.queue, r.fresh(g))
		}
		if len(r.queue)+len(r.batch) > 0 {
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
		r.until = time.Now()
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

func (r *rank) fresh(g *Generation) *sequence {
	return &sequence{generation: g, blocks: kv.NewSequence(g.request.Prompt, r.config.BlockSize, r.config.Sharing), pending: -1}
}

func (r *rank) dropCancelled() {
	keep := func(list []*sequence) []*sequence {
		kept := list[:0]
		for _, s := range list {
			if s.generation.cancelled.Load() {
				s.blocks.Free(r.cache)
				s.generation.report(s.produced, true)
			} else {
				kept = append(kept, s)
			}
		}
		return kept
	}
	r.queue, r.batch = keep(r.queue), keep(r.batch)
}

// admit moves sequences from the line into the batch while blocks, batch tokens
// and batch places allow, stopping at the first that does not fit.
func (r *rank) admit() {
	limit := float64(r.config.Blocks) * (1 - r.config.Watermark)
	planned, tokens := 0, 0
	for _, s := range r.batch {
		tokens += max(0, s.pending)
	}
	for len(r.queue) > 0 && len(r.batch) < r.config.MaxSequences {
		s := r.queue[0]
		if float64(r.cache.Active()+planned+s.blocks.Blocks()) > limit {
			return
		}
		own := s.blocks.Len() - s.blocks.Cached(r.cache)
		counted := tokens + own
		if r.config.Chunked {
			counted = tokens
		}
		if counted > r.config.MaxBatchedTokens {
			return
		}
		tokens += own
		planned += s.blocks.Blocks()
		r.queue, r.batch = r.queue[1:], append(r.batch, s)
	}
}

// prefill computes prompts in order within the token budget of a step and
// returns the time it takes.
func (r *rank) prefill() time.Duration {
	var total time.Duration
	budget := r.config.MaxBatchedTokens
	for i := 0; i < len(r.batch); i++ {
		s := r.batch[i]
		if s.pending == 0 {
			continue
		}
		if s.pending < 0 && !r.allocate(s) {
			// Admission keeps this from happening but for sequences that grew
			// since; the newcomer goes back to the head of the line.
			r.batch = append(r.batch[:i], r.batch[i+1:]...)
			r.queue = append([]*sequence{s}, r.queue...)
			break
		}
		tokens := min(s.pending, budget)
		if !s.generation.request.Prefilled {
			total += r.config.Model.Prefill(tokens)
		}
		s.pending -= tokens
		budget -= tokens
		r.promptTokens.Add(int64(tokens))
		if s.pending > 0 {
			break
		}
	}
	return total
}

// allocate takes the blocks of the whole prompt, at its first chunk.
func (r *rank) allocate(s *sequence) bool {
	cached := s.blocks.Cached(r.cache)
	if !s.blocks.Allocate(r.cache) {
		return false
	}
	s.pending = s.blocks.Len() - cached
	s.generation.mu.Lock()
	s.generation.cached = cached
	s.generation.mu.Unlock()
	return true
}

// decode gives every computed sequence one more token.
func (r *rank) decode(ctx context.Context) bool {
	length, ready := 0, 0
	for _, s := range r.batch {
		if s.pending == 0 {
			length += s.blocks.Len()
			ready++
		}
	}
	if ready == 0 {
		return true
	}
	step := r.config.Model.Decode(r.cache.Active()*r.config.BlockSize, float64(length)/float64(ready))
	if !r.pause(ctx, step) {
		return false
	}
	// The batch may shrink while it is walked: preemption removes from it.
	for _, s := range append([]*sequence(nil), r.batch...) {
		if s.pending != 0 || !r.inBatch(s) {
			continue
		}
		request := s.generation.request
		token, _ := text.At(request.Seed, request.Offset+s.produced)
		for !s.blocks.Append(r.cache, token) {
			if len(r.batch) == 1 {
				// Alone and the cache is full: this is as long as it gets.
				r.finish(s)
				break
			}
			// The youngest gives way, as in vLLM. Were it the oldest, sequences
			// that do not fit together could take turns losing their work for ever.
			victim := r.batch[len(r.batch)-1]
			r.preempt(victim)
			if victim == s {
				break
			}
		}
		if !r.inBatch(s) {
			continue
		}
		s.produced++
		r.outputTokens.Add(1)
		if s.produced >= request.MaxTokens {
			r.finish(s)
		} else {
			s.generation.report(s.produced, false)
		}
	}
	return true
}

func (r *rank) inBatch(s *sequence) bool {
	return slices.Contains(r.batch, s)
}

func (r *rank) remove(s *sequence) {
	for i, other := range r.batch {
		if other == s {
			r.batch = append(r.batch[:i], r.batch[i+1:]...)
			return
		}
	}
}

func (r *rank) finish(s *sequence) {
	s.blocks.Free(r.cache)
	r.remove(s)
	s.generation.report(s.produced, true)
}

// preempt sends a sequence back to the head of the line, its work lost.
func (r *rank) preempt(s *sequence) {
	s.blocks.Free(r.cache)
	r.remove(s)
	r.queue = append([]*sequence{r.fresh(s.generation)}, r.queue...)
}

// maxLag bounds how far behind its own clock a scheduler may catch up: a
// stopped process must not race through the time it missed.
const maxLag = 100 * time.Millisecond

func (r *rank) pause(ctx context.Context, d time.Duration) bool {
	now := time.Now()
	if r.until.Before(now.Add(-maxLag)) {
		r.until = now
	}
	r.until = r.until.Add(time.Duration(float64(d) / r.config.Speed))
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
	r.running.Store(int64(len(r.batch)))
	r.mu.Lock()
	r.waiting.Store(int64(len(r.queue) + len(r.backlog)))
	r.mu.Unlock()
	r.activeBlocks.Store(int64(r.cache.Active()))
}
