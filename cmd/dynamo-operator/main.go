// Command dynamo-operator keeps inference graphs as their owners wrote them.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/dynamo-operator/dynamo-operator/internal/app"
	"github.com/dynamo-operator/dynamo-operator/internal/apply"
	"github.com/dynamo-operator/dynamo-operator/internal/config"
	"github.com/dynamo-operator/dynamo-operator/internal/installation"
	"github.com/dynamo-operator/dynamo-operator/internal/scheme"
	"github.com/dynamo-operator/dynamo-operator/internal/version"
)

// garbage is how much of it may gather before it is collected, in percent of what
// is in use. Most of that is a copy of the cluster, which hardly changes, so
// collecting twice as often as Go would costs little and saves a third of the
// memory. GOGC has the last word.
const garbage = 50

func main() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(garbage)
	}
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
	if slices.Equal(args, []string{"crds", "apply"}) {
		return applyDefinitions()
	}
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
	handler := cfg.Log.Handler(os.Stderr)
	slog.SetDefault(slog.New(handler)) // also for the standard log, which servers of net/http complain to
	log := logr.FromSlogHandler(handler)
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

// applyDefinitions brings the definitions of the API to this program's version.
// It is an init container of the operator's own image, so that an upgrade needs
// no other.
func applyDefinitions() error {
	ctrl.SetLogger(logr.Discard()) // what goes wrong comes back as an error
	cluster, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	c, err := client.New(cluster, client.Options{Scheme: scheme.New()})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	return installation.Installer{Client: c, Owner: apply.FieldManager}.Definitions(ctx)
}
