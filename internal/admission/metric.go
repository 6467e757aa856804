package admission

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	ctrladmission "sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

var (
	duration = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "dynamo_operator_webhook_duration_seconds",
		Help:    "Time that an answer to the API server took.",
		Buckets: []float64{.001, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5},
	}, []string{"resource_type", "operation"})
	requests = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "dynamo_operator_webhook_requests_total",
		Help: "Requests of the API server by verdict.",
	}, []string{"resource_type", "operation", "result"})
	denials = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "dynamo_operator_webhook_denials_total",
		Help: "Refusals by the type of the first problem.",
	}, []string{"resource_type", "operation", "reason"})
)

func init() { metrics.Registry.MustRegister(duration, requests, denials) }

// measured counts what a handler says.
func measured(kind Kind, handler ctrladmission.Handler) ctrladmission.Handler {
	return ctrladmission.HandlerFunc(func(ctx context.Context, request ctrladmission.Request) ctrladmission.Response {
		begin, operation := time.Now(), string(request.Operation)
		response := handler.Handle(ctx, request)
		duration.WithLabelValues(kind.Name, operation).Observe(time.Since(begin).Seconds())
		result := "allowed"
		if !response.Allowed {
			result = "denied"
			denials.WithLabelValues(kind.Name, operation, reason(response)).Inc()
		}
		requests.WithLabelValues(kind.Name, operation, result).Inc()
		return response
	})
}

// reason is a word of a small set: the type of the first problem.
func reason(response ctrladmission.Response) string {
	if r := response.Result; r != nil && r.Details != nil && len(r.Details.Causes) > 0 {
		return string(r.Details.Causes[0].Type)
	}
	return "Undecodable"
}
