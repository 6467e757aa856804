// Package tracing exports reconciles as OpenTelemetry spans: which events caused one,
// what it decided, what it wrote.
package tracing

import (
	"context"
	"fmt"
	"net/url"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
)

const scope = "github.com/dynamo-operator/dynamo-operator"

// Tracer tells about reconciles.
type Tracer struct {
	tracer trace.Tracer
	stop   func(context.Context) error
}

// Off is a Tracer that tells nobody.
func Off() *Tracer {
	return &Tracer{noop.NewTracerProvider().Tracer(scope), func(context.Context) error { return nil }}
}

// To is a Tracer that sends a share of the reconciles by OTLP over HTTP.
func To(ctx context.Context, endpoint string, ratio float64, version string) (*Tracer, error) {
	u, err := url.Parse(endpoint)
	if err != nil {
		return nil, fmt.Errorf("read tracing endpoint: %w", err)
	}
	// The path is added here, so that an endpoint is what users of other
	// exporters write; proxies of the environment are for the Internet, not for
	// a collector in the cluster.
	exporter, err := otlptracehttp.New(ctx,
		otlptracehttp.WithEndpointURL(u.JoinPath("v1", "traces").String()), otlptracehttp.WithProxy(nil))
	if err != nil {
		return nil, fmt.Errorf("set up tracing to %s: %w", endpoint, err)
	}
	return with(sdktrace.WithBatcher(exporter), ratio, version), nil
}

func with(out sdktrace.TracerProviderOption, ratio float64, version string) *Tracer {
	provider := sdktrace.NewTracerProvider(out,
		sdktrace.WithSampler(sdktrace.TraceIDRatioBased(ratio)),
		sdktrace.WithResource(resource.NewSchemaless(
			attribute.String("service.name", "dynamo-operator"), attribute.String("service.version", version))))
	return &Tracer{provider.Tracer(scope), provider.Shutdown}
}

// Stop sends what was not sent yet.
func (t *Tracer) Stop(ctx context.Context) error { return t.stop(ctx) }

// Pass opens the span of one reconcile. What brought it about stands in it.
func (t *Tracer) Pass(ctx context.Context, kind, namespace, name string, causes []string) (context.Context, trace.Span) {
	return t.tracer.Start(ctx, "reconcile "+kind, trace.WithAttributes(
		attribute.String("k8s.namespace.name", namespace),
		attribute.String("dynamo.kind", kind),
		attribute.String("dynamo.name", name),
		attribute.StringSlice("dynamo.cause", causes),
	))
}

// End closes the span of a reconcile.
func End(span trace.Span, result string, err error) {
	span.SetAttributes(attribute.String("dynamo.result", result))
	if err != nil {
		span.SetStatus(codes.Error, err.Error())
	}
	span.End()
}

// Decided notes in the span of a reconcile what it decided to do: pairs of a name and
// a value.
func Decided(ctx context.Context, pairs ...any) {
	span := trace.SpanFromContext(ctx)
	if !span.IsRecording() {
		return
	}
	var facts []attribute.KeyValue
	for i := 0; i+1 < len(pairs); i += 2 {
		facts = append(facts, attribute.String(fmt.Sprint(pairs[i]), fmt.Sprint(pairs[i+1])))
	}
	span.AddEvent("decided", trace.WithAttributes(facts...))
}
