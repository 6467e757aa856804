package engine

import (
	"slices"
	"time"

	"github.com/dynamo-operator/dynamo-operator/internal/mocker/kv"
	"github.com/dynamo-operator/dynamo-operator/internal/mocker/text"
	"github.com/dynamo-operator/dynamo-operator/internal/mocker/timing"
)

// scheduler decides what an engine does next. It knows no clock: plan says how
// long the next step takes, finish hands out what it produced, and whoever calls
// them lets the time pass in between. A step is:
//
//	waiting --admit--> running: compute what is new of prompts, and one token
//	           ^       for each sequence whose prompt is computed; the finished
//	           |       leave
//	           +----- preempt ---------+  (when no block is left)
//
// A prompt whose last chunk is computed gives its first token in that step.
type scheduler struct {
	config Config
	cache  *kv.Manager
	queue  []*sequence // waiting, first in line first
	batch  []*sequence // running, oldest first

	promptTokens, outputTokens int64
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

func newScheduler(config Config) *scheduler {
	return &scheduler{config: config, cache: kv.NewManager(config.Blocks)}
}

func (s *scheduler) idle() bool { return len(s.queue)+len(s.batch) == 0 }

func (s *scheduler) add(g *Generation) { s.queue = append(s.queue, s.fresh(g)) }

func (s *scheduler) fresh(g *Generation) *sequence {
	return &sequence{generation: g, blocks: kv.NewSequence(g.request.Prompt, s.config.BlockSize, s.config.Sharing), pending: -1}
}

func (s *scheduler) dropCancelled() {
	keep := func(list []*sequence) []*sequence {
		kept := list[:0]
		for _, q := range list {
			if q.generation.cancelled.Load() {
				q.blocks.Free(s.cache)
				q.generation.report(q.produced, true, time.Time{})
			} else {
				kept = append(kept, q)
			}
		}
		return kept
	}
	s.queue, s.batch = keep(s.queue), keep(s.batch)
}

// plan begins a step and says how long it takes.
func (s *scheduler) plan() time.Duration {
	s.dropCancelled()
	s.admit()
	sequences, length := s.decoding()
	parts := s.prefill(sequences)
	var took time.Duration
	if sequences > 0 {
		took = s.config.Model.Decode(sequences, s.cache.Active()*s.config.BlockSize, float64(length)/float64(sequences))
	}
	return took + s.config.Model.Prefill(parts, took)
}

// decoding counts the sequences that a step gives a token without any prefill,
// and their tokens.
func (s *scheduler) decoding() (sequences, tokens int) {
	for _, q := range s.batch {
		if q.pending == 0 {
			sequences++
			tokens += q.blocks.Len()
		}
	}
	return sequences, tokens
}

// admit moves sequences from the line into the batch while blocks, batch tokens
// and batch places allow, stopping at the first that does not fit. Prompts that
// were computed elsewhere take their blocks at once and join the next step.
func (s *scheduler) admit() {
	limit := float64(s.config.Blocks) * (1 - s.config.Watermark)
	planned, tokens := 0, 0
	for _, q := range s.batch {
		tokens += max(0, q.pending)
	}
	for len(s.queue) > 0 && len(s.batch) < s.config.MaxSequences {
		q := s.queue[0]
		if float64(s.cache.Active()+planned+q.blocks.Blocks()) > limit {
			return
		}
		own := q.blocks.Len() - q.blocks.Cached(s.cache)
		counted := tokens + own
		if s.config.Chunked {
			counted = tokens
		}
		switch {
		case q.generation.request.Prefilled:
			if !s.allocate(q) {
				return
			}
			s.promptTokens += int64(q.pending)
			q.pending = 0
		case counted > s.config.MaxBatchedTokens:
			return
		default:
			tokens += own
			planned += q.blocks.Blocks()
		}
		s.queue, s.batch = s.queue[1:], append(s.batch, q)
	}
}

// prefill computes prompts in order within the token budget of a step, while
// decoding sequences wait, and returns which parts of them.
func (s *scheduler) prefill(decoding int) []timing.Part {
	var parts []timing.Part
	budget := s.config.MaxBatchedTokens
	if decoding > 0 {
		budget = max(1, s.config.BesideDecode)
	}
	for i := 0; i < len(s.batch) && budget > 0; i++ {
		q := s.batch[i]
		if q.pending == 0 {
			continue
		}
		if q.pending < 0 && !s.allocate(q) {
			// Admission keeps this from happening but for sequences that grew
			// since; the newcomer goes back to the head of the line.
			s.batch = slices.Delete(s.batch, i, i+1)
			s.queue = append([]*sequence{q}, s.queue...)
			break
		}
		tokens := min(q.pending, budget)
		parts = append(parts, timing.Part{Fresh: tokens, Before: q.blocks.Len() - q.pending})
		q.pending -= tokens
		budget -= tokens
		s.promptTokens += int64(tokens)
	}
	return parts
}

// allocate takes the blocks of the whole prompt, at its first chunk. The last
// token is always computed: its result is the first token of the answer.
func (s *scheduler) allocate(q *sequence) bool {
	cached := min(q.blocks.Cached(s.cache), q.blocks.Len()-1)
	if !q.blocks.Allocate(s.cache) {
		return false
	}
	q.pending = q.blocks.Len() - cached
	q.generation.mu.Lock()
	q.generation.cached = cached
	q.generation.mu.Unlock()
	return true
}

// finish ends a step, at the moment it was to end: every sequence whose prompt is
// computed has one more token.
func (s *scheduler) finish(at time.Time) {
	// The batch may shrink while it is walked: preemption removes from it.
	for _, q := range slices.Clone(s.batch) {
		if q.pending != 0 || !slices.Contains(s.batch, q) {
			continue
		}
		request := q.generation.request
		token, _ := text.At(request.Seed, request.Offset+q.produced)
		for !q.blocks.Append(s.cache, token) {
			if len(s.batch) == 1 {
				// Alone and the cache is full: this is as long as it gets.
				s.leave(q, at)
				break
			}
			// The youngest gives way, as in vLLM. Were it the oldest, sequences
			// that do not fit together could take turns losing their work for ever.
			victim := s.batch[len(s.batch)-1]
			s.preempt(victim)
			if victim == q {
				break
			}
		}
		if !slices.Contains(s.batch, q) {
			continue
		}
		q.produced++
		s.outputTokens++
		if q.produced >= request.MaxTokens {
			s.leave(q, at)
		} else {
			q.generation.report(q.produced, false, at)
		}
	}
}

func (s *scheduler) remove(q *sequence) {
	if i := slices.Index(s.batch, q); i >= 0 {
		s.batch = slices.Delete(s.batch, i, i+1)
	}
}

func (s *scheduler) leave(q *sequence, at time.Time) {
	q.blocks.Free(s.cache)
	s.remove(q)
	q.generation.report(q.produced, true, at)
}

// preempt sends a sequence back to the head of the line, its work lost.
func (s *scheduler) preempt(q *sequence) {
	q.blocks.Free(s.cache)
	s.remove(q)
	s.queue = append([]*sequence{s.fresh(q.generation)}, s.queue...)
}
