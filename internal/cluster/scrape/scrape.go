// Package scrape reads what workers have counted, of a candidate and of the stable
// generation at the same time. It judges nothing, and keeps nobody waiting.
package scrape

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/dynamo-operator/dynamo-operator/internal/cluster/podhttp"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/analysis"
)

const (
	path = "/metrics"
	// answerLimit is several times what an engine with all of its series tells.
	answerLimit = 4 << 20
	// podLimit is how many pods of one comparison are asked: the others are like them.
	podLimit = 64
	// timeout bounds one look, interval is how often there is one.
	timeout  = 5 * time.Second
	interval = 15 * time.Second
	// places is how many comparisons are looked at at once, asking how many pods of one.
	places, asking = 8, 16
	// kept is how long a series outlives the last question for it.
	kept = 10 * time.Minute
)

// Scraper keeps what was seen of each comparison. Asking it takes no time: who asks has
// the next look begin, and gets what was seen until the last. After a restart of the
// operator a series begins again.
type Scraper struct {
	pods *podhttp.Client
	// ctx ends all looks; it is the life of the process, not of a request.
	ctx  context.Context
	room chan struct{}

	mu   sync.Mutex
	seen map[comparison]*course
}

// comparison is one of a candidate with a stable generation.
type comparison struct {
	graph                   types.NamespacedName
	cell, candidate, stable string
	revision                int64
}

// course is what was seen of one.
type course struct {
	series         analysis.Series
	looked, wanted time.Time
	looking        bool
}

// New makes a Scraper whose looks end with ctx. The proxy is the only one that it will
// use; nil means to go straight.
func New(ctx context.Context, proxy *url.URL) *Scraper {
	return &Scraper{pods: podhttp.New(proxy), ctx: ctx, room: make(chan struct{}, places), seen: map[comparison]*course{}}
}

// Ask returns what was seen of comparisons of a graph, by cell, and looks again if it is
// time to.
func (s *Scraper) Ask(graph types.NamespacedName, all []analysis.Comparison, now time.Time) map[string]analysis.Series {
	if s == nil || len(all) == 0 {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forget(now)
	found := map[string]analysis.Series{}
	for _, c := range all {
		key := comparison{graph, c.Cell, c.Candidate, c.Stable, c.Revision}
		of := s.seen[key]
		if of == nil {
			of = &course{}
			s.seen[key] = of
		}
		of.wanted = now
		found[c.Cell] = of.series
		if of.looking || now.Sub(of.looked) < interval {
			continue
		}
		select {
		case s.room <- struct{}{}:
			of.looking = true
			go s.look(of, c.Pods)
		default: // others are looked at first
		}
	}
	return found
}

// forget drops series that nobody asks for any more.
func (s *Scraper) forget(now time.Time) {
	for key, of := range s.seen {
		if !of.looking && now.Sub(of.wanted) > kept {
			delete(s.seen, key)
		}
	}
}

// look asks the pods of both sides at the same time. One that does not answer is left
// out of this look.
func (s *Scraper) look(of *course, pods []analysis.Pod) {
	ctx, cancel := context.WithTimeout(s.ctx, timeout)
	defer cancel()
	pods = sample(pods)
	answers := make([]*analysis.Counters, len(pods))
	at := time.Now()
	turn := make(chan struct{}, asking)
	var all sync.WaitGroup
	for i, pod := range pods {
		all.Go(func() {
			turn <- struct{}{}
			defer func() { <-turn }()
			if counted, err := s.one(ctx, pod); err == nil {
				answers[i] = &counted
			}
		})
	}
	all.Wait()
	seen := analysis.Look{At: at, Candidate: map[string]analysis.Counters{}, Stable: map[string]analysis.Counters{}}
	for i, pod := range pods {
		side := seen.Stable
		if pod.Candidate {
			side = seen.Candidate
		}
		if answers[i] != nil {
			side[pod.UID] = pod.Duty.Of(*answers[i])
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	of.series, of.looked, of.looking = of.series.Observe(seen), at, false
	<-s.room
}

// sample takes up to half of what may be asked from each side, the same ones every time
// as long as there are the same.
func sample(pods []analysis.Pod) []analysis.Pod {
	var some []analysis.Pod
	taken := map[bool]int{}
	for _, p := range pods {
		if taken[p.Candidate] < podLimit/2 {
			taken[p.Candidate]++
			some = append(some, p)
		}
	}
	return some
}

func (s *Scraper) one(ctx context.Context, pod analysis.Pod) (analysis.Counters, error) {
	status, text, err := s.pods.Get(ctx, pod.Address, pod.Port, path, answerLimit)
	if err != nil {
		return analysis.Counters{}, err
	}
	if status != http.StatusOK {
		return analysis.Counters{}, fmt.Errorf("it answers %d", status)
	}
	return analysis.Parse(bytes.NewReader(text))
}
