// Package worker plays one engine process of a graph: vLLM, SGLang, TensorRT-LLM,
// the runtime's own mocker, or a user's script. It registers itself, answers
// health probes, loads adapters and streams tokens at the engine's pace. It does
// not route: what it is sent, it serves.
package worker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/dynamo-operator/dynamo-operator/internal/mocker/auxiliary"
	"github.com/dynamo-operator/dynamo-operator/internal/mocker/discovery"
	"github.com/dynamo-operator/dynamo-operator/internal/mocker/engine"
	"github.com/dynamo-operator/dynamo-operator/internal/mocker/podenv"
	"github.com/dynamo-operator/dynamo-operator/internal/mocker/rendezvous"
)

// Exit statuses of a worker.
const (
	// ExitUsage is a command line that cannot be read, as argparse has it.
	ExitUsage = 2
	// ExitEngineDied is an engine that crashed.
	ExitEngineDied = 1
	// ExitDrainOverrun is 911, of which the kernel keeps eight bits.
	ExitDrainOverrun = 911 & 0xff
)

// Meeting brings the nodes of a worker's group together and returns when all
// are there.
type Meeting func(ctx context.Context) (*rendezvous.Group, error)

// Worker is a running worker.
type Worker struct {
	// Meet is how the worker finds its group; nil if it is alone.
	Meet Meeting

	config Config
	knobs  Knobs
	env    podenv.Env
	log    *slog.Logger
	out    io.Writer
	store  discovery.Store

	health   *Health
	metrics  *metrics
	adapters Adapters
	engine   *engine.Engine
	base     string // URL of the request plane, without the endpoint
	host     string // where others reach it
	lastUsed atomic.Int64
	taken    atomic.Int64
	// crash takes one crash by request, and one by time.
	crash chan time.Time
	// registration is when it registers; nil if it has.
	registration *time.Timer

	// serving is true from registration to the end of the drain.
	serving  atomic.Bool
	asleep   atomic.Bool
	active   sync.WaitGroup
	accept   sync.RWMutex // held for writing while serving is switched off
	cutShort context.CancelFunc
}

// New prepares a worker. The instance id must be the one of store.
func New(config Config, knobs Knobs, env podenv.Env, store discovery.Store, instance uint64, out io.Writer, log *slog.Logger) (*Worker, error) {
	now := time.Now()
	health, err := NewHealth(env, now)
	if err != nil {
		return nil, err
	}
	config.Address.Instance = instance
	return &Worker{
		config: config, knobs: knobs, env: env, log: log, out: out, store: store,
		health: health, metrics: newMetrics(config, now), crash: make(chan time.Time, 2),
	}, nil
}

// Run serves until ctx ends, then drains. It returns the exit status.
func (w *Worker) Run(ctx context.Context) int {
	for _, warning := range w.config.Warnings {
		w.log.Warn(warning)
	}
	stopStatus, err := auxiliary.ServeStatus(w.env, w.statusRoutes(), w.log)
	if err != nil {
		w.log.Error("system status server", "error", err)
		return ExitEngineDied
	}
	defer stopStatus()
	stopPorts, err := w.openPorts()
	if err != nil {
		w.log.Error("ports of the engine", "error", err)
		return ExitEngineDied
	}
	defer stopPorts()
	crash := w.crashes()
	group, err := w.meet(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return 0
		}
		w.log.Error("multinode group", "error", err)
		return ExitEngineDied
	}
	defer group.Close()
	if w.config.Follower {
		return w.follow(ctx, group, crash)
	}
	if !w.load(ctx, crash) {
		return w.endBeforeServing(ctx)
	}
	lead, err := w.standBy(ctx, crash)
	if err != nil {
		return w.endBeforeServing(ctx)
	}
	defer lead()
	stopRequests, err := w.serveRequests()
	if err != nil {
		w.log.Error("request plane", "error", err)
		return ExitEngineDied
	}
	defer stopRequests()
	w.register()
	select {
	case <-ctx.Done():
		return w.drain()
	case loss := <-group.Lost():
		w.log.Error("engine died with its group", "error", loss)
		return ExitEngineDied
	case <-crash:
		w.log.Error("engine died, as asked by MOCKER_CRASH_AFTER")
		return ExitEngineDied
	}
}

func (w *Worker) meet(ctx context.Context) (*rendezvous.Group, error) {
	if w.Meet == nil {
		return nil, nil
	}
	return w.Meet(ctx)
}

// follow lends the node to its leader. A follower registers nothing, in hybrid
// load balancing neither: no Service selects its pod.
func (w *Worker) follow(ctx context.Context, group *rendezvous.Group, crash <-chan time.Time) int {
	w.log.Info("multinode follower: serving the leader, registering nothing", "backend", w.config.Backend)
	select {
	case <-ctx.Done():
		return 0
	case loss := <-group.Lost():
		w.log.Error("engine died with its group", "error", loss)
	case <-crash:
		w.log.Error("engine died, as asked by MOCKER_CRASH_AFTER")
	}
	return ExitEngineDied
}

// crashes are when the knobs say; never, if none is set.
func (w *Worker) crashes() <-chan time.Time {
	if w.knobs.CrashAfter > 0 {
		time.AfterFunc(w.knobs.CrashAfter, func() { w.crash <- time.Now() })
	}
	return w.crash
}

// load takes the time an engine needs to load its model.
func (w *Worker) load(ctx context.Context, crash <-chan time.Time) bool {
	w.log.Info("loading", "backend", w.config.Backend, "model", w.config.SourcePath, "role", w.config.Role, "timing", w.config.Timing)
	select {
	case <-time.After(w.config.Startup):
	case <-ctx.Done():
		return false
	case <-crash:
		return false
	}
	w.config.announce(w.out)
	background, stop := context.WithCancel(context.Background())
	w.cutShort = stop
	w.engine = engine.Start(background, w.config.Engine)
	w.metrics.watch(w.config, w.engine)
	return true
}

func (w *Worker) endBeforeServing(ctx context.Context) int {
	if ctx.Err() != nil {
		return 0
	}
	w.log.Error("engine died while loading, as asked by MOCKER_CRASH_AFTER")
	return ExitEngineDied
}

// serveRequests opens the request plane. Its port is fixed inside a pod, where
// the address is the pod's own, and any free one elsewhere.
func (w *Worker) serveRequests() (func(), error) {
	byDefault := 0
	if w.env["DYNAMO_LISTEN_HOST"] != "" {
		byDefault = 8888
	}
	port, err := w.env.Int("DYN_HTTP_RPC_PORT", byDefault)
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", w.env.Listen(port))
	if errors.Is(err, syscall.EADDRINUSE) && w.env["DYN_HTTP_RPC_PORT"] == "" {
		listener, err = net.Listen("tcp", w.env.Listen(0)) // a second container of the pod
	}
	if err != nil {
		return nil, err
	}
	root := w.env.String("/v1/rpc", "DYN_HTTP_RPC_ROOT_PATH")
	if w.host, err = w.env.AdvertiseHost(); err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	_, bound, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		return nil, err
	}
	w.base = "http://" + net.JoinHostPort(w.host, bound) + root
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+root+"/{endpoint}", w.handle)
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = server.Serve(listener) }() // ends with Close, below
	return func() { _ = server.Close() }, nil
}

// endpoints this worker offers.
func (w *Worker) endpoints() []string {
	names := []string{w.config.Address.Endpoint}
	if w.config.Backend == "vllm" {
		names = append(names, "clear_kv_blocks")
	}
	return append(names, w.config.adapterEndpoints()...)
}

// register makes the worker known and healthy.
func (w *Worker) register() {
	w.serving.Store(true)
	w.lastUsed.Store(time.Now().UnixNano())
	for _, name := range w.endpoints() {
		w.health.Set(name, true)
	}
	if w.env.Bool("DYN_HEALTH_CHECK_ENABLED", false) {
		w.health.Probe(w.config.Address.Endpoint)
		go w.canary()
	}
	if w.knobs.Registration > 0 {
		w.registration = time.AfterFunc(w.knobs.Registration, w.publish)
		w.log.Warn("registering later, as asked by MOCKER_REGISTRATION_DELAY", "delay", w.knobs.Registration)
	} else {
		w.publish()
	}
	w.log.Info("serving", "endpoint", w.config.Address.URI(), "instance", fmt.Sprintf("%x", w.config.Address.Instance), "model", w.config.Model, "at", w.base)
}

// publish says what the worker offers now.
func (w *Worker) publish() { w.store.Publish(w.offered()) }

// offered is nothing before registration, after the drain, and in its sleep.
func (w *Worker) offered() discovery.Metadata {
	data := discovery.NewMetadata()
	if !w.serving.Load() || w.asleep.Load() {
		return data
	}
	for _, name := range w.endpoints() {
		address := w.config.Address
		address.Endpoint = name
		data.Endpoints[address.Key()] = discovery.NewEndpoint(address, w.base+"/"+name)
	}
	for _, model := range w.models() {
		data.ModelCards[model.Key()] = model
	}
	return data
}

func (w *Worker) models() []discovery.Model {
	if w.config.Model == "" {
		return nil
	}
	card := w.config.Card()
	if w.config.Bootstrap > 0 && w.config.Role == Prefill {
		card.Runtime.DisaggregatedEndpoint = &discovery.DisaggregatedEndpoint{Host: w.host, Port: w.config.Bootstrap}
	}
	return append([]discovery.Model{discovery.NewModel(w.config.Address, card, "")}, w.adapterModels(card)...)
}

// withdrawTimeout bounds how long leaving waits for the discovery store.
const withdrawTimeout = 3 * time.Second

// drain leaves in order: withdraw, take what was already on its way, finish it.
func (w *Worker) drain() int {
	w.log.Info("draining")
	limit, err := w.env.Duration("DYN_WORKER_GRACEFUL_SHUTDOWN_TIMEOUT", 30*time.Second)
	if err != nil {
		w.log.Warn("using the default", "error", err)
		limit = 30 * time.Second
	}
	deadline := time.After(limit)
	if w.registration != nil {
		w.registration.Stop()
	}
	for _, name := range w.endpoints() {
		w.health.Set(name, false)
	}
	withdraw, cancel := context.WithTimeout(context.Background(), withdrawTimeout)
	defer cancel()
	w.store.Close(withdraw)
	// Routers learn of it a debounce later; until then refusing would fail
	// requests that nobody could have sent elsewhere.
	time.Sleep(min(w.knobs.DrainLinger, limit))
	w.accept.Lock()
	w.serving.Store(false)
	w.accept.Unlock()
	// Decode requests that may migrate are better continued elsewhere.
	if w.config.Role != Prefill && w.config.Migration > 0 {
		w.cutShort()
		return 0
	}
	done := make(chan struct{})
	if !w.knobs.DrainHang {
		go func() { w.active.Wait(); close(done) }()
	} else {
		w.log.Warn("going on until it is killed, as asked by MOCKER_DRAIN_HANG")
		deadline = nil
	}
	select {
	case <-done:
		w.log.Info("drained")
		return 0
	case <-deadline:
		w.log.Error("requests still under way at the end of the graceful period", "timeout", limit)
		return ExitDrainOverrun
	}
}

// canary asks the idle engine for one token now and then.
func (w *Worker) canary() {
	idle, err := w.env.Duration("DYN_CANARY_WAIT_TIME", 10*time.Second)
	if err != nil || idle <= 0 {
		idle = 10 * time.Second
	}
	timeout, err := w.env.Duration("DYN_HEALTH_CHECK_REQUEST_TIMEOUT", 3*time.Second)
	if err != nil || timeout <= 0 {
		timeout = 3 * time.Second
	}
	ticker := time.NewTicker(idle)
	defer ticker.Stop()
	for range ticker.C {
		if !w.serving.Load() {
			return
		}
		if time.Since(time.Unix(0, w.lastUsed.Load())) < idle {
			continue
		}
		w.health.Set(w.config.Address.Endpoint, w.probe(timeout))
	}
}

func (w *Worker) probe(timeout time.Duration) bool {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	g, err := w.engine.Submit(engine.Request{Prompt: []uint32{1}, MaxTokens: 1, Rank: -1})
	if err != nil {
		return false
	}
	if _, _, err := g.Next(ctx, 0); err != nil {
		g.Cancel()
		w.log.Warn("canary request failed", "timeout", timeout)
		return false
	}
	return true
}
