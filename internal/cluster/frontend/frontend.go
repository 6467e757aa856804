// Package frontend asks the frontends of graphs to which workers they send requests. It
// decides nothing, and keeps nobody waiting.
package frontend

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/dynamo-operator/dynamo-operator/internal/cluster/podhttp"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/world"
)

const (
	// answerLimit is far more than all namespaces of a model that a frontend knows.
	answerLimit = 1 << 20
	// modelLimit bounds how many models of one graph are asked for.
	modelLimit = 32
	// timeout bounds one poll of one frontend.
	timeout = 2 * time.Second
	// interval is how often a graph is polled at most, and fresh how long an answer
	// counts.
	interval = 500 * time.Millisecond
	fresh    = 5 * time.Second
	// places is how many graphs are polled at once.
	places = 32
)

// Poller keeps what the frontends of graphs said last. Asking it takes no time: who asks
// has the next poll begin, and gets the answer of the last.
type Poller struct {
	pods *podhttp.Client
	// ctx ends all polls; it is the life of the process, not of a request.
	ctx  context.Context
	room chan struct{}

	mu     sync.Mutex
	graphs map[types.NamespacedName]*answers
}

// answers are those of one graph's frontends.
type answers struct {
	asked     []netip.AddrPort
	at        time.Time
	admission world.Admission
	polling   bool
}

// NewPoller makes a Poller whose polls end with ctx. The proxy is the only one that it
// will use; nil means to go straight, whatever the environment says.
func NewPoller(ctx context.Context, proxy *url.URL) *Poller {
	return &Poller{ctx: ctx, room: make(chan struct{}, places), graphs: map[types.NamespacedName]*answers{}, pods: podhttp.New(proxy)}
}

// Ask returns what the frontends of a graph said a moment ago, and has them asked again.
// It is not known before they have answered, nor where all of them are others by now.
func (p *Poller) Ask(graph types.NamespacedName, frontends []netip.AddrPort, models []string, now time.Time) world.Admission {
	if p == nil || len(frontends) == 0 {
		return world.Admission{}
	}
	frontends = slices.SortedFunc(slices.Values(frontends), netip.AddrPort.Compare)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.forget(now)
	a := p.graphs[graph]
	if a == nil {
		a = &answers{}
		p.graphs[graph] = a
	}
	if !a.polling && now.Sub(a.at) >= interval {
		select {
		case p.room <- struct{}{}:
			a.polling = true
			go p.poll(a, frontends, slices.Clone(models))
		default: // others are asked first
		}
	}
	if now.Sub(a.at) > fresh || !slices.ContainsFunc(a.asked, func(f netip.AddrPort) bool { return slices.Contains(frontends, f) }) {
		return world.Admission{}
	}
	// One that comes or goes does not make unknown what the others have said: they are
	// asked together in a moment.
	return a.admission
}

// forget drops graphs that nobody asks for any more.
func (p *Poller) forget(now time.Time) {
	for graph, a := range p.graphs {
		if !a.polling && now.Sub(a.at) > 100*fresh {
			delete(p.graphs, graph)
		}
	}
}

// poll asks every frontend of a graph at the same time.
func (p *Poller) poll(a *answers, frontends []netip.AddrPort, models []string) {
	ctx, cancel := context.WithTimeout(p.ctx, timeout)
	defer cancel()
	all := make([]world.Admission, len(frontends))
	var wait sync.WaitGroup
	for i, frontend := range frontends {
		wait.Go(func() {
			if said, err := p.one(ctx, frontend, models); err == nil {
				all[i] = said
			}
		})
	}
	wait.Wait()
	least := all[0]
	for _, one := range all[1:] {
		least = least.Merge(one)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	a.asked, a.at, a.admission, a.polling = frontends, time.Now(), least, false
	<-p.room
}

// one asks a frontend for the workers of each model that it lists or that is expected.
func (p *Poller) one(ctx context.Context, frontend netip.AddrPort, models []string) (world.Admission, error) {
	var listed struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	if _, err := p.get(ctx, frontend, "/v1/models", &listed); err != nil {
		return world.Admission{}, err
	}
	served := map[string]bool{}
	for _, m := range listed.Data {
		served[m.ID] = true
		models = append(models, m.ID)
	}
	slices.Sort(models)
	models = slices.Compact(models)
	if len(models) > modelLimit {
		return world.Admission{}, fmt.Errorf("it serves more than %d models", modelLimit)
	}
	said := world.Admission{Known: true, Workers: map[string]map[string]map[string]int{}}
	for _, model := range models {
		var answer struct {
			Namespaces []struct {
				Namespace string         `json:"namespace"`
				Workers   map[string]int `json:"workers"`
			} `json:"namespaces"`
		}
		status, err := p.get(ctx, frontend, "/v1/models/"+model+"/ready", &answer)
		switch {
		case status == http.StatusNotFound && served[model]:
			return world.Admission{}, errors.New("it cannot tell: its runtime is older than 1.3")
		case status == http.StatusNotFound:
			continue
		case err != nil:
			return world.Admission{}, err
		}
		said.Workers[model] = map[string]map[string]int{}
		for _, n := range answer.Namespaces {
			said.Workers[model][n.Namespace] = n.Workers
		}
	}
	return said, nil
}

func (p *Poller) get(ctx context.Context, frontend netip.AddrPort, path string, into any) (status int, err error) {
	status, text, err := p.pods.Get(ctx, frontend.Addr(), frontend.Port(), path, answerLimit)
	if err != nil {
		return status, err
	}
	return status, json.Unmarshal(text, into)
}
