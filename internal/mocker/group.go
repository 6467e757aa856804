package mocker

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strconv"
	"sync"

	"github.com/dynamo-operator/dynamo-operator/internal/core/commandline"
	"github.com/dynamo-operator/dynamo-operator/internal/mocker/auxiliary"
	"github.com/dynamo-operator/dynamo-operator/internal/mocker/launch"
	"github.com/dynamo-operator/dynamo-operator/internal/mocker/podenv"
	"github.com/dynamo-operator/dynamo-operator/internal/mocker/rendezvous"
	"github.com/dynamo-operator/dynamo-operator/internal/mocker/worker"
)

// rayPort is Ray's own default.
const rayPort = 6379

// container is what outlives the commands of one container: the Ray node that
// one of them starts in the background and a later one uses.
type container struct {
	mu   sync.Mutex
	head *rendezvous.Head
	node *rendezvous.Group
}

// close ends what runs in the background.
func (c *container) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.head != nil {
		c.head.Close()
	}
	c.node.Close()
}

// meeting is how a worker of this container finds the rest of its group; nil if
// it is alone.
func (c *container) meeting(config worker.Config, env podenv.Env, log *slog.Logger) (worker.Meeting, error) {
	n, err := rendezvous.NewNetwork(env, log)
	if err != nil {
		return nil, err
	}
	switch {
	case config.Place != nil:
		return func(ctx context.Context) (*rendezvous.Group, error) { return rendezvous.Meet(ctx, *config.Place, n) }, nil
	case config.RayGPUs > 0:
		return func(ctx context.Context) (*rendezvous.Group, error) { return c.claim(ctx, config.RayGPUs, env) }, nil
	}
	return nil, nil
}

// claim takes GPUs from the Ray cluster of this container's head; without one,
// an engine has only those of its own node.
func (c *container) claim(ctx context.Context, need int, env podenv.Env) (*rendezvous.Group, error) {
	c.mu.Lock()
	head := c.head
	c.mu.Unlock()
	if head != nil {
		return head.Claim(ctx, need)
	}
	gpus, err := env.GPUs()
	if err == nil && gpus > 0 && need > gpus {
		err = fmt.Errorf("the engine needs %d GPUs, this node has %d and no Ray cluster was started", need, gpus)
	}
	return nil, err
}

// rayHead plays ray start --head.
func (c *container) rayHead(ctx context.Context, p launch.Program, log *slog.Logger) (int, error) {
	n, gpus, err := rayNode(p, log)
	if err != nil {
		return 1, err
	}
	port, err := commandline.NewArgs(p.Args).Int(rayPort, "--port")
	if err != nil {
		return worker.ExitUsage, err
	}
	head, err := rendezvous.StartHead(n, port, gpus)
	if err != nil {
		return 1, err
	}
	c.mu.Lock()
	c.head = head
	c.mu.Unlock()
	if slices.Contains(p.Args, "--block") {
		<-ctx.Done()
	}
	return 0, nil
}

// rayFollower plays ray start --address: with --block it ends with the cluster.
func (c *container) rayFollower(ctx context.Context, p launch.Program, log *slog.Logger) (int, error) {
	n, gpus, err := rayNode(p, log)
	if err != nil {
		return 1, err
	}
	address, _ := commandline.NewArgs(p.Args).Value("--address")
	group, err := rendezvous.JoinRay(ctx, n, address, gpus)
	if err != nil {
		if ctx.Err() != nil {
			return 0, nil
		}
		return 1, err
	}
	if !slices.Contains(p.Args, "--block") {
		c.mu.Lock()
		c.node = group
		c.mu.Unlock()
		return 0, nil
	}
	defer group.Close()
	select {
	case <-ctx.Done():
		return 0, nil
	case loss := <-group.Lost():
		return 1, loss
	}
}

func rayNode(p launch.Program, log *slog.Logger) (rendezvous.Network, int, error) {
	n, err := rendezvous.NewNetwork(p.Env, log)
	if err != nil {
		return n, 0, err
	}
	gpus, err := p.Env.GPUs()
	if err != nil {
		return n, 0, err
	}
	gpus, err = commandline.NewArgs(p.Args).Int(gpus, "--num-gpus")
	return n, gpus, err
}

// spread plays mpirun.
func spread(ctx context.Context, p launch.Program, s launch.Streams, run func(context.Context, podenv.Env) int) int {
	status, err := spreadJob(ctx, p, logger(s.Err), run)
	if err != nil && ctx.Err() == nil {
		fmt.Fprintf(s.Err, "%s: error: %v\n", p.Name, err)
	}
	return status
}

func spreadJob(ctx context.Context, p launch.Program, log *slog.Logger, run func(context.Context, podenv.Env) int) (int, error) {
	job, err := rendezvous.ParseJob(p.Args)
	if err != nil {
		return 1, err
	}
	n, err := rendezvous.NewNetwork(p.Env, log)
	if err != nil {
		return 1, err
	}
	gpus, err := p.Env.GPUs()
	if err != nil {
		return 1, err
	}
	group, err := rendezvous.Span(ctx, job, n, gpus)
	if err != nil {
		if ctx.Err() != nil {
			return 0, nil
		}
		return 1, err
	}
	defer group.Close()
	return whileWhole(ctx, group, func(ctx context.Context) int { return run(ctx, rankEnv(job)) })
}

// rankEnv is what Open MPI tells the processes it starts.
func rankEnv(job rendezvous.Job) podenv.Env {
	return podenv.Env{"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": strconv.Itoa(job.Processes)}
}

// whileWhole runs a command until it ends by itself or by the group's breaking.
func whileWhole(ctx context.Context, group *rendezvous.Group, run func(context.Context) int) (int, error) {
	inner, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan int, 1)
	go func() { ended <- run(inner) }()
	select {
	case status := <-ended:
		return status, nil
	case loss := <-group.Lost():
		if ctx.Err() != nil { // all hosts are being stopped, this one takes longest
			return <-ended, nil
		}
		stop()
		<-ended
		return 1, loss
	}
}

// dial connects to a host of the cluster.
func dial(ctx context.Context, address string, env podenv.Env) (net.Conn, error) {
	n, err := rendezvous.NewNetwork(env, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	return n.Dial(ctx, "tcp", address)
}

// awaitLeader plays the script that holds a node back until its leader listens.
func awaitLeader(ctx context.Context, p launch.Program, log *slog.Logger) (int, error) {
	n, err := rendezvous.NewNetwork(p.Env, log)
	if err != nil {
		return 1, err
	}
	address := net.JoinHostPort(p.Env["LEADER_HOST"], p.Env["LEADER_PORT"])
	if err := rendezvous.CheckAddress(address); err != nil {
		return 1, err
	}
	if err := n.Await(ctx, address); err != nil {
		return 1, err
	}
	return 0, nil
}

// runSidecar plays a worker whose engine is another container of the pod: what it
// is told by that engine, and its own flags, are the worker's.
func (c *container) runSidecar(ctx context.Context, p launch.Program, s launch.Streams, log *slog.Logger) (int, error) {
	address, ok := commandline.NewLooseArgs(p.Args).Value("--vllm-endpoint", "--sglang-endpoint", "--trtllm-endpoint")
	if !ok {
		return worker.ExitUsage, fmt.Errorf("no --vllm-endpoint, --sglang-endpoint or --trtllm-endpoint names the engine")
	}
	n, err := rendezvous.NewNetwork(p.Env, log)
	if err != nil {
		return worker.ExitUsage, err
	}
	waiting, cancel := context.WithTimeoutCause(ctx, n.Timeout, fmt.Errorf("not within %s", n.Timeout))
	engine, gone, err := auxiliary.Attach(waiting, address, func(ctx context.Context, address string) (net.Conn, error) { return dial(ctx, address, p.Env) }, log)
	cancel()
	if err != nil {
		if ctx.Err() != nil {
			return 0, nil
		}
		return 1, err
	}
	whole := launch.Program{Kind: launch.Worker, Name: "dynamo." + engine.Backend, Args: slices.Concat(engine.Args, p.Args), Env: p.Env}
	inner, stop := context.WithCancel(ctx)
	defer stop()
	type end struct {
		status int
		err    error
	}
	ended := make(chan end, 1)
	go func() {
		status, err := c.runWorker(inner, whole, s, log)
		ended <- end{status, err}
	}()
	select {
	case e := <-ended:
		return e.status, e.err
	case <-gone:
		stop()
		e := <-ended
		if ctx.Err() != nil { // the pod is being stopped
			return e.status, e.err
		}
		return 1, fmt.Errorf("lost the engine at %s", address)
	}
}

// resolves plays getent.
func resolves(ctx context.Context, host string, env podenv.Env) bool {
	n, err := rendezvous.NewNetwork(env, slog.New(slog.DiscardHandler))
	return err == nil && n.Resolves(ctx, host)
}

// sshDaemon plays the node of an MPI job that waits for the leader's call.
func sshDaemon(ctx context.Context, p launch.Program, log *slog.Logger) (int, error) {
	port, err := commandline.NewArgs(p.Args).Int(rendezvous.SSHPort, "-p")
	if err != nil {
		return 1, err
	}
	n, err := rendezvous.NewNetwork(p.Env, log)
	if err != nil {
		return 1, err
	}
	if err := rendezvous.ServeSSH(ctx, n, port); err != nil {
		return 1, err
	}
	return 0, nil
}
