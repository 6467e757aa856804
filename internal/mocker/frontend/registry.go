package frontend

import (
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/dynamo-operator/dynamo-operator/internal/mocker/discovery"
	"github.com/dynamo-operator/dynamo-operator/internal/mocker/route"
)

// target is a worker that serves a model.
type target struct {
	instance uint64
	url      string
	blocks   int
}

// model is a served model with its workers.
type model struct {
	// card is that of the workers which answer, prefillCard of the others. Each
	// group must agree within itself; a prefill engine may be sized differently.
	card, prefillCard *discovery.Card
	since             time.Time
	decode            []target
	prefill           []target
	// Routers outlive changes of the workers: they remember who knows what.
	decodeRouter, prefillRouter *route.Router
}

// servable says whether somebody can produce an answer.
func (m *model) servable() bool { return len(m.decode) > 0 }

// registry follows discovery.
type registry struct {
	config  Config
	metrics *metrics
	log     *slog.Logger

	mu     sync.RWMutex
	models map[string]*model
	set    discovery.Set
	// refused remembers what was warned of, so that it is said once.
	refused map[string]bool
}

func newRegistry(config Config, m *metrics, log *slog.Logger) *registry {
	return &registry{config: config, metrics: m, log: log, models: map[string]*model{}, refused: map[string]bool{}}
}

// update takes in a new state of the graph.
func (r *registry) update(set discovery.Set) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.set = set
	before := r.models
	r.models = map[string]*model{}
	// Workers known before come first: it is the newcomer that must fit.
	for _, known := range []bool{true, false} {
		for _, key := range slices.Sorted(maps.Keys(set.Models)) {
			m := set.Models[key]
			endpoint, ok := set.Endpoints[m.Address.Key()]
			if !ok || !r.config.allowed(m.Namespace) || before[m.Card.DisplayName].serves(m) != known {
				continue
			}
			r.add(before[m.Card.DisplayName], m, endpoint)
		}
	}
	for name := range before {
		if _, ok := r.models[name]; !ok {
			r.log.Info("model removed", "model", name)
			r.metrics.forget(name)
		}
	}
}

// serves says whether an instance was already serving the model.
func (m *model) serves(entry discovery.Model) bool {
	if m == nil {
		return false
	}
	same := func(t target) bool { return t.instance == entry.Instance }
	return slices.ContainsFunc(m.decode, same) || slices.ContainsFunc(m.prefill, same)
}

func (r *registry) add(before *model, entry discovery.Model, endpoint discovery.Endpoint) {
	name := entry.Card.DisplayName
	m, ok := r.models[name]
	if !ok {
		m = &model{since: time.Now(), decodeRouter: route.New(r.config.Routing), prefillRouter: route.New(r.config.Routing)}
		if before != nil {
			m.since, m.decodeRouter, m.prefillRouter = before.since, before.decodeRouter, before.prefillRouter
		} else {
			r.log.Info("model added", "model", name, "type", entry.Card.ModelType)
		}
		r.models[name] = m
	}
	card, targets := &m.card, &m.decode
	if entry.Card.ModelType.Has(discovery.Prefill) {
		card, targets = &m.prefillCard, &m.prefill
	}
	if *card == nil {
		*card = &entry.Card
		if card == &m.card {
			r.metrics.describe(entry.Card)
		}
	} else if !(*card).Fit(entry.Card) {
		if !r.refused[entry.Key()] {
			r.refused[entry.Key()] = true
			r.log.Warn("worker refused: its model card differs from the one in use", "model", name, "worker", entry.Key())
		}
		return
	}
	*targets = append(*targets, target{
		instance: entry.Instance, url: endpoint.Transport.HTTP,
		blocks: entry.Card.Runtime.TotalBlocks * max(1, entry.Card.Runtime.DataParallelSize),
	})
}

// find returns a model that can be asked.
func (r *registry) find(name string) (*model, bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	m, ok := r.models[name]
	return m, ok && m.servable()
}

// any says whether some model has the flag.
func (r *registry) any(flag discovery.ModelType) bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	for _, m := range r.models {
		if m.servable() && m.card.ModelType.Has(flag) {
			return true
		}
	}
	return false
}

// list returns the servable models by name.
func (r *registry) list() []*model {
	r.mu.RLock()
	defer r.mu.RUnlock()
	var out []*model
	for _, name := range slices.Sorted(maps.Keys(r.models)) {
		if r.models[name].servable() {
			out = append(out, r.models[name])
		}
	}
	return out
}

// endpoints returns all endpoints of the namespaces served.
func (r *registry) endpoints() []discovery.Endpoint {
	r.mu.RLock()
	defer r.mu.RUnlock()
	out := []discovery.Endpoint{}
	for _, key := range slices.Sorted(maps.Keys(r.set.Endpoints)) {
		if e := r.set.Endpoints[key]; r.config.allowed(e.Namespace) {
			out = append(out, e)
		}
	}
	return out
}
