package server

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	collectorv1 "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonv1 "go.opentelemetry.io/proto/otlp/common/v1"
	tracev1 "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// collector takes spans as an OpenTelemetry collector does.
type collector struct {
	mu    sync.Mutex
	spans []*tracev1.Span
}

func (c *collector) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err == nil && r.Header.Get("Content-Encoding") == "gzip" {
		var plain *gzip.Reader
		if plain, err = gzip.NewReader(bytes.NewReader(body)); err == nil {
			body, err = io.ReadAll(plain)
		}
	}
	var request collectorv1.ExportTraceServiceRequest
	if err = errors.Join(err, proto.Unmarshal(body, &request)); err != nil {
		panic(err) // the operator is told by a broken connection, the test by what is missing
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, resource := range request.ResourceSpans {
		for _, scope := range resource.ScopeSpans {
			c.spans = append(c.spans, scope.Spans...)
		}
	}
}

// find is the first span that matches.
func (c *collector) find(what string, matches func(*tracev1.Span) bool) (*tracev1.Span, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if i := slices.IndexFunc(c.spans, matches); i >= 0 {
		return c.spans[i], nil
	}
	return nil, fmt.Errorf("no %s among %d spans", what, len(c.spans))
}

func TestAPassIsTracedToACollector(t *testing.T) {
	w := newWorld(t)
	received := &collector{}
	server := httptest.NewServer(received) // on loopback, at a port of the system's choice
	t.Cleanup(server.Close)
	w.operate(silent + fmt.Sprintf("tracing: {endpoint: %q}\n", server.URL))
	w.create(w.graph("g", "decode"))

	w.eventually("the spans of a pass over the graph", func(context.Context) error {
		pass, err := received.find("pass that decides", func(s *tracev1.Span) bool {
			return s.Name == "reconcile DynamoGraphDeployment" && has(s.Attributes, "dynamo.name", "g") && has(s.Attributes, "k8s.namespace.name", w.namespace) &&
				slices.ContainsFunc(s.Events, func(e *tracev1.Span_Event) bool {
					return e.Name == "decided" && has(e.Attributes, "provider", "component") && has(e.Attributes, "owned", "0")
				})
		})
		if err != nil {
			return err
		}
		_, err = received.find("write below it", func(s *tracev1.Span) bool {
			return bytes.Equal(s.TraceId, pass.TraceId) && bytes.Equal(s.ParentSpanId, pass.SpanId) &&
				has(s.Attributes, "dynamo.resource", "dynamocomponentdeployments") && has(s.Attributes, "dynamo.name", "g-decode") && has(s.Attributes, "http.response.status_code", "201")
		})
		return err
	})
	w.eventually("a pass that tells what brought it about", func(context.Context) error {
		_, err := received.find("cause", func(s *tracev1.Span) bool {
			return s.Name == "reconcile DynamoComponentDeployment" && has(s.Attributes, "dynamo.cause", "Deployment g-decode created")
		})
		return err
	})
}

// has reports whether an attribute has a value, or has it among others.
func has(attributes []*commonv1.KeyValue, key, value string) bool {
	return slices.ContainsFunc(attributes, func(a *commonv1.KeyValue) bool {
		return a.Key == key && slices.Contains(strings.Split(text(a.Value), "\n"), value)
	})
}

// text writes a value, one line for each of several.
func text(value *commonv1.AnyValue) string {
	switch v := value.Value.(type) {
	case *commonv1.AnyValue_StringValue:
		return v.StringValue
	case *commonv1.AnyValue_IntValue:
		return fmt.Sprint(v.IntValue)
	case *commonv1.AnyValue_ArrayValue:
		var lines []string
		for _, one := range v.ArrayValue.Values {
			lines = append(lines, text(one))
		}
		return strings.Join(lines, "\n")
	default:
		return ""
	}
}
