package worker

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/dynamo-operator/dynamo-operator/internal/mocker/engine"
)

// metrics are a worker's series: the component's own and, under the engine's
// names, how busy it is.
type metrics struct {
	registry *prometheus.Registry
	requests prometheus.Counter
	duration prometheus.Histogram
	inflight prometheus.Gauge
	received prometheus.Counter
	sent     prometheus.Counter
	errors   *prometheus.CounterVec
}

func newMetrics(c Config, started time.Time) *metrics {
	labels := prometheus.Labels{
		"dynamo_namespace": c.Address.Namespace, "dynamo_component": c.Address.Component,
		"dynamo_endpoint": c.Address.Endpoint, "model": c.Model,
	}
	name := func(n string) string { return "dynamo_component_" + n }
	m := &metrics{
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewCounter(prometheus.CounterOpts{Name: name("requests_total"), Help: "Requests handled.", ConstLabels: labels}),
		duration: prometheus.NewHistogram(prometheus.HistogramOpts{Name: name("request_duration_seconds"), Help: "Time to handle a request.", ConstLabels: labels, Buckets: prometheus.DefBuckets}),
		inflight: prometheus.NewGauge(prometheus.GaugeOpts{Name: name("inflight_requests"), Help: "Requests being handled.", ConstLabels: labels}),
		received: prometheus.NewCounter(prometheus.CounterOpts{Name: name("request_bytes_total"), Help: "Bytes of requests.", ConstLabels: labels}),
		sent:     prometheus.NewCounter(prometheus.CounterOpts{Name: name("response_bytes_total"), Help: "Bytes of responses.", ConstLabels: labels}),
		errors:   prometheus.NewCounterVec(prometheus.CounterOpts{Name: name("errors_total"), Help: "Requests that failed, by kind.", ConstLabels: labels}, []string{"error_type"}),
	}
	uptime := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: name("uptime_seconds"), Help: "Time since the process began.",
		ConstLabels: prometheus.Labels{"dynamo_namespace": c.Address.Namespace, "dynamo_component": c.Address.Component},
	}, func() float64 { return time.Since(started).Seconds() })
	m.registry.MustRegister(m.requests, m.duration, m.inflight, m.received, m.sent, m.errors, uptime)
	return m
}

// engineNames are what each engine calls its load.
var engineNames = map[string]struct{ running, waiting, usage, label string }{
	"vllm":   {"vllm:num_requests_running", "vllm:num_requests_waiting", "vllm:kv_cache_usage_perc", "model_name"},
	"mocker": {"vllm:num_requests_running", "vllm:num_requests_waiting", "vllm:kv_cache_usage_perc", "model_name"},
	"sglang": {"sglang:num_running_reqs", "sglang:num_queue_reqs", "sglang:token_usage", "model_name"},
	"trtllm": {"trtllm_num_requests_running", "trtllm_num_requests_waiting", "trtllm_kv_cache_utilization", "model_name"},
}

// watch adds the engine's load.
func (m *metrics) watch(c Config, e *engine.Engine) {
	names, ok := engineNames[c.Backend]
	if !ok {
		return
	}
	gauge := func(name, help string, value func(engine.Stats) float64) {
		m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: name, Help: help, ConstLabels: prometheus.Labels{names.label: c.Model},
		}, func() float64 { return value(e.Stats()) }))
	}
	gauge(names.running, "Sequences in the batch.", func(s engine.Stats) float64 { return float64(s.Running) })
	gauge(names.waiting, "Sequences in line.", func(s engine.Stats) float64 { return float64(s.Waiting) })
	gauge(names.usage, "Share of the key-value cache in use.", func(s engine.Stats) float64 {
		return float64(s.ActiveBlocks) / float64(max(1, s.TotalBlocks))
	})
}
