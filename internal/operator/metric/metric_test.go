package metric

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/dynamo-operator/dynamo-operator/internal/core/fault"
)

func newMetrics(t *testing.T) (*Metrics, *prometheus.Registry) {
	t.Helper()
	registry := prometheus.NewRegistry()
	return New(registry), registry
}

func TestPasses(t *testing.T) {
	m, registry := newMetrics(t)
	m.Pass("DynamoGraphDeployment", "a", Success, time.Millisecond, nil)
	m.Pass("DynamoGraphDeployment", "a", Error, time.Millisecond, errors.New("x"))
	want := []string{
		"reconcile_errors_total internal a DynamoGraphDeployment 1",
		"reconcile_total a DynamoGraphDeployment error 1", "reconcile_total a DynamoGraphDeployment success 1",
	}
	if diff := cmp.Diff(want, counters(t, registry)); diff != "" {
		t.Error("-want +got", diff)
	}
}

func TestAnswers(t *testing.T) {
	registry := prometheus.NewRegistry()
	a := NewAnswers(registry)
	a.Given("DynamoModel", "CREATE", time.Millisecond, "")
	a.Given("DynamoModel", "UPDATE", time.Millisecond, "FieldValueForbidden")
	want := []string{
		"webhook_denials_total UPDATE FieldValueForbidden DynamoModel 1",
		"webhook_requests_total CREATE DynamoModel allowed 1", "webhook_requests_total UPDATE DynamoModel denied 1",
	}
	if diff := cmp.Diff(want, counters(t, registry)); diff != "" {
		t.Error("-want +got", diff)
	}
}

func TestErrorType(t *testing.T) {
	thing := schema.GroupResource{Resource: "things"}
	cases := map[string]error{
		"not_found":    fmt.Errorf("read: %w", apierrors.NewNotFound(thing, "a")),
		"conflict":     apierrors.NewConflict(thing, "a", nil),
		"validation":   fault.New(fault.Invalid, "Bad", "bad"),
		"forbidden":    apierrors.NewForbidden(thing, "a", nil),
		"rate_limited": apierrors.NewTooManyRequestsError("slow down"),
		"internal":     errors.New("connection refused"),
	}
	for want, err := range cases {
		if got := ErrorType(err); got != want {
			t.Errorf("ErrorType(%v) = %s, want %s", err, got, want)
		}
	}
}

func TestTheInventoryHoldsWhatIsThereAndNoMore(t *testing.T) {
	m, registry := newMetrics(t)
	objects := []Object{
		{Kind: kindOfGraphs, Namespace: "a", Name: "one", Status: "successful", Ready: true},
		{Kind: kindOfGraphs, Namespace: "a", Name: "two", Status: "pending"},
		{Kind: kindOfGraphs, Namespace: "b", Name: "three", Status: "pending"},
	}
	leads := true
	m.RegisterInventory(func() ([]Object, bool) { return objects, leads })
	m.Pass(kindOfGraphs, "a", Success, time.Second, nil)
	m.Pass(kindOfGraphs, "b", Success, time.Second, nil)
	m.GraphReady("b", time.Second)

	names := func() []string { return series(t, registry, func(*dto.Metric) string { return "" }) }
	want := []string{
		"graph_ready one a", "graph_ready three b", "graph_ready two a",
		"graph_time_to_ready_seconds b",
		"reconcile_duration_seconds a DynamoGraphDeployment success", "reconcile_duration_seconds b DynamoGraphDeployment success",
		"reconcile_total a DynamoGraphDeployment success", "reconcile_total b DynamoGraphDeployment success",
		"resources_total a DynamoGraphDeployment pending", "resources_total a DynamoGraphDeployment successful", "resources_total b DynamoGraphDeployment pending",
	}
	if diff := cmp.Diff(want, names()); diff != "" {
		t.Error("while all are there: -want +got", diff)
	}
	objects = objects[:1]
	names() // the count that finds them gone
	want = []string{
		"graph_ready one a",
		"reconcile_duration_seconds a DynamoGraphDeployment success",
		"reconcile_total a DynamoGraphDeployment success",
		"resources_total a DynamoGraphDeployment successful",
	}
	if diff := cmp.Diff(want, names()); diff != "" {
		t.Error("after two were deleted: -want +got", diff)
	}
	leads = false
	for _, name := range names() {
		if strings.HasPrefix(name, "resources_total") {
			t.Errorf("a replica that does not lead exports %s", name)
		}
	}
}

func TestARolloutIsTold(t *testing.T) {
	m, registry := newMetrics(t)
	m.RegisterInventory(func() ([]Object, bool) {
		return []Object{{Kind: kindOfGraphs, Namespace: "a", Name: "one", Rollout: &Rollout{Phase: "Held", Roles: []Role{{"decode", 1, 2}}}}}, true
	})
	m.RolloutEnded("a", "Regression", time.Second)
	m.RolloutEnded("a", "", time.Second)
	m.RolloutEnded("gone", "", time.Second)
	var got []string
	for range 2 { // the first finds what is gone
		got = series(t, registry, func(m *dto.Metric) string {
			return fmt.Sprint(m.GetGauge().GetValue() + m.GetCounter().GetValue() + float64(m.GetHistogram().GetSampleCount()))
		})
	}
	got = slices.DeleteFunc(got, func(s string) bool {
		return !strings.HasPrefix(s, "rollout_") || strings.HasPrefix(s, "rollout_phase") && strings.HasSuffix(s, " 0")
	})
	want := []string{
		"rollout_aborts_total a Regression 1", "rollout_duration_seconds a aborted 1", "rollout_duration_seconds a completed 1",
		"rollout_effective_replicas one a decode 1", "rollout_floor_replicas one a decode 2", "rollout_phase one a Held 1",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error("-want +got", diff)
	}
}

func TestWriteOf(t *testing.T) {
	cases := map[string]struct {
		method, path, contentType string
		want                      Write
		writes                    bool
	}{
		"a read is no write":           {method: "GET", path: "/api/v1/namespaces/a/services/x"},
		"a review asks a question":     {method: "POST", path: "/apis/authorization.k8s.io/v1/subjectaccessreviews", want: Write{Resource: "subjectaccessreviews", Verb: "create"}},
		"an apply is told from others": {method: "PATCH", path: "/apis/apps/v1/namespaces/a/deployments/x", contentType: "application/apply-patch+cbor", want: Write{"deployments", "apply", "a", "x"}, writes: true},
		"a subresource is named":       {method: "PATCH", path: "/apis/nvidia.com/v1alpha1/namespaces/a/dynamographdeployments/g/status", want: Write{"dynamographdeployments/status", "patch", "a", "g"}, writes: true},
		"an event is a write":          {method: "POST", path: "/apis/events.k8s.io/v1/namespaces/a/events", want: Write{"events", "create", "a", ""}, writes: true},
		"a namespace itself":           {method: "DELETE", path: "/api/v1/namespaces/a", want: Write{"namespaces", "delete", "", "a"}, writes: true},
	}
	for rule, c := range cases {
		t.Run(rule, func(t *testing.T) {
			request := httptest.NewRequest(c.method, "https://api"+c.path, http.NoBody)
			request.Header.Set("Content-Type", c.contentType)
			got, writes := WriteOf(request)
			if writes != c.writes {
				t.Errorf("writes = %v", writes)
			}
			if diff := cmp.Diff(c.want, got); diff != "" && c.writes {
				t.Error("-want +got", diff)
			}
		})
	}
}

func TestWritesAreCountedAndLeasesAreNot(t *testing.T) {
	m, registry := newMetrics(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) }))
	defer server.Close()
	client := &http.Client{Transport: m.Transport(http.DefaultTransport)}
	for _, path := range []string{"/api/v1/namespaces/a/services", "/apis/coordination.k8s.io/v1/namespaces/a/leases"} {
		response, err := client.Post(server.URL+path, "application/json", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
	}
	if diff := cmp.Diff([]string{"writes_total 201 services create 1"}, counters(t, registry)); diff != "" {
		t.Error("-want +got", diff)
	}
}

// series lists what is exported: name, and values of labels in order of their
// names.
func series(t *testing.T, registry *prometheus.Registry, value func(*dto.Metric) string) []string {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range families {
		for _, s := range f.Metric {
			words := []string{strings.TrimPrefix(f.GetName(), prefix)}
			for _, l := range s.Label {
				words = append(words, l.GetValue())
			}
			if v := value(s); v != "-" {
				names = append(names, strings.TrimSpace(strings.Join(words, " ")+" "+v))
			}
		}
	}
	slices.Sort(names)
	return names
}

// counters lists the counters with their values.
func counters(t *testing.T, registry *prometheus.Registry) []string {
	t.Helper()
	return series(t, registry, func(m *dto.Metric) string {
		if m.Counter == nil {
			return "-"
		}
		return fmt.Sprint(m.Counter.GetValue())
	})
}

func TestThePageTellsEveryMetric(t *testing.T) {
	page, err := os.ReadFile("../../../docs/spec/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	m, registry := newMetrics(t)
	NewAnswers(registry)
	m.RegisterInventory(nil)
	told := make(chan *prometheus.Desc, 100)
	registry.Describe(told)
	close(told)
	for d := range told {
		name := strings.Split(d.String(), `"`)[1]
		if !strings.Contains(string(page), "`"+name+"`") {
			t.Errorf("docs/spec/metrics.md does not tell of %s", name)
		}
	}
}
