package tracing

import (
	"net/http"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/dynamo-operator/dynamo-operator/internal/operator/metric"
)

// Transport gives each write of a reconcile a span of its own below that of the reconcile.
func Transport(next http.RoundTripper) http.RoundTripper { return telling{next} }

type telling struct{ next http.RoundTripper }

func (t telling) RoundTrip(request *http.Request) (*http.Response, error) {
	pass := trace.SpanFromContext(request.Context())
	write, ok := metric.WriteOf(request)
	if !ok || !pass.IsRecording() {
		return t.next.RoundTrip(request)
	}
	_, span := pass.TracerProvider().Tracer(scope).Start(request.Context(), write.Verb+" "+write.Resource, trace.WithSpanKind(trace.SpanKindClient),
		trace.WithAttributes(
			attribute.String("dynamo.verb", write.Verb), attribute.String("dynamo.resource", write.Resource),
			attribute.String("k8s.namespace.name", write.Namespace), attribute.String("dynamo.name", write.Name)))
	defer span.End()
	response, err := t.next.RoundTrip(request)
	switch {
	case err != nil:
		span.SetStatus(codes.Error, err.Error())
	case response.StatusCode >= http.StatusBadRequest:
		span.SetAttributes(attribute.Int("http.response.status_code", response.StatusCode))
		span.SetStatus(codes.Error, response.Status)
	default:
		span.SetAttributes(attribute.Int("http.response.status_code", response.StatusCode))
	}
	return response, err
}
