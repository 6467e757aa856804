// Command dynamo-operator keeps inference graphs as their owners wrote them.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/dynamo-operator/dynamo-operator/internal/app"
	"github.com/dynamo-operator/dynamo-operator/internal/config"
	"github.com/dynamo-operator/dynamo-operator/internal/version"
)

func main() {
	err := run(os.Args[1:])
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "dynamo-operator:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	flags, err := config.ParseFlags(args, os.Stderr)
	if err != nil {
		return err
	}
	if flags.Version {
		fmt.Println(version.String())
		return nil
	}
	cfg, err := flags.Load()
	if err != nil {
		return err
	}
	log := logr.FromSlogHandler(cfg.Log.Handler(os.Stderr))
	ctrl.SetLogger(log)
	klog.SetLogger(log)
	cluster, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	return app.Run(ctx, cfg, cluster)
}
