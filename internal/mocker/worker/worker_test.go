package worker

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dynamo-operator/dynamo-operator/internal/mocker/discovery"
	"github.com/dynamo-operator/dynamo-operator/internal/mocker/launch"
	"github.com/dynamo-operator/dynamo-operator/internal/mocker/podenv"
)

var quiet = slog.New(slog.DiscardHandler)

// identity is the part of a configuration that others see.
type identity struct {
	Role               Role
	Component, Model   string
	Type               discovery.ModelType
	Ranks, Block       int
	Follower, Adapters bool
}

func TestIdentity(t *testing.T) {
	cases := map[string]struct {
		program string
		args    string
		want    identity
	}{
		"vllm aggregated":                    {"dynamo.vllm", "--model m", identity{Aggregated, "backend", "m", discovery.Generative, 1, 16, false, false}},
		"vllm without a model has a default": {"dynamo.vllm", "", identity{Aggregated, "backend", "Qwen/Qwen3-0.6B", discovery.Generative, 1, 16, false, false}},
		"vllm prefill":                       {"dynamo.vllm", "--model m --is-prefill-worker --block-size 128", identity{Prefill, "prefill", "m", discovery.Prefill, 1, 128, false, false}},
		"vllm served name, underscores":      {"dynamo.vllm", "--model m --served_model_name=n --enable-lora", identity{Aggregated, "backend", "n", discovery.Generative, 1, 16, false, true}},
		"vllm data parallel leader":          {"dynamo.vllm", "--model m --data-parallel-size 8 --data-parallel-size-local 4 --data-parallel-start-rank 0", identity{Aggregated, "backend", "m", discovery.Generative, 4, 16, false, false}},
		"vllm data parallel follower":        {"dynamo.vllm", "--model m --data-parallel-size 8 --data-parallel-size-local 4 --data-parallel-start-rank 4", identity{Aggregated, "backend", "", discovery.Generative, 4, 16, true, false}},
		"sglang decode":                      {"dynamo.sglang", "--model-path p --served-model-name n --disaggregation-mode decode --dp 2", identity{Decode, "backend", "n", discovery.Generative, 2, 16, false, false}},
		"sglang prefill":                     {"dynamo.sglang", "--model-path p --disaggregation-mode prefill --page-size 64", identity{Prefill, "prefill", "p", discovery.Prefill, 1, 64, false, false}},
		"sglang leader":                      {"dynamo.sglang", "--model-path p --tp 2 --dist-init-addr a:29500 --nnodes 2 --node-rank 0", identity{Aggregated, "backend", "p", discovery.Generative, 1, 16, false, false}},
		"sglang follower registers nothing":  {"dynamo.sglang", "--model-path p --tp 2 --dist-init-addr a:29500 --nnodes 2 --node-rank 1", identity{Aggregated, "backend", "", discovery.Generative, 1, 16, true, false}},
		"sglang embedding":                   {"dynamo.sglang", "--model-path p --embedding-worker", identity{Aggregated, "backend", "p", discovery.Embedding, 1, 16, false, false}},
		"trtllm":                             {"dynamo.trtllm", "--model-path p --served-model-name n", identity{Aggregated, "tensorrt_llm", "n", discovery.Generative, 1, 32, false, false}},
		"trtllm prefill":                     {"dynamo.trtllm", "--model-path p --disaggregation-mode prefill", identity{Prefill, "prefill", "p", discovery.Prefill, 1, 32, false, false}},
		"trtllm encode":                      {"dynamo.trtllm", "--model-path p --disaggregation-mode encode", identity{Encode, "tensorrt_llm_encode", "p", discovery.Generative, 1, 32, false, false}},
		"mocker decode":                      {"dynamo.mocker", "--model-path p --model-name n --is-decode-worker", identity{Decode, "backend", "n", discovery.Generative, 1, 64, false, false}},
		"an endpoint of one's own":           {"dynamo.mocker", "--model-path p --endpoint dyn://a.b.generate", identity{Aggregated, "b", "p", discovery.Generative, 1, 64, false, false}},
		"a script registers no model":        {"worker.py", "--model m", identity{Aggregated, "worker", "", discovery.Generative, 1, 16, false, false}},
		"but a processor does":               {"processor.py", "--model m", identity{Aggregated, "processor", "m", discovery.Generative, 1, 16, false, false}},
		"a repeated flag without a value":    {"dynamo.sglang", "--model-path p --disaggregation-bootstrap-port --disaggregation-bootstrap-port 12345", identity{Aggregated, "backend", "p", discovery.Generative, 1, 16, false, false}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			kind := launch.Worker
			if strings.HasSuffix(c.program, ".py") {
				kind = launch.Script
			}
			config, err := NewConfig(launch.Program{Kind: kind, Name: c.program, Args: strings.Fields(c.args), Env: podenv.Env{}}, Knobs{Speedup: 1, Slowdown: 1})
			if err != nil {
				t.Fatal(err)
			}
			got := identity{config.Role, config.Address.Component, config.Model, config.Card().ModelType, config.Engine.Ranks, config.Engine.BlockSize, config.Follower, config.Adapters}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("identity (-want +got):\n%s", diff)
			}
			if len(config.Warnings) > 0 {
				t.Errorf("warnings %q", config.Warnings)
			}
		})
	}
}

func TestBadCommandLines(t *testing.T) {
	for name, args := range map[string]string{
		"dynamo.sglang": "--model-path p --node-rank $((X))",
		"dynamo.vllm":   "--model m --data-parallel-address $LWS_LEADER_ADDRESS",
		"dynamo.mocker": "--model-path p --is-prefill-worker --is-decode-worker",
		"dynamo.trtllm": "--max-batch-size many",
	} {
		if _, err := NewConfig(launch.Program{Kind: launch.Worker, Name: name, Args: strings.Fields(args), Env: podenv.Env{}}, Knobs{Speedup: 1, Slowdown: 1}); err == nil {
			t.Errorf("%s %s was accepted", name, args)
		}
	}
}

func TestUnknownFlagsOnlyWarn(t *testing.T) {
	config, err := NewConfig(launch.Program{Kind: launch.Worker, Name: "dynamo.vllm", Args: []string{"--model", "m", "--no-such-thing", "1", "--eplb-config.window_size", "5"}, Env: podenv.Env{}}, Knobs{Speedup: 1, Slowdown: 1})
	if err != nil || len(config.Warnings) != 1 || !strings.Contains(config.Warnings[0], "--no-such-thing") {
		t.Errorf("warnings %q, error %v; want one warning", config.Warnings, err)
	}
}

func TestAdapterID(t *testing.T) {
	if got := AdapterID("test_lora"); got != 1983627077 {
		t.Errorf("AdapterID(test_lora) = %d, want 1983627077", got)
	}
}

func TestAnnouncementsCarryTheCacheSize(t *testing.T) {
	for backend, want := range map[string]string{
		"vllm":   "Maximum concurrency for 40,960 tokens per request: 6.40x",
		"sglang": "KV Cache is allocated. #tokens: 262144,",
		"trtllm": "GiB for max tokens in paged KV cache (262144)",
	} {
		var out bytes.Buffer
		c := Config{Backend: backend, Context: 40960}
		c.Engine.Blocks, c.Engine.BlockSize = 16384, 16
		c.announce(&out)
		if !strings.Contains(out.String(), want) {
			t.Errorf("%s announces %q, want %q in it", backend, out.String(), want)
		}
	}
}

// running starts a vLLM worker and returns its status server and store.
func running(t *testing.T, env podenv.Env, args ...string) (*Worker, *httptest.Server, *discovery.Hub) {
	t.Helper()
	knobs, err := NewKnobs(env)
	if err != nil {
		t.Fatal(err)
	}
	config, err := NewConfig(launch.Program{Kind: launch.Worker, Name: "dynamo.vllm", Args: append([]string{"--model", "m"}, args...), Env: env}, knobs)
	if err != nil {
		t.Fatal(err)
	}
	hub := discovery.NewHub()
	w, err := New(config, knobs, env, hub.Join(), 7, io.Discard, quiet)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(w.statusRoutes())
	t.Cleanup(server.Close)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan int, 1)
	go func() { ended <- w.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	return w, server, hub
}

func call(t *testing.T, method, url, body string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.Now().Add(2 * time.Minute)
	for !holds() {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

var fast = podenv.Env{"MOCKER_SPEEDUP": "1000", "MOCKER_DRAIN_LINGER": "0", "DYN_SYSTEM_USE_ENDPOINT_HEALTH_STATUS": `["generate"]`}

func with(env podenv.Env, pairs ...string) podenv.Env {
	out := env.Clone()
	for i := 0; i < len(pairs); i += 2 {
		out[pairs[i]] = pairs[i+1]
	}
	return out
}

func TestHealthFollowsTheListedEndpoint(t *testing.T) {
	_, loading, _ := running(t, with(fast, "MOCKER_STARTUP_DELAY", "1h"))
	_, server, _ := running(t, fast)
	if status, body := call(t, "GET", loading.URL+"/live", ""); status != 503 || !strings.Contains(body, `"status":"notready"`) {
		t.Errorf("while loading: %d %s", status, body)
	}
	eventually(t, "ready", func() bool { status, _ := call(t, "GET", server.URL+"/health", ""); return status == 200 })
	_, body := call(t, "GET", server.URL+"/health", "")
	var health struct {
		Status    string
		Endpoints map[string]string
		Uptime    map[string]int64
	}
	if err := json.Unmarshal([]byte(body), &health); err != nil || health.Status != "ready" || health.Endpoints["generate"] != "ready" {
		t.Errorf("body %s: %v", body, err)
	}
	if status, body := call(t, "GET", server.URL+"/nowhere", ""); status != 404 || strings.TrimSpace(body) != "Route not found" {
		t.Errorf("unknown route: %d %q", status, body)
	}
	if status, _ := call(t, "GET", server.URL+"/v1/loras", ""); status != 404 {
		t.Errorf("the LoRA API answers %d without DYN_LORA_ENABLED", status)
	}
	if status, _ := call(t, "GET", server.URL+"/metadata", ""); status != 404 {
		t.Errorf("/metadata answers %d without kubernetes discovery", status)
	}
}

func TestHealthRule(t *testing.T) {
	cases := map[string]struct {
		env   podenv.Env
		set   map[string]bool
		probe string
		want  bool
	}{
		"nothing known, not ready":            {},
		"the starting status stands":          {env: podenv.Env{"DYN_SYSTEM_STARTING_HEALTH_STATUS": "ready"}, want: true},
		"a listed endpoint must be there":     {env: podenv.Env{"DYN_SYSTEM_USE_ENDPOINT_HEALTH_STATUS": `["generate"]`}},
		"a listed endpoint that is ready":     {env: podenv.Env{"DYN_SYSTEM_USE_ENDPOINT_HEALTH_STATUS": `["generate"]`}, set: map[string]bool{"generate": true, "x": false}, want: true},
		"every listed endpoint must be ready": {env: podenv.Env{"DYN_SYSTEM_USE_ENDPOINT_HEALTH_STATUS": `["a","b"]`}, set: map[string]bool{"a": true, "b": false}},
		"without a list canaries decide":      {set: map[string]bool{"generate": true}, probe: "generate", want: true},
		"a failed canary is not ready":        {env: podenv.Env{"DYN_SYSTEM_STARTING_HEALTH_STATUS": "ready"}, set: map[string]bool{"generate": false}, probe: "generate"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			h, err := NewHealth(c.env, time.Now())
			if err != nil {
				t.Fatal(err)
			}
			for endpoint, ready := range c.set {
				h.Set(endpoint, ready)
			}
			if c.probe != "" {
				h.Probe(c.probe)
			}
			if got := h.Ready(); got != c.want {
				t.Errorf("ready = %v, want %v", got, c.want)
			}
		})
	}
}

func TestAdaptersAreLoadedListedAndPublished(t *testing.T) {
	w, server, hub := running(t, with(fast, "DYN_LORA_ENABLED", "True", "DYN_DISCOVERY_BACKEND", "kubernetes"), "--enable-lora")
	eventually(t, "serving", w.serving.Load)
	loras := server.URL + "/v1/loras"
	for range 2 { // loading is idempotent
		status, body := call(t, "POST", loras, `{"lora_name":"org/ad","source":{"uri":"s3://b/a"}}`)
		if status != 200 || !strings.Contains(body, `"status":"success"`) {
			t.Fatalf("load: %d %s", status, body)
		}
	}
	if _, body := call(t, "GET", loras, ""); !strings.Contains(body, fmt.Sprintf(`"org/ad":%d`, AdapterID("org/ad"))) || !strings.Contains(body, `"count":1`) {
		t.Errorf("list: %s", body)
	}
	var models discovery.Set
	ctx, cancel := context.WithCancel(t.Context())
	hub.Join().Watch(ctx, func(s discovery.Set) { models = s; cancel() })
	if m, ok := models.Models["dynamo/backend/generate/7/org_ad"]; !ok || m.Card.DisplayName != "org/ad" || m.Suffix != "org_ad" {
		t.Errorf("published models %v", models.Models)
	}
	if status, body := call(t, "GET", server.URL+"/metadata", ""); status != 200 || !strings.Contains(body, "org_ad") {
		t.Errorf("metadata: %d %s", status, body)
	}
	// What goes wrong inside a handler is 200 with an error in the body.
	for name, c := range map[string][3]string{
		"no name":         {"POST", loras, `{"source":{"uri":"s3://b/a"}}`},
		"no source":       {"POST", loras, `{"lora_name":"x"}`},
		"a strange place": {"POST", loras, `{"lora_name":"x","source":{"uri":"gopher://x"}}`},
		"not loaded":      {"DELETE", loras + "/nobody", ""},
	} {
		if status, body := call(t, c[0], c[1], c[2]); status != 200 || !strings.Contains(body, `"status":"error"`) {
			t.Errorf("%s: %d %s", name, status, body)
		}
	}
	if status, body := call(t, "DELETE", loras+"/org/ad", ""); status != 200 || !strings.Contains(body, `"status":"success"`) {
		t.Errorf("unload: %d %s", status, body)
	}
}

func TestAdapterFailures(t *testing.T) {
	load := `{"lora_name":"x","source":{"uri":"s3://b/a"}}`
	for name, c := range map[string]struct {
		knob   string
		args   []string
		status int
		body   string
		count  string
	}{
		"refuse":                     {knob: "refuse", args: []string{"--enable-lora"}, status: 500, body: `"status":"error"`, count: `"count":0`},
		"error":                      {knob: "error", args: []string{"--enable-lora"}, status: 200, body: `"status":"error"`, count: `"count":0`},
		"forget":                     {knob: "forget", args: []string{"--enable-lora"}, status: 200, body: `"status":"success"`, count: `"count":0`},
		"an engine without adapters": {status: 200, body: `"status":"error"`, count: `"count":0`},
		"a prefill worker":           {args: []string{"--enable-lora", "--is-prefill-worker"}, status: 500, body: "Endpoint 'load_lora' not found", count: "not found"},
	} {
		t.Run(name, func(t *testing.T) {
			w, server, _ := running(t, with(fast, "DYN_LORA_ENABLED", "true", "MOCKER_LORA_FAILURE", c.knob), c.args...)
			eventually(t, "serving", w.serving.Load)
			if status, body := call(t, "POST", server.URL+"/v1/loras", load); status != c.status || !strings.Contains(body, c.body) {
				t.Errorf("load: %d %s", status, body)
			}
			if _, body := call(t, "GET", server.URL+"/v1/loras", ""); !strings.Contains(body, c.count) {
				t.Errorf("list: %s", body)
			}
		})
	}
}

func TestEngineCalls(t *testing.T) {
	w, server, hub := running(t, fast)
	eventually(t, "serving", w.serving.Load)
	endpoints := func() int {
		var n int
		ctx, cancel := context.WithCancel(t.Context())
		hub.Join().Watch(ctx, func(s discovery.Set) { n = len(s.Endpoints); cancel() })
		return n
	}
	if status, body := call(t, "POST", server.URL+"/engine/sleep", "{}"); status != 200 {
		t.Errorf("sleep: %d %s", status, body)
	}
	if endpoints() != 0 {
		t.Error("a sleeping worker is still offered")
	}
	if status, _ := call(t, "GET", server.URL+"/health", ""); status != 200 {
		t.Error("a sleeping worker is not a sick one")
	}
	if status, body := call(t, "POST", server.URL+"/engine/wake_up", ""); status != 200 || endpoints() == 0 {
		t.Errorf("wake_up: %d %s", status, body)
	}
	if status, body := call(t, "POST", server.URL+"/engine/dance", "{}"); status != 404 || !strings.Contains(body, `"error"`) {
		t.Errorf("unknown call: %d %s", status, body)
	}
	if status, _ := call(t, "POST", server.URL+"/engine/sleep", "{"); status != 400 {
		t.Errorf("bad JSON: %d", status)
	}
}

func TestExitStatus(t *testing.T) {
	for name, c := range map[string]struct {
		env  podenv.Env
		stop bool
		want int
	}{
		"a crash while serving": {env: with(fast, "MOCKER_CRASH_AFTER", "20ms"), want: ExitEngineDied},
		"a crash while loading": {env: with(fast, "MOCKER_CRASH_AFTER", "20ms", "MOCKER_STARTUP_DELAY", "1h"), want: ExitEngineDied},
		"the end while loading": {env: with(fast, "MOCKER_STARTUP_DELAY", "1h"), stop: true, want: 0},
		"the end while idle":    {env: fast, stop: true, want: 0},
	} {
		t.Run(name, func(t *testing.T) {
			knobs, err := NewKnobs(c.env)
			if err != nil {
				t.Fatal(err)
			}
			config, err := NewConfig(launch.Program{Kind: launch.Worker, Name: "dynamo.vllm", Env: c.env}, knobs)
			if err != nil {
				t.Fatal(err)
			}
			w, err := New(config, knobs, c.env, discovery.NewHub().Join(), 7, io.Discard, quiet)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if c.stop {
				time.AfterFunc(20*time.Millisecond, cancel)
			}
			if got := w.Run(ctx); got != c.want {
				t.Errorf("exit status %d, want %d", got, c.want)
			}
		})
	}
}
