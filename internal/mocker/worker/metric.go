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
	// firstToken and interToken are the engine's; nil where it exports none.
	firstToken, interToken prometheus.Histogram
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

// engineSeries are what an engine calls its load and its latencies, and the bounds of
// the latter.
type engineSeries struct {
	running, waiting, usage, label string
	firstToken, interToken         string
	firstTokens, interTokens       []float64
}

var vllmSeries = engineSeries{
	"vllm:num_requests_running", "vllm:num_requests_waiting", "vllm:kv_cache_usage_perc", "model_name",
	"vllm:time_to_first_token_seconds", "vllm:inter_token_latency_seconds",
	[]float64{.001, .005, .01, .02, .04, .06, .08, .1, .25, .5, .75, 1, 2.5, 5, 7.5, 10, 20, 40, 80, 160, 640, 2560},
	[]float64{.01, .025, .05, .075, .1, .15, .2, .3, .4, .5, .75, 1, 2.5, 5, 7.5, 10, 20, 40, 80},
}

var engineNames = map[string]engineSeries{
	"vllm":   vllmSeries,
	"mocker": vllmSeries,
	"sglang": {
		"sglang:num_running_reqs", "sglang:num_queue_reqs", "sglang:token_usage", "model_name",
		"sglang:time_to_first_token_seconds", "sglang:inter_token_latency_seconds",
		[]float64{.1, .2, .4, .6, .8, 1, 2, 4, 6, 8, 10, 20, 40, 60, 80, 100, 200, 400},
		[]float64{.002, .004, .006, .008, .01, .015, .02, .025, .03, .035, .04, .06, .08, .1, .2, .4, .6, .8, 1, 2, 4, 6, 8},
	},
	"trtllm": {
		"trtllm_num_requests_running", "trtllm_num_requests_waiting", "trtllm_kv_cache_utilization", "model_name",
		"trtllm_time_to_first_token_seconds", "trtllm_time_per_output_token_seconds", vllmSeries.firstTokens, vllmSeries.interTokens,
	},
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
	histogram := func(name, help string, buckets []float64) prometheus.Histogram {
		h := prometheus.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets, ConstLabels: prometheus.Labels{names.label: c.Model}})
		m.registry.MustRegister(h)
		return h
	}
	m.firstToken = histogram(names.firstToken, "Time to the first token, in the engine.", names.firstTokens)
	m.interToken = histogram(names.interToken, "Time between tokens, in the engine.", names.interTokens)
	gauge(names.running, "Sequences in the batch.", func(s engine.Stats) float64 { return float64(s.Running) })
	gauge(names.waiting, "Sequences in line.", func(s engine.Stats) float64 { return float64(s.Waiting) })
	gauge(names.usage, "Share of the key-value cache in use.", func(s engine.Stats) float64 {
		return float64(s.ActiveBlocks) / float64(max(1, s.TotalBlocks))
	})
}

// produced notes that tokens were sent, so long after the last or, for the first, after
// the request.
func (m *metrics) produced(first bool, tokens int, took time.Duration) {
	of := m.interToken
	if first {
		of = m.firstToken
	}
	if of == nil {
		return
	}
	for range tokens {
		of.Observe(took.Seconds() / float64(tokens))
	}
}
