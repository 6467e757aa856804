// Package metric holds what the operator counts and measures, in one place and
// under the names that dashboards know. Series of what was deleted go away.
package metric

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

const prefix = "dynamo_operator_"

// Metrics are all that the operator exports beside those of its libraries.
type Metrics struct {
	duration *prometheus.HistogramVec
	passes   *prometheus.CounterVec
	errors   *prometheus.CounterVec
	gaveUp   *prometheus.CounterVec
	demoted  *prometheus.CounterVec
	writes   *prometheus.CounterVec
	ready    *prometheus.HistogramVec
	policies *prometheus.GaugeVec
	// certificate is of every replica, whether or not it leads.
	certificate *prometheus.GaugeVec

	// counted are the places that have series.
	mu      sync.Mutex
	counted map[place]bool
}

// New makes the metrics and registers them.
func New(registry prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{
		counted: map[place]bool{},
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    prefix + "reconcile_duration_seconds",
			Help:    "Time that a pass over one object took.",
			Buckets: []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60},
		}, []string{"resource_type", "namespace", "result"}),
		passes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: prefix + "reconcile_total",
			Help: "Passes over objects, by how they ended.",
		}, []string{"resource_type", "namespace", "result"}),
		errors: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: prefix + "reconcile_errors_total",
			Help: "Passes that ended with an error, by its type.",
		}, []string{"resource_type", "namespace", "error_type"}),
		gaveUp: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: prefix + "reconcile_retries_exhausted_total",
			Help: "Objects that are left alone until they change, after too many failures in a row.",
		}, []string{"resource_type", "namespace"}),
		demoted: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: prefix + "queue_demotions_total",
			Help: "Objects queued at the priority of child events because their own budget, or their namespace's of alarms, was spent.",
		}, []string{"resource_type", "namespace"}),
		writes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: prefix + "writes_total",
			Help: "Mutating requests to the API server, by resource and verb; leases are not counted.",
		}, []string{"resource", "verb", "code"}),
		ready: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    prefix + "graph_time_to_ready_seconds",
			Help:    "Time from a graph's creation, or from when it stopped being ready, to all its services being ready.",
			Buckets: []float64{1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600},
		}, []string{"namespace"}),
		policies: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: prefix + "policy_enforced",
			Help: "1 if a ValidatingAdmissionPolicy of the installation is there and bound, 0 if it is not.",
		}, []string{"policy"}),
		certificate: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: prefix + "certificate_refresh_failed",
			Help: "1 while the certificate's Secret cannot be read or written, or its authority cannot be published.",
		}, nil),
	}
	for _, c := range []prometheus.Collector{m.duration, m.passes, m.errors, m.gaveUp, m.demoted, m.writes, m.ready, m.policies, m.certificate} {
		if err := registry.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// CertificateFailed tells whether the last refresh of the certificate failed.
func (m *Metrics) CertificateFailed(failed bool) {
	value := 0.0
	if failed {
		value = 1
	}
	m.certificate.WithLabelValues().Set(value)
}

// Result is how a reconcile ended.
type Result string

const (
	Success Result = "success"
	Requeue Result = "requeue"
	Error   Result = "error"
)

// Pass counts one reconcile over an object.
func (m *Metrics) Pass(kind, namespace string, result Result, took time.Duration, err error) {
	m.count(kind, namespace)
	m.duration.WithLabelValues(kind, namespace, string(result)).Observe(took.Seconds())
	m.passes.WithLabelValues(kind, namespace, string(result)).Inc()
	if err != nil {
		m.errors.WithLabelValues(kind, namespace, ErrorType(err)).Inc()
	}
}

// Policy records whether a ValidatingAdmissionPolicy is enforced.
func (m *Metrics) Policy(name string, enforced bool) {
	value := 0.0
	if enforced {
		value = 1
	}
	m.policies.WithLabelValues(name).Set(value)
}

// GaveUp counts an object that is left alone until it changes.
func (m *Metrics) GaveUp(kind, namespace string) {
	m.count(kind, namespace)
	m.gaveUp.WithLabelValues(kind, namespace).Inc()
}

// Demoted counts an object that changed too often, or whose namespace raised too
// many alarms, to be queued ahead of child events.
func (m *Metrics) Demoted(kind, namespace string) {
	m.count(kind, namespace)
	m.demoted.WithLabelValues(kind, namespace).Inc()
}

// GraphReady records that a graph became ready.
func (m *Metrics) GraphReady(namespace string, took time.Duration) {
	m.count(kindOfGraphs, namespace)
	m.ready.WithLabelValues(namespace).Observe(max(took, 0).Seconds())
}

func (m *Metrics) count(kind, namespace string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.counted[place{kind, namespace}] = true
}

// keep drops the series of places that have no object. A last reconcile over what is
// gone may come after that and bring some back; the next call finds them, too.
func (m *Metrics) keep(now map[place]bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for p := range m.counted {
		if !now[p] {
			delete(m.counted, p)
			m.forget(p.kind, p.namespace)
		}
	}
}

// forget drops the series of a kind that has no object left in a namespace.
func (m *Metrics) forget(kind, namespace string) {
	gone := prometheus.Labels{"resource_type": kind, "namespace": namespace}
	m.duration.DeletePartialMatch(gone)
	m.passes.DeletePartialMatch(gone)
	m.errors.DeletePartialMatch(gone)
	m.gaveUp.DeletePartialMatch(gone)
	m.demoted.DeletePartialMatch(gone)
	if kind == kindOfGraphs {
		m.ready.DeletePartialMatch(prometheus.Labels{"namespace": namespace})
	}
}
