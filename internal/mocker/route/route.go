// Package route picks the worker for a request: in turn, at random, or by what
// each worker's key-value cache probably holds. It knows instance ids and block
// hashes; who the instances are and how they are reached is not its business.
//
// There is no event plane here: what a worker's cache holds is inferred from
// the requests this very router sent it.
package route

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/dynamo-operator/dynamo-operator/internal/mocker/kv"
)

// Mode is how to pick.
type Mode string

// The modes.
const (
	RoundRobin Mode = "round-robin"
	Random     Mode = "random"
	KV         Mode = "kv"
	// Direct leaves the choice to whoever sends the request; the router takes
	// turns among those who are left to choose from.
	Direct Mode = "direct"
)

// Options tune a router.
type Options struct {
	Mode Mode
	// OverlapWeight weighs blocks to compute against blocks in use; 1 by default.
	OverlapWeight float64
	// Temperature 0 takes the best worker, more spreads over the good ones.
	Temperature float64
}

// Validate refuses modes that do not exist.
func (o Options) Validate() error {
	if !slices.Contains([]Mode{RoundRobin, Random, KV, Direct}, o.Mode) {
		return fmt.Errorf("router mode %q: want round-robin, random, kv or direct", o.Mode)
	}
	return nil
}

// Router keeps a view of every worker it sends requests to.
type Router struct {
	options Options

	mu    sync.Mutex
	turn  int
	views map[uint64]*kv.Manager
}

// New returns a router.
func New(options Options) *Router {
	return &Router{options: options, views: map[uint64]*kv.Manager{}}
}

// Candidate is a worker to choose from, with the size of its cache in blocks.
type Candidate struct {
	Instance uint64
	Blocks   int
}

// defaultBlocks is assumed of workers that do not say.
const defaultBlocks = 16384

// Choose picks one of candidates for a prompt made of blocks, and charges it
// with the request until the returned function is called. There must be at
// least one candidate.
func (r *Router) Choose(candidates []Candidate, blocks []kv.ID) (Candidate, func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.retain(candidates)
	var chosen Candidate
	switch r.options.Mode {
	case Random:
		chosen = candidates[rand.IntN(len(candidates))]
	case KV:
		chosen = r.cheapest(candidates, blocks)
	default:
		chosen = candidates[r.turn%len(candidates)]
	}
	r.turn++
	return chosen, r.charge(chosen, blocks)
}

// Charge books a request on a worker that was chosen elsewhere.
func (r *Router) Charge(chosen Candidate, blocks []kv.ID) func() {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.charge(chosen, blocks)
}

func (r *Router) charge(chosen Candidate, blocks []kv.ID) func() {
	view := r.view(chosen)
	own := view.Private() // the block the answer begins in
	var used []kv.ID
	for _, id := range append([]kv.ID{own}, blocks...) {
		if view.Use(id) {
			used = append(used, id)
		}
	}
	var once sync.Once
	return func() {
		once.Do(func() {
			r.mu.Lock()
			defer r.mu.Unlock()
			for _, id := range used {
				if id == own {
					view.Destroy(id)
				} else {
					view.Release(id)
				}
			}
		})
	}
}

func (r *Router) view(c Candidate) *kv.Manager {
	view, ok := r.views[c.Instance]
	if !ok {
		blocks := c.Blocks
		if blocks <= 0 {
			blocks = defaultBlocks
		}
		view = kv.NewManager(blocks)
		r.views[c.Instance] = view
	}
	return view
}

// retain forgets workers that are gone.
func (r *Router) retain(candidates []Candidate) {
	if len(r.views) <= len(candidates) {
		return
	}
	for instance := range r.views {
		if !slices.ContainsFunc(candidates, func(c Candidate) bool { return c.Instance == instance }) {
			delete(r.views, instance)
		}
	}
}

// cheapest weighs the blocks a worker would have to compute against those it
// is busy with. Equals take turns.
func (r *Router) cheapest(candidates []Candidate, blocks []kv.ID) Candidate {
	costs := make([]float64, len(candidates))
	for i, c := range candidates {
		view := r.view(c)
		missing := len(blocks) - view.Known(blocks)
		costs[i] = r.options.OverlapWeight*float64(missing) + float64(view.Active())
	}
	if r.options.Temperature > 0 {
		return candidates[sample(costs, r.options.Temperature)]
	}
	best := -1
	for i := range candidates {
		at := (i + r.turn) % len(candidates)
		if best < 0 || costs[at] < costs[best] {
			best = at
		}
	}
	return candidates[best]
}

// sample draws an index, cheap ones more often: softmax of the negated costs,
// scaled by their spread.
func sample(costs []float64, temperature float64) int {
	low, high := slices.Min(costs), slices.Max(costs)
	if low == high {
		return rand.IntN(len(costs))
	}
	weights := make([]float64, len(costs))
	sum := 0.0
	for i, cost := range costs {
		weights[i] = math.Exp(-(cost - low) / (high - low) / temperature)
		sum += weights[i]
	}
	left := rand.Float64() * sum
	for i, weight := range weights {
		if left -= weight; left < 0 {
			return i
		}
	}
	return len(costs) - 1
}

// Load is the share of a worker's blocks in use by requests of this router.
func (r *Router) Load(c Candidate) float64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	view := r.view(c)
	return float64(view.Active()) / float64(view.Capacity())
}
