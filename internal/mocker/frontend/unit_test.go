package frontend

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dynamo-operator/dynamo-operator/internal/mocker/discovery"
	"github.com/dynamo-operator/dynamo-operator/internal/mocker/launch"
	"github.com/dynamo-operator/dynamo-operator/internal/mocker/podenv"
	"github.com/dynamo-operator/dynamo-operator/internal/mocker/route"
)

func TestBuckets(t *testing.T) {
	want := []float64{0, 1.9, 3.4, 6.3, 12, 22, 40, 75, 140, 260}
	if diff := cmp.Diff(want, buckets(1, 256, 10)); diff != "" {
		t.Errorf("request duration (-want +got):\n%s", diff)
	}
	for name, b := range map[string][]float64{"ttft": buckets(0.001, 480, 18), "itl": buckets(0.001, 2, 13), "isl": buckets(50, 128000, 12), "osl": buckets(50, 32000, 10)} {
		for i := 1; i < len(b); i++ {
			if b[i] <= b[i-1] {
				t.Errorf("%s: bucket %v follows %v", name, b[i], b[i-1])
			}
		}
	}
}

func TestStopper(t *testing.T) {
	cases := map[string]struct {
		stops  []string
		pieces []string
		want   string
		ended  bool
	}{
		"without stop strings all passes":      {pieces: []string{"a b", " c"}, want: "a b c"},
		"the text ends before the stop string": {stops: []string{" c"}, pieces: []string{"a b", " c d"}, want: "a b", ended: true},
		"a stop string may span pieces":        {stops: []string{"b c"}, pieces: []string{"a b", " c"}, want: "a ", ended: true},
		"what began like one is shown later":   {stops: []string{"b x"}, pieces: []string{"a b", " c"}, want: "a b c"},
		"the earliest one counts":              {stops: []string{"c", "b"}, pieces: []string{"a b c"}, want: "a ", ended: true},
		"held text is shown at the end":        {stops: []string{"b!"}, pieces: []string{"a b"}, want: "a b"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s := stopper{stops: c.stops}
			got, ended := "", false
			for _, piece := range c.pieces {
				shown, end := s.pass(piece)
				got += shown
				if end {
					ended = true
					break
				}
			}
			if !ended {
				got += s.rest()
			}
			if got != c.want || ended != c.ended {
				t.Errorf("%q, ended %v; want %q, %v", got, ended, c.want, c.ended)
			}
		})
	}
}

func TestConfig(t *testing.T) {
	cases := map[string]struct {
		args  string
		env   podenv.Env
		check func(Config) bool
		fails bool
	}{
		"port from the environment":            {env: podenv.Env{"DYN_HTTP_PORT": "9000"}, check: func(c Config) bool { return c.Port == 9000 }},
		"port from the command line first":     {args: "--http-port 9001", env: podenv.Env{"DYN_HTTP_PORT": "9000"}, check: func(c Config) bool { return c.Port == 9001 }},
		"the default port":                     {check: func(c Config) bool { return c.Port == 8000 && c.Routing.Mode == route.RoundRobin }},
		"a namespace":                          {env: podenv.Env{"DYN_NAMESPACE": "a-b"}, check: func(c Config) bool { return c.allowed("a-b") && !c.allowed("x") }},
		"the global namespace is all":          {env: podenv.Env{"DYN_NAMESPACE": "dynamo"}, check: func(c Config) bool { return c.allowed("x") }},
		"the flag goes before the environment": {args: "--namespace=x", env: podenv.Env{"DYN_NAMESPACE": "a-b"}, check: func(c Config) bool { return c.allowed("x") && !c.allowed("a-b") }},
		"a prefix":                             {env: podenv.Env{"DYN_NAMESPACE": "a-b", "DYN_NAMESPACE_PREFIX": "a-b"}, check: func(c Config) bool { return c.allowed("a-b") && c.allowed("a-b-1f") && !c.allowed("a-c") }},
		"a prefix finds a longer name too":     {env: podenv.Env{"DYN_NAMESPACE_PREFIX": "a-chat"}, check: func(c Config) bool { return c.allowed("a-chat-large-1f") }},
		"a namespace that is said goes before": {args: "--namespace x", env: podenv.Env{"DYN_NAMESPACE_PREFIX": "a-b"}, check: func(c Config) bool { return c.allowed("x") && !c.allowed("x-1f") && !c.allowed("a-b") }},
		"the same said again keeps the prefix": {args: "--namespace a-b", env: podenv.Env{"DYN_NAMESPACE_PREFIX": "a-b"}, check: func(c Config) bool { return c.allowed("a-b-1f") }},
		"the prefix of all namespaces is none": {env: podenv.Env{"DYN_NAMESPACE": "dynamo", "DYN_NAMESPACE_PREFIX": "dynamo"}, check: func(c Config) bool { return c.allowed("x") && c.Prefix == "" }},
		"direct routing knows its own pod":     {args: "--router-mode direct", env: podenv.Env{"DYNAMO_POD_IP": "10.1.2.3"}, check: func(c Config) bool { return c.Own == "10.1.2.3" }},
		"other routing does not":               {env: podenv.Env{"DYNAMO_POD_IP": "10.1.2.3"}, check: func(c Config) bool { return c.Own == "" }},
		"the router's variables of 1.x":        {env: podenv.Env{"DYN_ROUTER_TEMPERATURE": "0.5", "DYN_ROUTER_KV_OVERLAP_SCORE_WEIGHT": "1.5"}, check: func(c Config) bool { return c.Routing.Temperature == 0.5 && c.Routing.OverlapWeight == 1.5 }},
		"router mode":                          {args: "--router-mode kv --kv-overlap-score-weight 0.0", env: podenv.Env{"DYN_ROUTER_MODE": "random"}, check: func(c Config) bool { return c.Routing == route.Options{Mode: route.KV} }},
		"an unknown router mode":               {env: podenv.Env{"DYN_ROUTER_MODE": "best"}, fails: true},
		"a port that is no number":             {args: "--http-port x", fails: true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			config, err := NewConfig(launch.Program{Args: strings.Fields(c.args), Env: c.env})
			if c.fails {
				if err == nil {
					t.Error("accepted")
				}
				return
			}
			if err != nil || !c.check(config) {
				t.Errorf("%+v, %v", config, err)
			}
		})
	}
}

// A worker whose card differs from the one in use is left out, and comes in
// when the others are gone.
func TestRegistryRefusesAMisfit(t *testing.T) {
	r := newRegistry(Config{}, newMetrics("x"), slog.New(slog.DiscardHandler))
	data := func(instance uint64, context int) discovery.Metadata {
		m := discovery.NewMetadata()
		a := discovery.Address{Namespace: "n", Component: "backend", Endpoint: "generate", Instance: instance}
		m.Endpoints[a.Key()] = discovery.NewEndpoint(a, "http://x")
		model := discovery.NewModel(a, discovery.Card{DisplayName: "m", ContextLength: context, ModelType: discovery.Generative}, "")
		m.ModelCards[model.Key()] = model
		return m
	}
	workers := func() []uint64 {
		var out []uint64
		if m, ok := r.find("m"); ok {
			for _, t := range m.sets[0].decode {
				out = append(out, t.instance)
			}
		}
		return out
	}
	r.update(discovery.Merge(data(9, 100)))
	r.update(discovery.Merge(data(9, 100), data(1, 200), data(2, 100)))
	if diff := cmp.Diff([]uint64{9, 2}, workers()); diff != "" {
		t.Errorf("workers (-want +got):\n%s", diff)
	}
	r.update(discovery.Merge(data(1, 200)))
	if diff := cmp.Diff([]uint64{1}, workers()); diff != "" {
		t.Errorf("workers after the others left (-want +got):\n%s", diff)
	}
	prefill := data(5, 300)
	for key, m := range prefill.ModelCards {
		m.Card.ModelType = discovery.Prefill
		prefill.ModelCards[key] = m
	}
	r.update(discovery.Merge(prefill))
	r.update(discovery.Merge(prefill, data(6, 100)))
	if m, ok := r.find("m"); !ok || len(m.sets[0].decode) != 1 || len(m.sets[0].prefill) != 1 {
		t.Error("a prefill worker of another size keeps the others out")
	}
	r.update(discovery.Merge())
	if workers() != nil || r.any(discovery.Chat) {
		t.Error("a model without workers is still there")
	}
}

func TestAWorkerThatTookNoRequestGetsNoneForAWhile(t *testing.T) {
	one, two := target{instance: 1}, target{instance: 2}
	start := time.Unix(0, 0)
	for name, c := range map[string]struct {
		shun  []target
		after time.Duration
		want  []target
	}{
		"all are asked at first":                {want: []target{one, two}},
		"others are asked instead":              {shun: []target{one}, want: []target{two}},
		"it is asked again after a while":       {shun: []target{one}, after: shunTime, want: []target{one, two}},
		"it is asked if there is nobody else":   {shun: []target{one, two}, want: []target{one, two}},
		"until then it is left out, if one can": {shun: []target{two}, after: shunTime - 1, want: []target{one}},
	} {
		t.Run(name, func(t *testing.T) {
			var s shunned
			for _, worker := range c.shun {
				s.add(worker.instance, start)
			}
			got := s.without([]target{one, two}, start.Add(c.after))
			if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(target{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
