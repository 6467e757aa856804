// Package mocker plays containers of the Dynamo runtime without a GPU: one
// program that reads the command a container would run and takes the part it
// describes. It is the composition root of the packages below it; each of them
// plays one part.
package mocker

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"

	"github.com/dynamo-operator/dynamo-operator/internal/mocker/auxiliary"
	"github.com/dynamo-operator/dynamo-operator/internal/mocker/discovery"
	"github.com/dynamo-operator/dynamo-operator/internal/mocker/frontend"
	"github.com/dynamo-operator/dynamo-operator/internal/mocker/launch"
	"github.com/dynamo-operator/dynamo-operator/internal/mocker/podenv"
	"github.com/dynamo-operator/dynamo-operator/internal/mocker/router"
	"github.com/dynamo-operator/dynamo-operator/internal/mocker/wire"
	"github.com/dynamo-operator/dynamo-operator/internal/mocker/worker"
)

// Main plays the container whose command and args are words, until it ends by
// itself or ctx does, and returns its exit status.
func Main(ctx context.Context, words []string) int {
	streams := launch.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}
	c := &container{}
	defer c.close()
	shell := launch.Shell{Run: c.run, Spread: spread, Resolves: resolves, Dial: dial, Log: logger(os.Stderr)}
	return shell.Exec(ctx, words, podenv.FromOS(), streams)
}

func logger(w io.Writer) *slog.Logger {
	return slog.New(slog.NewTextHandler(w, nil))
}

// run plays one program. It is a launch.Runner.
func (c *container) run(ctx context.Context, p launch.Program, s launch.Streams) int {
	log := logger(s.Err)
	var status int
	var err error
	switch p.Kind {
	case launch.Frontend:
		status, err = runFrontend(ctx, p, log)
	case launch.Worker:
		status, err = c.runWorker(ctx, p, s, log)
	case launch.Script, launch.Idle:
		if p.Env["DYN_COMPONENT"] == "frontend" || p.Env["DYN_SYSTEM_PORT"] == "" {
			return auxiliary.Idle(ctx, p, log) // nobody asks for its health
		}
		log.Warn("not known to the mock engine; playing a component that takes part and answers health checks", "program", p.Name)
		p.Kind = launch.Script
		status, err = c.runWorker(ctx, p, s, log)
	case launch.Router, launch.GlobalRouter:
		status, err = runRouter(ctx, p, log)
	case launch.Sidecar:
		status, err = c.runSidecar(ctx, p, s, log)
	case launch.Engine:
		return auxiliary.Engine(ctx, p, log)
	case launch.LeaderWait:
		status, err = awaitLeader(ctx, p, log)
	case launch.Planner:
		return auxiliary.Planner(ctx, p, log)
	case launch.EndpointPicker:
		return auxiliary.EndpointPicker(ctx, p, log)
	case launch.SSHDaemon:
		status, err = sshDaemon(ctx, p, log)
	case launch.RayHead:
		status, err = c.rayHead(ctx, p, log)
	case launch.RayNode:
		status, err = c.rayFollower(ctx, p, log)
	default:
		return auxiliary.Idle(ctx, p, log)
	}
	if err != nil {
		fmt.Fprintf(s.Err, "%s: error: %v\n", p.Name, err)
	}
	return status
}

func runFrontend(ctx context.Context, p launch.Program, log *slog.Logger) (int, error) {
	config, err := frontend.NewConfig(p)
	if err != nil {
		return worker.ExitUsage, err
	}
	for _, warning := range frontend.Warnings(p) {
		log.Warn(warning)
	}
	store, _, err := discovery.Open(p.Env, log)
	if err != nil {
		return 1, err
	}
	client, err := wire.NewClient(p.Env["DYNAMO_FORWARD_PROXY"])
	if err != nil {
		return 1, err
	}
	return frontend.New(config, store, client, log).Run(ctx, p.Env.Listen(config.Port)), nil
}

func (c *container) runWorker(ctx context.Context, p launch.Program, s launch.Streams, log *slog.Logger) (int, error) {
	knobs, err := worker.NewKnobs(p.Env)
	if err != nil {
		return worker.ExitUsage, err
	}
	config, err := worker.NewConfig(p, knobs)
	if err != nil {
		return worker.ExitUsage, err
	}
	store, instance, err := discovery.Open(p.Env, log)
	if err != nil {
		return 1, err
	}
	w, err := worker.New(config, knobs, p.Env, store, instance, s.Out, log)
	if err != nil {
		return 1, err
	}
	if w.Meet, err = c.meeting(config, p.Env, log); err != nil {
		return worker.ExitUsage, err
	}
	return w.Run(ctx), nil
}

func runRouter(ctx context.Context, p launch.Program, log *slog.Logger) (int, error) {
	store, instance, err := discovery.Open(p.Env, log)
	if err != nil {
		return 1, err
	}
	client, err := wire.NewClient(p.Env["DYNAMO_FORWARD_PROXY"])
	if err != nil {
		return 1, err
	}
	r, err := router.New(p, store, instance, client, log)
	if err != nil {
		return worker.ExitUsage, err
	}
	stop, err := auxiliary.Status(p.Env, log)
	if err != nil {
		return 1, err
	}
	defer stop()
	if p.Kind == launch.GlobalRouter {
		return r.RunGlobal(ctx), nil
	}
	return r.RunLocal(ctx), nil
}
