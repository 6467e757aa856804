package metric

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Answers are what webhooks count. They stand apart from Metrics because every
// replica serves webhooks, whether or not it leads.
type Answers struct {
	duration          *prometheus.HistogramVec
	requests, denials *prometheus.CounterVec
}

// Given counts one answer. Reason is why it was a refusal, and empty otherwise.
func (a *Answers) Given(kind, operation string, took time.Duration, reason string) {
	a.duration.WithLabelValues(kind, operation).Observe(took.Seconds())
	if reason == "" {
		a.requests.WithLabelValues(kind, operation, "allowed").Inc()
		return
	}
	a.requests.WithLabelValues(kind, operation, "denied").Inc()
	a.denials.WithLabelValues(kind, operation, reason).Inc()
}
