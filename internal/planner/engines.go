package planner

import (
	"context"
	"sync"
	"time"

	"github.com/dynamo-operator/dynamo-operator/internal/core/planner/decision"
	"github.com/dynamo-operator/dynamo-operator/internal/core/planner/observation"
	"github.com/dynamo-operator/dynamo-operator/internal/planner/kube"
	"github.com/dynamo-operator/dynamo-operator/internal/planner/role"
	"github.com/dynamo-operator/dynamo-operator/internal/planner/scrape"
)

// engines asks engines how busy they are, while decisions are made by what they told last: a
// worker that is slow to answer would delay them all. The zero value has asked nobody.
type engines struct {
	asking sync.Mutex // held while they are asked
	mu     sync.Mutex // of what they told
	at     time.Duration
	told   [decision.Roles]observation.Engines
}

// ask has those of both roles asked, unless they still are.
func (e *engines) ask(ctx context.Context, s *scrape.Scraper, at time.Duration, g *kube.Graph, parts role.Components, places kube.Places) {
	if !e.asking.TryLock() {
		return
	}
	ctx = context.WithoutCancel(ctx) // of a tick, which ends before
	go func() {
		defer e.asking.Unlock()
		var told [decision.Roles]observation.Engines
		var all sync.WaitGroup
		for i, component := range parts.Scaled {
			if component != nil {
				workers, each := places.Workers[component.Name], listed(*component, g.Status.Services[component.Name].ComponentKind)
				all.Go(func() {
					told[i] = s.Engines(ctx, workers)
					told[i].Asked = (len(workers) + each - 1) / each // of a replica one tells
				})
			}
		}
		all.Wait()
		e.mu.Lock()
		defer e.mu.Unlock()
		e.at, e.told = at, told
	}()
}

// last is what they told, if they were asked less than two ticks ago.
func (e *engines) last(now, tick time.Duration) [decision.Roles]observation.Engines {
	e.mu.Lock()
	defer e.mu.Unlock()
	if now-e.at >= 2*tick {
		return [decision.Roles]observation.Engines{}
	}
	return e.told
}
