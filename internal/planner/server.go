package planner

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/dynamo-operator/dynamo-operator/internal/core/planner/capacity"
	"github.com/dynamo-operator/dynamo-operator/internal/core/planner/decision"
	"github.com/dynamo-operator/dynamo-operator/internal/core/planner/observation"
	"github.com/dynamo-operator/dynamo-operator/internal/core/planner/trace"
)

// gauges are the original's, in its units: milliseconds for times of tokens.
var gauges = []string{
	"num_p_workers", "num_d_workers", "observed_ttft", "observed_itl", "observed_request_rate", "observed_request_duration",
	"observed_isl", "observed_osl", "p_correction_factor", "d_correction_factor", "predicted_request_rate", "predicted_isl",
	"predicted_osl", "predicted_num_p", "predicted_num_d", "gpu_hours",
}

// metrics are the same numbers under the names of both revisions, and how often what
// was decided.
type metrics struct {
	registry  *prometheus.Registry
	gauges    map[string][]prometheus.Gauge
	decisions *prometheus.CounterVec
	blind     prometheus.Gauge
	gpuHours  float64
	usage     *prometheus.GaugeVec
	// caches are the shares of caches in use that were told last, by role.
	caches map[string]float64
}

func newMetrics() *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(), gauges: map[string][]prometheus.Gauge{},
		decisions: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "dynamo_planner_decisions_total", Help: "Decisions that differ from the one before, by reason."}, []string{"reason"}),
		blind:     prometheus.NewGauge(prometheus.GaugeOpts{Name: "dynamo_planner_blind_ticks", Help: "Ticks in a row at which nothing could be seen."}),
	}
	m.usage = prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "dynamo_planner_kv_cache_usage", Help: "Share of the key-value cache in use, the mean of replicas that tell, by role."}, []string{"role"})
	m.registry.MustRegister(m.decisions, m.blind, m.usage, collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	for _, name := range gauges {
		for _, prefix := range []string{"planner:", "dynamo_planner_"} {
			g := prometheus.NewGauge(prometheus.GaugeOpts{Name: prefix + name, Help: "As the original's planner reports it."})
			m.gauges[name] = append(m.gauges[name], g)
			m.registry.MustRegister(g)
		}
	}
	return m
}

func (m *metrics) set(name string, value float64) {
	for _, g := range m.gauges[name] {
		g.Set(value)
	}
}

// timed shows what requests got, as frontends see it and not as decisions take it.
func (m *metrics) timed(o capacity.Observation) {
	if o.Requests > 0 {
		m.set("observed_ttft", 1e3*o.FirstToken)
		m.set("observed_itl", 1e3*o.Token)
	}
}

// busy shows what engines tell of their caches.
func (m *metrics) busy(engines [decision.Roles]observation.Engines) {
	m.usage.Reset()
	m.caches = map[string]float64{}
	for role, e := range engines {
		if share, told := e.Cache(); told {
			m.caches[decision.Role(role).String()] = share
			m.usage.WithLabelValues(decision.Role(role).String()).Set(share)
		}
	}
}

// corrected shows by how much times are taken to be longer than the profile says.
func (m *metrics) corrected(prefill, decode float64) {
	m.set("p_correction_factor", prefill)
	m.set("d_correction_factor", decode)
}

// observe shows one tick.
func (m *metrics) observe(c decision.Config, s decision.Snapshot, d decision.Decision, tick time.Duration) {
	m.blind.Set(float64(d.BlindFor))
	p, e := s.Roles[decision.Prefill], s.Roles[decision.Decode]
	m.gpuHours += float64((p.Ready+len(p.Starting)+p.Draining)*c.GPUs[decision.Prefill]+(e.Ready+len(e.Starting)+e.Draining)*c.GPUs[decision.Decode]) * tick.Hours()
	for name, value := range map[string]float64{
		"num_p_workers": float64(p.Ready), "num_d_workers": float64(e.Ready), "gpu_hours": m.gpuHours,
		"predicted_request_rate": d.Forecast.Rate, "predicted_num_p": float64(d.Replicas[decision.Prefill]), "predicted_num_d": float64(d.Replicas[decision.Decode]),
		"observed_request_rate": d.Forecast.Level,
	} {
		m.set(name, value)
	}
	if s.Lengths.Input > 0 {
		for _, of := range []string{"observed_", "predicted_"} {
			m.set(of+"isl", s.Lengths.Input)
			m.set(of+"osl", s.Lengths.Output)
		}
	}
}

// stalled is after how long without a tick a planner is not well.
const stalled = time.Minute

// Handler answers who asks for metrics, decisions, what came, or health.
func (p *Planner) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(p.metrics.registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /decisions", func(w http.ResponseWriter, _ *http.Request) {
		p.mu.Lock()
		records := p.journal.Records()
		p.mu.Unlock()
		p.tell(w, records, "  ")
	})
	mux.HandleFunc("GET /bins", func(w http.ResponseWriter, _ *http.Request) {
		p.mu.Lock()
		came := trace.Bins{Graph: p.Config.Graph, Tick: p.Config.Tick.Seconds(), Bins: slices.Clone(p.came.Bins)}
		p.mu.Unlock()
		p.tell(w, came, "")
	})
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		p.mu.Lock()
		late := !p.Config.Idle && !p.ticked.IsZero() && p.Now().Sub(p.ticked) > stalled
		p.mu.Unlock()
		if late {
			http.Error(w, "no tick for "+stalled.String(), http.StatusServiceUnavailable)
			return
		}
		_, _ = w.Write([]byte("ok\n"))
	})
	return mux
}

// tell answers with what there is as JSON.
func (p *Planner) tell(w http.ResponseWriter, what any, indent string) {
	w.Header().Set("Content-Type", "application/json")
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", indent)
	if err := encoder.Encode(what); err != nil {
		p.Log.Debug("a client left", "error", err)
	}
}

// Status answers the probes of planners of 1.x.
func Status(env map[string]string) http.Handler {
	well := func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"status":"ready"}`)) }
	mux := http.NewServeMux()
	for name, path := range map[string]string{"DYN_SYSTEM_HEALTH_PATH": "/health", "DYN_SYSTEM_LIVE_PATH": "/live"} {
		if env[name] != "" {
			path = env[name]
		}
		mux.HandleFunc("GET "+path, well)
	}
	return mux
}

// Serve answers on a port until ctx ends.
func Serve(ctx context.Context, host string, port int, handler http.Handler, log *slog.Logger) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort(host, strconv.Itoa(port)))
	if err != nil {
		return err
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 30 * time.Second, WriteTimeout: 30 * time.Second, MaxHeaderBytes: 64 << 10}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	go func() {
		if err := server.Serve(listener); err != nil && !errors.Is(err, http.ErrServerClosed) {
			log.Error("serving failed", "error", err)
		}
	}()
	return nil
}
