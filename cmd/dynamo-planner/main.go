// Command dynamo-planner scales prefill and decode of one graph. It takes the arguments,
// the environment and the files of the original's planner, of both revisions, and can be
// started under the names of the programs that start that one.
//
//	dynamo-planner --ttft 200 --itl 10 --profile-results-dir /profile
//	python3 -m dynamo.planner --config '{"ttft_ms": 200}'
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path"
	"slices"
	"strings"
	"syscall"

	"github.com/dynamo-operator/dynamo-operator/internal/core/version"
	"github.com/dynamo-operator/dynamo-operator/internal/planner"
	"github.com/dynamo-operator/dynamo-operator/internal/planner/config"
	"github.com/dynamo-operator/dynamo-operator/internal/planner/kube"
	"github.com/dynamo-operator/dynamo-operator/internal/planner/scrape"
)

func main() {
	words := os.Args[1:]
	if slices.Contains(config.Commands(), path.Base(os.Args[0])) {
		words = os.Args
	}
	if len(words) == 1 && words[0] == "--version" {
		fmt.Println("dynamo-planner version", version.String())
		return
	}
	if status, ends := config.Exit(words); ends {
		os.Exit(status)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	err := run(ctx, words)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "dynamo-planner:", err)
		if _, usage := errors.AsType[config.Usage](err); usage {
			os.Exit(2)
		}
		os.Exit(1)
	}
}

func run(ctx context.Context, words []string) error {
	env := map[string]string{}
	for _, pair := range os.Environ() {
		name, value, _ := strings.Cut(pair, "=")
		env[name] = value
	}
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	c, err := config.New(words, config.Machine{Env: env, Files: os.DirFS("/"), Dir: dir})
	if err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	for _, note := range c.Notes {
		log.Info(note)
	}
	scraper, err := scrape.New(c.Proxy)
	if err != nil {
		return err
	}
	p := planner.New(c, nil, scraper, log)
	if c.Port > 0 {
		if err := planner.Serve(ctx, c.Listen, c.Port, p.Handler(), log); err != nil {
			return err
		}
	}
	if c.SystemPort > 0 {
		if err := planner.Serve(ctx, c.Listen, c.SystemPort, planner.Status(env), log); err != nil {
			return err
		}
	}
	if c.Idle {
		log.Info("nothing to decide: the operator arbitrates among graphs")
		<-ctx.Done()
		return nil
	}
	cluster, err := kube.Connect(env["KUBECONFIG"], c.Namespace)
	if err != nil {
		return err
	}
	p.Cluster = cluster
	log.Info("scaling", "graph", cluster.Namespace+"/"+c.Graph, "policy", c.Policy, "mode", c.Mode, "budget", c.Budget, "advisory", c.Advisory)
	p.Run(ctx)
	return nil
}
