package frontend

import (
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dynamo-operator/dynamo-operator/internal/mocker/discovery"
)

// target is a worker that serves a model.
type target struct {
	instance uint64
	url      string
	blocks   int
	kind     discovery.WorkerType
}

// model is a served model with its workers.
type model struct {
	// card is that of the workers which answer, in the first set that has any.
	card  *discovery.Card
	since time.Time
	sets  []*workerSet // by namespace
}

// servable says whether somebody can produce an answer, or could if the others
// were there whom it needs.
func (m *model) servable() bool { return m.card != nil }

// complete says whether a request would be served.
func (m *model) complete() bool { return slices.ContainsFunc(m.sets, (*workerSet).complete) }

func (m *model) listing() map[string]any {
	return map[string]any{"id": m.card.DisplayName, "object": "model", "created": m.since.Unix(), "owned_by": "nvidia"}
}

// set returns the set of a namespace; nil if there is none.
func (m *model) set(namespace string) *workerSet {
	if m == nil {
		return nil
	}
	for _, s := range m.sets {
		if s.namespace == namespace {
			return s
		}
	}
	return nil
}

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
	r.settle()
	for name := range before {
		if _, ok := r.models[name]; !ok {
			r.log.Info("model removed", "model", name)
			r.metrics.forget(name)
		}
	}
}

// serves says whether an instance was already serving the model.
func (m *model) serves(entry discovery.Model) bool {
	return m != nil && slices.ContainsFunc(m.sets, func(s *workerSet) bool { return s.has(entry.Instance) })
}

func (r *registry) add(before *model, entry discovery.Model, endpoint discovery.Endpoint) {
	name := entry.Card.DisplayName
	m, ok := r.models[name]
	if !ok {
		m = &model{since: time.Now()}
		if before != nil {
			m.since = before.since
		} else {
			r.log.Info("model added", "model", name, "type", entry.Card.ModelType)
		}
		r.models[name] = m
	}
	namespace := ""
	if r.config.Prefix != "" {
		namespace = entry.Namespace
	}
	set := m.set(namespace)
	if set == nil {
		set = newWorkerSet(namespace, before.set(namespace), r.config.Routing)
		m.sets = append(m.sets, set)
	}
	if !set.add(entry, endpoint) && !r.refused[entry.Key()] {
		r.refused[entry.Key()] = true
		r.log.Warn("worker refused: its model card differs from the one in use", "model", name, "worker", entry.Key())
	}
}

// settle says of every set what it lacks. What is there is counted over all that
// is made of one model: adapters are on the workers that answer only.
func (r *registry) settle() {
	type source struct{ namespace, path string }
	there := map[source]map[discovery.WorkerType]bool{}
	each := func(f func(s *workerSet, types map[discovery.WorkerType]bool)) {
		for _, m := range r.models {
			for _, s := range m.sets {
				key := source{s.namespace, s.source()}
				if there[key] == nil {
					there[key] = map[discovery.WorkerType]bool{}
				}
				f(s, there[key])
			}
		}
	}
	each(func(s *workerSet, types map[discovery.WorkerType]bool) {
		for kind := range s.workers() {
			types[kind] = true
		}
	})
	each(func(s *workerSet, types map[discovery.WorkerType]bool) { s.missing = s.lacks(types) })
	for _, m := range r.models {
		slices.SortFunc(m.sets, func(a, b *workerSet) int { return strings.Compare(a.namespace, b.namespace) })
		for _, s := range m.sets {
			if m.card == nil && s.card != nil {
				m.card = s.card
				r.metrics.describe(*s.card)
			}
		}
	}
}

// sets returns the sets of a model, whether they serve or not.
func (r *registry) sets(name string) ([]*workerSet, bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	m, ok := r.models[name]
	if !ok {
		return nil, false
	}
	return m.sets, true
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

// list returns the models that a request would be served of, by name.
func (r *registry) list() []*model {
	r.mu.RLock()
	defer r.mu.RUnlock()
	var out []*model
	for _, name := range slices.Sorted(maps.Keys(r.models)) {
		if r.models[name].complete() {
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
