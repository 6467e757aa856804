package frontend

import (
	"math"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/dynamo-operator/dynamo-operator/internal/mocker/discovery"
)

// metrics are the series planners, autoscalers and dashboards read.
type metrics struct {
	registry *prometheus.Registry

	started      *prometheus.CounterVec
	requests     *prometheus.CounterVec
	inflight     *prometheus.GaugeVec
	queued       *prometheus.GaugeVec
	disconnected prometheus.Gauge
	outputTokens *prometheus.CounterVec
	duration     *prometheus.HistogramVec
	firstToken   *prometheus.HistogramVec
	interToken   *prometheus.HistogramVec
	inputLength  *prometheus.HistogramVec
	outputLength *prometheus.HistogramVec
	cached       *prometheus.HistogramVec
	migrations   *prometheus.CounterVec
	modelGauges  map[string]*prometheus.GaugeVec
}

// buckets are n bounds: 0, then logarithmic steps to high, in two digits.
func buckets(low, high float64, n int) []float64 {
	out := []float64{0}
	for i := 1; i < n; i++ {
		x := math.Exp(math.Log(low) + (math.Log(high)-math.Log(low))*float64(i)/float64(n-1))
		if x = twoDigits(x); x > out[len(out)-1] {
			out = append(out, x)
		}
	}
	return out
}

func twoDigits(x float64) float64 {
	scale := math.Pow(10, 1-math.Floor(math.Log10(x)))
	return math.Round(x*scale) / scale
}

func newMetrics(prefix string) *metrics {
	name := func(n string) string { return prefix + "_" + n }
	counter := func(n, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name(n), Help: help}, labels)
	}
	gauge := func(n, help string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name(n), Help: help}, []string{"model"})
	}
	histogram := func(n, help string, b []float64) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name(n), Help: help, Buckets: b}, []string{"model"})
	}
	m := &metrics{
		registry:     prometheus.NewRegistry(),
		started:      counter("requests_started_total", "Requests that were accepted.", "model"),
		requests:     counter("requests_total", "Requests, by result.", "model", "endpoint", "request_type", "status"),
		inflight:     gauge("inflight_requests", "Requests under way."),
		queued:       gauge("queued_requests", "Requests without a first token yet."),
		disconnected: prometheus.NewGauge(prometheus.GaugeOpts{Name: name("disconnected_clients"), Help: "Clients that left before the end."}),
		outputTokens: counter("output_tokens_total", "Tokens produced.", "model"),
		duration:     histogram("request_duration_seconds", "Time of a whole request.", buckets(1, 256, 10)),
		firstToken:   histogram("time_to_first_token_seconds", "Time to the first token.", buckets(0.001, 480, 18)),
		interToken:   histogram("inter_token_latency_seconds", "Time between tokens.", buckets(0.001, 2, 13)),
		inputLength:  histogram("input_sequence_tokens", "Length of prompts.", buckets(50, 128000, 12)),
		outputLength: histogram("output_sequence_tokens", "Length of answers.", buckets(50, 32000, 10)),
		cached:       histogram("cached_tokens", "Prompt tokens found in a cache.", buckets(50, 128000, 12)),
		migrations:   counter("model_migration_total", "Requests moved to another worker.", "model", "migration_type"),
		modelGauges: map[string]*prometheus.GaugeVec{
			"total_kv_blocks": gauge("model_total_kv_blocks", "Blocks of key-value cache of a worker."), "max_num_seqs": gauge("model_max_num_seqs", "Sequences a worker batches."),
			"max_num_batched_tokens": gauge("model_max_num_batched_tokens", "Tokens a worker batches."), "context_length": gauge("model_context_length", "Longest sequence."),
			"kv_cache_block_size": gauge("model_kv_cache_block_size", "Tokens of a block."), "migration_limit": gauge("model_migration_limit", "How often a request may move."),
		},
	}
	m.registry.MustRegister(m.started, m.requests, m.inflight, m.queued, m.disconnected, m.outputTokens, m.duration, m.firstToken, m.interToken,
		m.inputLength, m.outputLength, m.cached, m.migrations)
	for _, g := range m.modelGauges {
		m.registry.MustRegister(g)
	}
	return m
}

// describe sets the gauges of a model; these alone carry the name as it is.
func (m *metrics) describe(card discovery.Card) {
	for name, value := range map[string]int{
		"total_kv_blocks": card.Runtime.TotalBlocks, "max_num_seqs": card.Runtime.MaxSequences,
		"max_num_batched_tokens": card.Runtime.MaxBatchedTokens, "context_length": card.ContextLength,
		"kv_cache_block_size": card.BlockSize, "migration_limit": card.MigrationLimit,
	} {
		m.modelGauges[name].WithLabelValues(card.DisplayName).Set(float64(value))
	}
}

// forget removes the gauges of a model nobody serves any more.
func (m *metrics) forget(model string) {
	for _, g := range m.modelGauges {
		g.DeleteLabelValues(model)
	}
}

// label is a model's name in all other series.
func label(model string) string { return strings.ToLower(model) }
