// Package frontend plays the graph's HTTP entrance: the OpenAI routes, health,
// metrics, and the choice of workers. It holds no model and computes nothing;
// an answer's words come from the worker it picked.
package frontend

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/dynamo-operator/dynamo-operator/internal/core/commandline"
	"github.com/dynamo-operator/dynamo-operator/internal/mocker/discovery"
	"github.com/dynamo-operator/dynamo-operator/internal/mocker/launch"
	"github.com/dynamo-operator/dynamo-operator/internal/mocker/wire"
)

// Frontend serves HTTP.
type Frontend struct {
	config     Config
	log        *slog.Logger
	store      discovery.Store
	metrics    *metrics
	registry   *registry
	dispatcher *dispatcher
	busy       *busyTable
	leaving    atomic.Bool
}

// New prepares a frontend that learns of workers from store.
func New(config Config, store discovery.Store, client *wire.Client, log *slog.Logger) *Frontend {
	m := newMetrics(config.MetricsPrefix)
	busy := &busyTable{byDefault: config.Busy, models: map[string]Thresholds{}}
	return &Frontend{
		config: config, log: log, store: store, metrics: m, busy: busy,
		registry:   newRegistry(config, m, log),
		dispatcher: &dispatcher{client: client, config: config, busy: busy, metrics: m, log: log},
	}
}

// Handler is all routes; Follow must run for models to appear.
func (f *Frontend) Handler() http.Handler {
	p := f.config.Paths
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+p.Live, f.live)
	mux.HandleFunc("GET "+p.Health, f.health)
	mux.Handle("GET "+p.Metrics, promhttp.HandlerFor(f.metrics.registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET "+p.Models, f.listModels)
	mux.HandleFunc("GET "+p.Models+"/{model...}", f.oneModel)
	mux.HandleFunc("POST "+p.Chat, f.generate(chatAPI))
	mux.HandleFunc("POST "+p.Completions, f.generate(completionAPI))
	mux.HandleFunc("POST "+p.Responses, f.generate(responseAPI))
	mux.HandleFunc("POST "+p.Embeddings, f.embed)
	mux.HandleFunc("GET /busy_threshold", f.busy.get)
	mux.HandleFunc("POST /busy_threshold", f.busy.post)
	return mux
}

// Follow keeps the models up to date until ctx ends.
func (f *Frontend) Follow(ctx context.Context) { f.store.Watch(ctx, f.registry.update) }

// Run serves until ctx ends, then drains. It returns the exit status.
func (f *Frontend) Run(ctx context.Context, address string) int {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		f.log.Error("frontend cannot listen", "error", err)
		return 1
	}
	background, stop := context.WithCancel(context.Background())
	defer stop()
	go f.Follow(background)
	server := &http.Server{Handler: f.Handler(), ReadHeaderTimeout: 10 * time.Second}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	f.log.Info("frontend serving", "address", listener.Addr().String(), "router", f.config.Routing.Mode, "namespace", f.config.Namespace, "prefix", f.config.Prefix)
	select {
	case err := <-failed:
		f.log.Error("frontend failed", "error", err)
		return 1
	case <-ctx.Done():
	}
	return f.drain(server)
}

// drain announces the end, keeps accepting while others take note, then
// finishes what is under way.
func (f *Frontend) drain(server *http.Server) int {
	f.leaving.Store(true)
	f.log.Info("frontend leaving", "grace", f.config.Grace)
	time.Sleep(f.config.Grace)
	ctx, cancel := context.WithTimeout(context.Background(), f.config.Drain)
	defer cancel()
	if err := server.Shutdown(ctx); err != nil {
		f.log.Error("requests still under way", "error", err)
		return 1
	}
	return 0
}

func (f *Frontend) live(w http.ResponseWriter, _ *http.Request) {
	if f.leaving.Load() {
		wire.WriteJSON(w, http.StatusServiceUnavailable, map[string]any{"status": "shutting_down", "message": "Service is shutting down"})
		return
	}
	wire.WriteJSON(w, http.StatusOK, map[string]any{"status": "live", "message": "Service is live"})
}

// health is 200 in any case: a frontend without workers is healthy.
func (f *Frontend) health(w http.ResponseWriter, _ *http.Request) {
	type instance struct {
		discovery.Address
		Transport discovery.Transport `json:"transport"`
	}
	uris, instances := []string{}, []instance{}
	for _, e := range f.registry.endpoints() {
		if !slices.Contains(uris, e.URI()) {
			uris = append(uris, e.URI())
		}
		instances = append(instances, instance{e.Address, e.Transport})
	}
	wire.WriteJSON(w, http.StatusOK, map[string]any{"status": "healthy", "endpoints": uris, "instances": instances})
}

func (f *Frontend) listModels(w http.ResponseWriter, _ *http.Request) {
	data := []any{}
	for _, m := range f.registry.list() {
		data = append(data, m.listing())
	}
	wire.WriteJSON(w, http.StatusOK, map[string]any{"object": "list", "data": data})
}

// oneModel answers for a single model, whose name may hold slashes, and for its
// readiness, whose path is the name with /ready behind it.
func (f *Frontend) oneModel(w http.ResponseWriter, r *http.Request) {
	name, readiness := strings.CutSuffix(r.PathValue("model"), "/ready")
	if readiness {
		f.ready(w, name)
		return
	}
	for _, m := range f.registry.list() {
		if m.card.DisplayName == name {
			wire.WriteJSON(w, http.StatusOK, m.listing())
			return
		}
	}
	problem(w, http.StatusNotFound, "Model not found")
}

// ready tells of each namespace that has workers of a model how many there are
// of each type, and what it lacks. 503 means that no namespace is complete.
func (f *Frontend) ready(w http.ResponseWriter, name string) {
	type namespace struct {
		Name    string                       `json:"namespace"`
		Ready   bool                         `json:"ready"`
		Workers map[discovery.WorkerType]int `json:"workers"`
		Missing []discovery.WorkerType       `json:"missing"`
	}
	sets, known := f.registry.sets(name)
	if !known {
		problem(w, http.StatusNotFound, "Model not found")
		return
	}
	status, all := http.StatusServiceUnavailable, []namespace{}
	for _, s := range sets {
		all = append(all, namespace{s.namespace, s.complete(), s.workers(), append([]discovery.WorkerType{}, s.missing...)})
		if s.complete() {
			status = http.StatusOK
		}
	}
	wire.WriteJSON(w, status, map[string]any{"model": name, "ready": status == http.StatusOK, "namespaces": all})
}

// Warnings are flags the mock does not know.
func Warnings(p launch.Program) []string {
	var out []string
	for _, flag := range commandline.NewLooseArgs(p.Args).Flags() {
		if !slices.Contains(knownFlags, flag) {
			out = append(out, fmt.Sprintf("flag not known to the mock engine: %s", flag))
		}
	}
	return out
}
