package metric

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// All metrics of the operator are made and registered here. A name that is taken is a
// mistake in the program.

const prefix = "dynamo_operator_"

// New registers what reconciles count.
func New(registry prometheus.Registerer) *Metrics {
	r := registrar{promauto.With(registry)}
	return &Metrics{
		registry: registry, counted: map[place]bool{},
		duration: r.histogram("reconcile_duration_seconds", "Time that a pass over one object took.",
			[]float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60}, "resource_type", "namespace", "result"),
		passes: r.counter("reconcile_total", "Passes over objects, by how they ended.", "resource_type", "namespace", "result"),
		errors: r.counter("reconcile_errors_total", "Passes that ended with an error, by its type.", "resource_type", "namespace", "error_type"),
		gaveUp: r.counter("reconcile_retries_exhausted_total",
			"Objects that are left alone until they change, after too many failures in a row.", "resource_type", "namespace"),
		demoted: r.counter("queue_demotions_total",
			"Objects queued at the priority of child events because their own budget, or their namespace's of alarms, was spent.", "resource_type", "namespace"),
		writes: r.counter("writes_total", "Mutating requests to the API server, by resource and verb; leases are not counted.", "resource", "verb", "code"),
		ready: r.histogram("graph_time_to_ready_seconds",
			"Time from a graph's creation, or from when it stopped being ready, to all its services being ready.",
			[]float64{1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600}, "namespace"),
		aborts: r.counter("rollout_aborts_total", "Rollouts of workers that were given up, by reason.", "namespace", "reason"),
		rollouts: r.histogram("rollout_duration_seconds", "Time from the begin of a rollout of workers to its end, by how it ended.",
			[]float64{10, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400, 43200, 86400}, "namespace", "result"),
		policies: r.gauge("policy_enforced", "1 if a ValidatingAdmissionPolicy of the installation is there and bound, 0 if it is not.", "policy"),
		certificate: r.gauge("certificate_refresh_failed",
			"1 while the certificate's Secret cannot be read or written, or its authority cannot be published."),
	}
}

// NewAnswers registers what webhooks count.
func NewAnswers(registry prometheus.Registerer) *Answers {
	r := registrar{promauto.With(registry)}
	return &Answers{
		duration: r.histogram("webhook_duration_seconds", "Time that an answer to the API server took.",
			[]float64{.001, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5}, "resource_type", "operation"),
		requests: r.counter("webhook_requests_total", "Requests of the API server by verdict.", "resource_type", "operation", "result"),
		denials:  r.counter("webhook_denials_total", "Refusals by the type of the first problem.", "resource_type", "operation", "reason"),
	}
}

// RegisterInventory has the objects of our kinds counted whenever somebody asks. list may
// refuse: a replica that does not lead says nothing.
func (m *Metrics) RegisterInventory(list func() (objects []Object, ok bool)) {
	m.registry.MustRegister(&inventory{metrics: m, list: list})
}

type registrar struct{ promauto.Factory }

func (r registrar) counter(name, help string, labels ...string) *prometheus.CounterVec {
	return r.NewCounterVec(prometheus.CounterOpts{Name: prefix + name, Help: help}, labels)
}

func (r registrar) gauge(name, help string, labels ...string) *prometheus.GaugeVec {
	return r.NewGaugeVec(prometheus.GaugeOpts{Name: prefix + name, Help: help}, labels)
}

func (r registrar) histogram(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	return r.NewHistogramVec(prometheus.HistogramOpts{Name: prefix + name, Help: help, Buckets: buckets}, labels)
}
