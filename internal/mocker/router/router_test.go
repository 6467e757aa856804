package router

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/dynamo-operator/dynamo-operator/internal/mocker/discovery"
	"github.com/dynamo-operator/dynamo-operator/internal/mocker/launch"
	"github.com/dynamo-operator/dynamo-operator/internal/mocker/podenv"
	"github.com/dynamo-operator/dynamo-operator/internal/mocker/wire"
)

var quiet = slog.New(slog.DiscardHandler)

// worker answers with its own name.
func worker(t *testing.T, hub *discovery.Hub, a discovery.Address, name string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_ = wire.NewWriter(w).Send(wire.Chunk{Text: name, FinishReason: "stop"})
	}))
	t.Cleanup(server.Close)
	data := discovery.NewMetadata()
	data.Endpoints[a.Key()] = discovery.NewEndpoint(a, server.URL)
	hub.Join().Publish(data)
}

// start runs a router until the test ends.
func start(t *testing.T, hub *discovery.Hub, instance uint64, kind launch.Kind, args ...string) {
	t.Helper()
	client, err := wire.NewClient("")
	if err != nil {
		t.Fatal(err)
	}
	r, err := New(launch.Program{Kind: kind, Args: args, Env: podenv.Env{}}, hub.Join(), instance, client, quiet)
	if err != nil {
		t.Fatal(err)
	}
	run := r.RunLocal
	if kind == launch.GlobalRouter {
		run = r.RunGlobal
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan int, 1)
	go func() { ended <- run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if status := <-ended; status != 0 {
			t.Errorf("router ended with %d", status)
		}
	})
}

// ask sends a request to an endpoint once it is there and routes.
func ask(t *testing.T, hub *discovery.Hub, a discovery.Address, request wire.Request) string {
	t.Helper()
	client, err := wire.NewClient("")
	if err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(2 * time.Minute)
	for {
		var set discovery.Set
		ctx, cancel := context.WithCancel(t.Context())
		hub.Join().Watch(ctx, func(s discovery.Set) { set = s; cancel() })
		for _, e := range set.At(a) {
			stream, err := client.Call(t.Context(), e.Transport.HTTP, request)
			if err != nil {
				break
			}
			chunk, err := stream.Next()
			stream.Close()
			if err == nil {
				return chunk.Text
			}
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s never answers", a.URI())
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func TestGlobalRouterPicksThePool(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config.json")
	config := `{"prefill_pool_dynamo_namespaces":["p0","p1"],"decode_pool_dynamo_namespaces":["d0"],
	"prefill_pool_selection_strategy":{"ttft_min":10,"ttft_max":1000,"ttft_resolution":2,"isl_min":0,"isl_max":32000,"isl_resolution":2,"prefill_pool_mapping":[[0,1],[0,1]]},
	"decode_pool_selection_strategy":{"itl_min":10,"itl_max":100,"itl_resolution":2,"context_length_min":0,"context_length_max":32000,"context_length_resolution":2,"decode_pool_mapping":[[0,0],[0,0]]}}`
	if err := os.WriteFile(file, []byte(config), 0o644); err != nil {
		t.Fatal(err)
	}
	hub := discovery.NewHub()
	pools := map[string]string{"p0": "prefill", "p1": "prefill", "d0": "backend"}
	instance := uint64(10)
	for namespace, component := range pools {
		worker(t, hub, discovery.Address{Namespace: namespace, Component: component, Endpoint: "generate", Instance: instance}, namespace)
		start(t, hub, instance+1, launch.Router, "--endpoint", namespace+"."+component+".generate", "--block-size", "16")
		instance += 2
	}
	start(t, hub, 1, launch.GlobalRouter, "--config", file, "--model-name", "m", "--default-ttft-target", "100", "--namespace", "top")
	at := func(endpoint string) discovery.Address {
		return discovery.Address{Namespace: "top", Component: "global_router", Endpoint: endpoint}
	}
	tokens := []uint32{1, 2, 3}
	if got := ask(t, hub, at("prefill_generate"), wire.Request{Tokens: tokens}); got != "p0" {
		t.Errorf("by default prefill went to %s, want p0", got)
	}
	if got := ask(t, hub, at("prefill_generate"), wire.Request{Tokens: tokens, TTFT: 900}); got != "p1" {
		t.Errorf("prefill with time to spare went to %s, want p1", got)
	}
	if got := ask(t, hub, at("decode_generate"), wire.Request{Tokens: tokens}); got != "d0" {
		t.Errorf("decode went to %s, want d0", got)
	}
}

func TestPoolsAreChecked(t *testing.T) {
	for name, p := range map[string]pools{
		"no mapping":           {},
		"a pool out of range":  {PrefillNamespaces: []string{"a"}, Prefill: prefillGrid{ISLResolution: 1, TTFTResolution: 1, Mapping: [][]int{{1}}}},
		"rows of wrong length": {PrefillNamespaces: []string{"a"}, Prefill: prefillGrid{ISLResolution: 1, TTFTResolution: 2, Mapping: [][]int{{0}}}},
	} {
		if p.validate() == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}
