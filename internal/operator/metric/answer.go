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

// NewAnswers makes and registers them; a name that is taken is a mistake in the
// program.
func NewAnswers(registry prometheus.Registerer) *Answers {
	a := &Answers{
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    prefix + "webhook_duration_seconds",
			Help:    "Time that an answer to the API server took.",
			Buckets: []float64{.001, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5},
		}, []string{"resource_type", "operation"}),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: prefix + "webhook_requests_total",
			Help: "Requests of the API server by verdict.",
		}, []string{"resource_type", "operation", "result"}),
		denials: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: prefix + "webhook_denials_total",
			Help: "Refusals by the type of the first problem.",
		}, []string{"resource_type", "operation", "reason"}),
	}
	registry.MustRegister(a.duration, a.requests, a.denials)
	return a
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
