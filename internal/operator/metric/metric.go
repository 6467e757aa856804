// Package metric holds what the operator counts and measures, in one place and
// under the names that dashboards know. Series of what was deleted go away.
package metric

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics are all that the operator exports beside those of its libraries.
type Metrics struct {
	duration *prometheus.HistogramVec
	passes   *prometheus.CounterVec
	errors   *prometheus.CounterVec
	gaveUp   *prometheus.CounterVec
	demoted  *prometheus.CounterVec
	writes   *prometheus.CounterVec
	ready    *prometheus.HistogramVec
	aborts   *prometheus.CounterVec
	rollouts *prometheus.HistogramVec
	policies *prometheus.GaugeVec
	// certificate is of every replica, whether or not it leads.
	certificate *prometheus.GaugeVec

	registry prometheus.Registerer
	// counted are the places that have series.
	mu      sync.Mutex
	counted map[place]bool
}

// CertificateFailed tells whether the last refresh of the certificate failed.
func (m *Metrics) CertificateFailed(failed bool) {
	m.certificate.WithLabelValues().Set(truth(failed))
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
	m.policies.WithLabelValues(name).Set(truth(enforced))
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

// RolloutEnded records that a rollout of a graph's workers came to its end; reason is why
// it was given up, and empty if it was completed.
func (m *Metrics) RolloutEnded(namespace, reason string, took time.Duration) {
	m.count(kindOfGraphs, namespace)
	result := "completed"
	if reason != "" {
		result = "aborted"
		m.aborts.WithLabelValues(namespace, reason).Inc()
	}
	m.rollouts.WithLabelValues(namespace, result).Observe(max(took, 0).Seconds())
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
	for _, counter := range []*prometheus.CounterVec{m.passes, m.errors, m.gaveUp, m.demoted} {
		counter.DeletePartialMatch(gone)
	}
	if kind == kindOfGraphs {
		here := prometheus.Labels{"namespace": namespace}
		m.ready.DeletePartialMatch(here)
		m.aborts.DeletePartialMatch(here)
		m.rollouts.DeletePartialMatch(here)
	}
}
