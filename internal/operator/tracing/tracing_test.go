package tracing

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
)

// api answers like an API server that takes every write but one.
func api(t *testing.T) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodDelete {
			w.WriteHeader(http.StatusForbidden)
		}
	}))
	t.Cleanup(server.Close)
	return server
}

func send(t *testing.T, tracer *Tracer, server *httptest.Server) {
	t.Helper()
	ctx, span := tracer.Pass(t.Context(), "DynamoGraphDeployment", "a", "g", []string{"Deployment d updated"})
	Decided(ctx, "provider", "component", "wanted", 3)
	client := &http.Client{Transport: Transport(http.DefaultTransport)}
	for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodDelete} {
		request, err := http.NewRequestWithContext(ctx, method, server.URL+"/api/v1/namespaces/a/services/s", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		response, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
	}
	End(span, "error", errors.New("delete Service s: forbidden"))
}

func TestAPassTellsItsCauseItsDecisionsAndItsWrites(t *testing.T) {
	memory := tracetest.NewInMemoryExporter()
	send(t, with(sdktrace.WithSyncer(memory), 1, "test"), api(t))

	type told struct {
		Name, Parent string
		Failed       bool
		Facts        map[string]string
		Decided      map[string]string
	}
	var got []told
	names := map[string]string{}
	spans := memory.GetSpans()
	for _, s := range spans {
		names[s.SpanContext.SpanID().String()] = s.Name
	}
	for _, s := range spans {
		one := told{Name: s.Name, Parent: names[s.Parent.SpanID().String()], Failed: s.Status.Code == codes.Error, Facts: map[string]string{}}
		for _, a := range s.Attributes {
			one.Facts[string(a.Key)] = a.Value.String()
		}
		for _, e := range s.Events {
			one.Decided = map[string]string{}
			for _, a := range e.Attributes {
				one.Decided[string(a.Key)] = a.Value.String()
			}
		}
		got = append(got, one)
	}
	write := func(verb, code string) map[string]string {
		return map[string]string{"dynamo.verb": verb, "dynamo.resource": "services", "k8s.namespace.name": "a", "dynamo.name": "s", "http.response.status_code": code}
	}
	want := []told{
		{Name: "create services", Parent: "reconcile DynamoGraphDeployment", Facts: write("create", "200")},
		{Name: "delete services", Parent: "reconcile DynamoGraphDeployment", Failed: true, Facts: write("delete", "403")},
		{
			Name: "reconcile DynamoGraphDeployment", Failed: true,
			Facts: map[string]string{
				"k8s.namespace.name": "a", "dynamo.kind": "DynamoGraphDeployment", "dynamo.name": "g",
				"dynamo.cause": `["Deployment d updated"]`, "dynamo.result": "error",
			},
			Decided: map[string]string{"provider": "component", "wanted": "3"},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error("-want +got", diff)
	}
}

func TestPassesReachACollector(t *testing.T) {
	received := make(chan string, 1)
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || len(body) == 0 {
			t.Errorf("received %d bytes: %v", len(body), err)
		}
		received <- r.Method + " " + r.URL.Path
	}))
	defer collector.Close()
	tracer, err := To(t.Context(), collector.URL, 1, "test")
	if err != nil {
		t.Fatal(err)
	}
	send(t, tracer, api(t))
	if err := tracer.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := <-received; got != "POST /v1/traces" {
		t.Errorf("collector received %s", got)
	}
}

func TestWhenOffNothingIsTold(t *testing.T) {
	_, span := Off().Pass(t.Context(), "K", "a", "g", nil)
	if span.IsRecording() {
		t.Error("a span is recorded although nobody wants it")
	}
}
