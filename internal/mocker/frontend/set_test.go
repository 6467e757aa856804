package frontend

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dynamo-operator/dynamo-operator/internal/mocker/discovery"
)

// worker is one of 1.x as discovery shows it.
type worker struct {
	namespace string
	instance  uint64
	kind      discovery.WorkerType
	context   int
	adapter   string
}

func (w worker) metadata() discovery.Metadata {
	data := discovery.NewMetadata()
	a := discovery.Address{Namespace: w.namespace, Component: "backend", Endpoint: "generate", Instance: w.instance}
	data.Endpoints[a.Key()] = discovery.NewEndpoint(a, fmt.Sprintf("http://10.0.0.%d:8888/v1/rpc/generate", w.instance))
	card := discovery.Card{DisplayName: "org/m", SourcePath: "org/m", ContextLength: 100 + w.context, ModelType: discovery.Generative, Worker: w.kind}
	switch w.kind {
	case discovery.PrefillWorker:
		card.ModelType, card.Needs = discovery.Prefill, []discovery.WorkerType{discovery.DecodeWorker}
	case discovery.DecodeWorker:
		card.Needs = []discovery.WorkerType{discovery.PrefillWorker}
	}
	m := discovery.NewModel(a, card, "")
	data.ModelCards[m.Key()] = m
	if w.adapter != "" {
		card.DisplayName = w.adapter
		m := discovery.NewModel(a, card, w.adapter)
		data.ModelCards[m.Key()] = m
	}
	return data
}

// follow is a frontend that has discovered workers.
func follow(config Config, workers ...worker) *Frontend {
	f := New(config, nil, nil, slog.New(slog.DiscardHandler))
	var all []discovery.Metadata
	for _, w := range workers {
		all = append(all, w.metadata())
	}
	f.registry.update(discovery.Merge(all...))
	return f
}

var paths = Paths{Models: "/v1/models", Health: "/health", Live: "/live", Metrics: "/metrics", Chat: "/c", Completions: "/p", Embeddings: "/e", Responses: "/r"}

// prefixed follows every namespace of one graph.
var prefixed = Config{Prefix: "ns-chat", Paths: paths, MetricsPrefix: "x"}

const (
	p = discovery.PrefillWorker
	d = discovery.DecodeWorker
	a = discovery.AggregatedWorker
)

func TestOnlyCompleteSetsServe(t *testing.T) {
	for name, c := range map[string]struct {
		config  Config
		workers []worker
		serve   []string // namespaces
		why     string
	}{
		"an aggregated worker needs nobody":                  {prefixed, []worker{{namespace: "ns-chat-1", instance: 1, kind: a}}, []string{"ns-chat-1"}, ""},
		"decode needs prefill":                               {prefixed, []worker{{namespace: "ns-chat-1", instance: 1, kind: d}}, nil, "namespace ns-chat-1 has no prefill worker"},
		"prefill alone answers nothing":                      {prefixed, []worker{{namespace: "ns-chat-1", instance: 1, kind: p}}, nil, ""},
		"both together serve":                                {prefixed, []worker{{namespace: "ns-chat-1", instance: 1, kind: d}, {namespace: "ns-chat-1", instance: 2, kind: p}}, []string{"ns-chat-1"}, ""},
		"prefill of another generation does not help":        {prefixed, []worker{{namespace: "ns-chat-1", instance: 1, kind: d}, {namespace: "ns-chat-2", instance: 2, kind: p}}, nil, "namespace ns-chat-1 has no prefill worker, namespace ns-chat-2 has no decode worker"},
		"an aggregated worker decodes for prefill":           {prefixed, []worker{{namespace: "ns-chat-1", instance: 1, kind: a}, {namespace: "ns-chat-1", instance: 2, kind: p}}, []string{"ns-chat-1"}, ""},
		"a set that is whole serves beside one that is not":  {prefixed, []worker{{namespace: "ns-chat-1", instance: 1, kind: a}, {namespace: "ns-chat-2", instance: 2, kind: d}}, []string{"ns-chat-1"}, ""},
		"the graph's own namespace is a set":                 {prefixed, []worker{{namespace: "ns-chat", instance: 1, kind: a}, {namespace: "ns-chat-2", instance: 2, kind: a}}, []string{"ns-chat", "ns-chat-2"}, ""},
		"another graph's workers are not found":              {prefixed, []worker{{namespace: "ns-code-1", instance: 1, kind: a}}, nil, ""},
		"cards of two generations may differ":                {prefixed, []worker{{namespace: "ns-chat-1", instance: 1, kind: a}, {namespace: "ns-chat-2", instance: 2, kind: a, context: 1}}, []string{"ns-chat-1", "ns-chat-2"}, ""},
		"without a prefix all are one set, as before 1.x":    {Config{Paths: paths, MetricsPrefix: "x"}, []worker{{namespace: "one", instance: 1}, {namespace: "two", instance: 2}}, []string{""}, ""},
		"without a prefix cards of two sets must agree":      {Config{Paths: paths, MetricsPrefix: "x"}, []worker{{namespace: "one", instance: 1}, {namespace: "two", instance: 2, context: 1}}, []string{""}, ""},
		"workers before 1.x need nobody, prefixed or not":    {prefixed, []worker{{namespace: "ns-chat", instance: 1}}, []string{"ns-chat"}, ""},
		"an exact namespace has no sets of other namespaces": {Config{Namespace: "ns-chat", Paths: paths, MetricsPrefix: "x"}, []worker{{namespace: "ns-chat-1", instance: 1, kind: a}}, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := follow(c.config, c.workers...)
			m, known := f.registry.find("org/m")
			var serve []string
			if m != nil {
				for _, s := range m.sets {
					if s.complete() {
						serve = append(serve, s.namespace)
					}
				}
			}
			if diff := cmp.Diff(c.serve, serve); diff != "" {
				t.Errorf("sets that serve (-want +got):\n%s", diff)
			}
			if listed := len(f.registry.list()) > 0; listed != (c.serve != nil) {
				t.Errorf("the model is listed: %v", listed)
			}
			if !known || c.serve != nil {
				return
			}
			_, _, err := m.pick(pins{}, "")
			if err == nil || statusOf(err) != http.StatusServiceUnavailable || !strings.Contains(err.Error(), c.why) {
				t.Errorf("a request gets %v, want 503 and %q", err, c.why)
			}
		})
	}
}

func TestAnAdapterIsServedByTheSetOfItsModel(t *testing.T) {
	f := follow(prefixed, worker{namespace: "ns-chat-1", instance: 1, kind: d, adapter: "tuned"}, worker{namespace: "ns-chat-1", instance: 2, kind: p})
	m, ok := f.registry.find("tuned")
	if !ok || !m.complete() {
		t.Error("an adapter, which prefill workers do not have, keeps its set incomplete")
	}
}

func TestSetsArePickedByTheNumberOfTheirWorkers(t *testing.T) {
	f := follow(prefixed, worker{namespace: "ns-chat-1", instance: 1, kind: a}, worker{namespace: "ns-chat-2", instance: 2, kind: a},
		worker{namespace: "ns-chat-2", instance: 3, kind: a}, worker{namespace: "ns-chat-2", instance: 4, kind: a}, worker{namespace: "ns-chat-3", instance: 5, kind: d})
	m, _ := f.registry.find("org/m")
	const rounds = 20000
	counts := map[string]float64{}
	for range rounds {
		s, _, err := m.pick(pins{}, "")
		if err != nil {
			t.Fatal(err)
		}
		counts[s.namespace]++
	}
	// Six standard deviations of a fair draw.
	if far := math.Abs(counts["ns-chat-1"]/rounds - 0.25); far > 6*math.Sqrt(0.25*0.75/rounds) || counts["ns-chat-3"] > 0 {
		t.Errorf("picked %v of %d; want a quarter, three quarters and none", counts, rounds)
	}
}

func TestAPinnedWorkerDecidesTheSet(t *testing.T) {
	f := follow(prefixed, worker{namespace: "ns-chat-1", instance: 1, kind: a}, worker{namespace: "ns-chat-2", instance: 2, kind: a})
	m, _ := f.registry.find("org/m")
	for range 20 {
		if s, _, err := m.pick(pins{decode: 2}, ""); err != nil || s.namespace != "ns-chat-2" {
			t.Fatalf("picked %+v, %v", s, err)
		}
	}
}

func TestDirectRoutingServesByThePodsOwnWorker(t *testing.T) {
	f := follow(prefixed, worker{namespace: "ns-chat-1", instance: 1, kind: a}, worker{namespace: "ns-chat-1", instance: 2, kind: a})
	m, _ := f.registry.find("org/m")
	for range 20 {
		if _, got, err := m.pick(pins{}, "10.0.0.2"); err != nil || got.decode != 2 {
			t.Fatalf("pinned to %d, %v", got.decode, err)
		}
		if _, got, _ := m.pick(pins{decode: 1}, "10.0.0.2"); got.decode != 1 {
			t.Fatalf("a request that names worker 1 is pinned to %d", got.decode)
		}
	}
}

func TestReadinessOfAModel(t *testing.T) {
	f := follow(prefixed, worker{namespace: "ns-chat-1", instance: 1, kind: d}, worker{namespace: "ns-chat-1", instance: 2, kind: p},
		worker{namespace: "ns-chat-2", instance: 3, kind: d}, worker{namespace: "ns-chat-2", instance: 4, kind: d})
	half := follow(prefixed, worker{namespace: "ns-chat-2", instance: 3, kind: d})
	for name, c := range map[string]struct {
		frontend *Frontend
		path     string
		status   int
		want     string
	}{
		"each namespace is told of": {f, "/v1/models/org/m/ready", 200, `{"model":"org/m","ready":true,"namespaces":[
			{"namespace":"ns-chat-1","ready":true,"workers":{"decode":1,"prefill":1},"missing":[]},
			{"namespace":"ns-chat-2","ready":false,"workers":{"decode":2},"missing":["prefill"]}]}`},
		"a slash may be escaped":               {half, "/v1/models/org%2Fm/ready", 503, `{"model":"org/m","ready":false,"namespaces":[{"namespace":"ns-chat-2","ready":false,"workers":{"decode":1},"missing":["prefill"]}]}`},
		"a model that nobody has":              {f, "/v1/models/other/ready", 404, `{"message":"Model not found","type":"Not Found","code":404}`},
		"a model that nobody has, by its name": {f, "/v1/models/other", 404, `{"message":"Model not found","type":"Not Found","code":404}`},
		"one that is not ready is not listed":  {half, "/v1/models/org/m", 404, `{"message":"Model not found","type":"Not Found","code":404}`},
	} {
		t.Run(name, func(t *testing.T) {
			w := httptest.NewRecorder()
			c.frontend.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, c.path, http.NoBody))
			var got, want any
			if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
				t.Fatalf("%d %s: %v", w.Code, w.Body, err)
			}
			if err := json.Unmarshal([]byte(c.want), &want); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" || w.Code != c.status {
				t.Errorf("status %d, want %d (-want +got):\n%s", w.Code, c.status, diff)
			}
		})
	}
}
