// Package router plays the standalone routers of a graph: the local one, which
// spreads requests over the workers of one endpoint, and the global one, which
// picks a pool of workers first. Both pass streams on unchanged.
package router

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/dynamo-operator/dynamo-operator/internal/core/commandline"
	"github.com/dynamo-operator/dynamo-operator/internal/mocker/discovery"
	"github.com/dynamo-operator/dynamo-operator/internal/mocker/kv"
	"github.com/dynamo-operator/dynamo-operator/internal/mocker/launch"
	"github.com/dynamo-operator/dynamo-operator/internal/mocker/route"
	"github.com/dynamo-operator/dynamo-operator/internal/mocker/wire"
)

// Router forwards requests.
type Router struct {
	program  launch.Program
	store    discovery.Store
	instance uint64
	client   *wire.Client
	log      *slog.Logger
	options  route.Options
	block    int

	mu      sync.RWMutex
	set     discovery.Set
	routers map[discovery.Address]*route.Router
}

// New prepares a router.
func New(p launch.Program, store discovery.Store, instance uint64, client *wire.Client, log *slog.Logger) (*Router, error) {
	s := p.Settings()
	weight := s.Float(1, "--kv-overlap-score-weight", "--router-kv-overlap-score-weight", "--router-kv-overlap-score-credit")
	block := s.Int(128, "--block-size", "--router-block-size")
	if s.Err != nil {
		return nil, s.Err
	}
	if block < 1 {
		return nil, fmt.Errorf("argument --block-size: must be at least 1, is %d", block)
	}
	return &Router{
		program: p, store: store, instance: instance, client: client, log: log, block: block,
		options: route.Options{Mode: route.KV, OverlapWeight: weight}, routers: map[discovery.Address]*route.Router{},
	}, nil
}

// rule chooses the endpoint a request goes to.
type rule func(wire.Request) (discovery.Address, error)

// RunLocal forwards to the workers of --endpoint.
func (r *Router) RunLocal(ctx context.Context) int {
	text, ok := commandline.NewLooseArgs(r.program.Args).Value("--endpoint")
	if !ok {
		r.log.Error("dynamo.router: the following arguments are required: --endpoint")
		return 2
	}
	target, err := discovery.ParseAddress(text)
	if err != nil {
		r.log.Error("dynamo.router", "error", err)
		return 2
	}
	// A local router serves the namespace whose workers it fronts.
	own := discovery.Address{Namespace: target.Namespace, Component: "router", Instance: r.instance}
	toTarget := func(wire.Request) (discovery.Address, error) { return target, nil }
	return r.run(ctx, own, map[string]rule{"generate": toTarget}, nil)
}

// RunGlobal forwards to the local router of the pool its configuration names,
// and shows itself as both prefill and decode worker of the model.
func (r *Router) RunGlobal(ctx context.Context) int {
	args := commandline.NewLooseArgs(r.program.Args)
	pools, model, err := globalConfig(args)
	if err != nil {
		r.log.Error("dynamo.global_router", "error", err)
		return 2
	}
	namespace, ok := args.Value("--namespace")
	if !ok {
		namespace = r.program.Env.String("dynamo", "DYN_NAMESPACE")
	}
	own := discovery.Address{Namespace: namespace, Component: "global_router", Instance: r.instance}
	card := func(endpoint string, kind discovery.ModelType) discovery.Model {
		a := own
		a.Endpoint = endpoint
		return discovery.NewModel(a, discovery.Card{
			DisplayName: model, Slug: discovery.Slug(model), SourcePath: model, ContextLength: defaultContext,
			BlockSize: r.block, ModelType: kind, ModelInput: "Tokens",
		}, "")
	}
	models := []discovery.Model{card("prefill_generate", discovery.Prefill), card("decode_generate", discovery.Generative)}
	return r.run(ctx, own, map[string]rule{"prefill_generate": pools.prefill, "decode_generate": pools.decode}, models)
}

// defaultContext is what a router assumes of a model it does not run.
const defaultContext = 40960

func globalConfig(args commandline.Args) (*pools, string, error) {
	model, ok := args.Value("--model-name")
	if !ok {
		return nil, "", errors.New("the following arguments are required: --model-name")
	}
	file, ok := args.Value("--config")
	if !ok {
		return nil, "", errors.New("the following arguments are required: --config")
	}
	body, err := os.ReadFile(file)
	if err != nil {
		return nil, "", err
	}
	p := &pools{}
	if err := json.Unmarshal(body, p); err != nil {
		return nil, "", fmt.Errorf("configuration %s: %w", file, err)
	}
	if p.ttft, err = args.Float(0, "--default-ttft-target"); err != nil {
		return nil, "", err
	}
	if p.itl, err = args.Float(0, "--default-itl-target"); err != nil {
		return nil, "", err
	}
	err = p.validate()
	return p, model, err
}

// run serves the rules' endpoints until ctx ends.
func (r *Router) run(ctx context.Context, own discovery.Address, rules map[string]rule, models []discovery.Model) int {
	port := 0
	if r.program.Env["DYNAMO_LISTEN_HOST"] != "" {
		port = 8888
	}
	port, err := r.program.Env.Int("DYN_HTTP_RPC_PORT", port)
	if err != nil {
		r.log.Error("router", "error", err)
		return 2
	}
	listener, err := net.Listen("tcp", r.program.Env.Listen(port))
	if err != nil {
		r.log.Error("router cannot listen", "error", err)
		return 1
	}
	_, bound, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		r.log.Error("router", "error", err)
		return 1
	}
	host, err := r.program.Env.AdvertiseHost()
	if err != nil {
		r.log.Error("router", "error", err)
		return 1
	}
	mux := http.NewServeMux()
	data := discovery.NewMetadata()
	for name, choose := range rules {
		mux.HandleFunc("POST /v1/rpc/"+name, r.forward(choose))
		address := own
		address.Endpoint = name
		data.Endpoints[address.Key()] = discovery.NewEndpoint(address, "http://"+net.JoinHostPort(host, bound)+"/v1/rpc/"+name)
	}
	for _, m := range models {
		data.ModelCards[m.Key()] = m
	}
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = server.Serve(listener) }() // ends with Shutdown, below
	go r.store.Watch(ctx, func(s discovery.Set) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.set = s
	})
	r.store.Publish(data)
	r.log.Info("router serving", "component", own.Component, "namespace", own.Namespace)
	<-ctx.Done()
	closing, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	r.store.Close(closing)
	if err := server.Shutdown(closing); err != nil {
		r.log.Warn("router left requests behind", "error", err)
	}
	return 0
}

// forward passes one request to a worker of the chosen endpoint.
func (r *Router) forward(choose rule) http.HandlerFunc {
	return func(w http.ResponseWriter, h *http.Request) {
		request, ok := wire.Read(w, h)
		if !ok {
			return
		}
		address, err := choose(request)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		url, release, err := r.pick(address, request)
		if err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		defer release()
		stream, err := r.client.Call(h.Context(), url, request)
		if err != nil {
			// 503 promises that nobody took the request; a worker that took it
			// and died is another matter.
			status := http.StatusBadGateway
			if errors.Is(err, wire.ErrNotAccepted) {
				status = http.StatusServiceUnavailable
			}
			http.Error(w, err.Error(), status)
			return
		}
		defer stream.Close()
		out := wire.NewWriter(w)
		for {
			chunk, err := stream.Next()
			if err != nil || out.Send(chunk) != nil {
				return
			}
		}
	}
}

func (r *Router) pick(address discovery.Address, request wire.Request) (string, func(), error) {
	r.mu.Lock()
	targets := r.set.At(address)
	router, ok := r.routers[address]
	if !ok {
		router = route.New(r.options)
		r.routers[address] = router
	}
	r.mu.Unlock()
	if len(targets) == 0 {
		return "", nil, fmt.Errorf("no instance of %s", address.URI())
	}
	var candidates []route.Candidate
	for _, t := range targets {
		candidates = append(candidates, route.Candidate{Instance: t.Instance})
	}
	chosen, release := router.Choose(candidates, kv.Chain(request.Tokens, r.block))
	for _, t := range targets {
		if t.Instance == chosen.Instance {
			return t.Transport.HTTP, release, nil
		}
	}
	release()
	return "", nil, fmt.Errorf("instance %x of %s vanished", chosen.Instance, address.URI())
}
