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
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/dynamo-operator/dynamo-operator/internal/cli/installation"
	"github.com/dynamo-operator/dynamo-operator/internal/cluster/apply"
	"github.com/dynamo-operator/dynamo-operator/internal/cluster/scheme"
	"github.com/dynamo-operator/dynamo-operator/internal/core/version"
	"github.com/dynamo-operator/dynamo-operator/internal/operator"
	"github.com/dynamo-operator/dynamo-operator/internal/operator/config"
)

// gcPercent is GOGC: how much garbage is left before a collection, in percent of what
// is in use. Most of that is a copy of the cluster, which hardly changes, so
// collecting twice as often as Go would costs little and saves a third of the
// memory. GOGC has the last word.
const gcPercent = 50

// memoryLimitEnv is the memory limit of the container in bytes, by the downward
// API, and memoryShare the part of it that Go may use, in percent: the rest is for
// what Go does not count. Near the limit more time goes into collecting garbage,
// which is better than to be killed. GOMEMLIMIT has the last word.
const (
	memoryLimitEnv = "MEMORY_LIMIT"
	memoryShare    = 90
)

func main() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	if limit, err := memoryLimit(os.Getenv); err != nil {
		fmt.Fprintln(os.Stderr, "dynamo-operator:", err)
		os.Exit(1)
	} else if limit > 0 {
		debug.SetMemoryLimit(limit)
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

// memoryLimit is how many bytes Go may use; 0 if that is not for us to say.
func memoryLimit(env func(string) string) (int64, error) {
	text := env(memoryLimitEnv)
	if text == "" || env("GOMEMLIMIT") != "" {
		return 0, nil
	}
	limit, err := strconv.ParseInt(text, 10, 64)
	if err != nil || limit < 0 {
		return 0, fmt.Errorf("environment variable %s: invalid number of bytes %q", memoryLimitEnv, text)
	}
	return limit / 100 * memoryShare, nil
}

func run(args []string) error {
	switch {
	case slices.Equal(args, []string{"crds", "apply"}):
		return applyDefinitions()
	case len(args) > 1 && slices.Equal(args[:2], []string{"finalizers", "remove"}):
		return retire(args[2:])
	case len(args) > 0 && args[0] == "convert":
		return convert(args[1:])
	case len(args) > 1 && slices.Equal(args[:2], []string{"conversion", "publish"}):
		return publish(args[2:])
	case slices.Equal(args, []string{"conversion", "withdraw"}):
		return withdraw()
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
	logTo(cfg.Log)
	cluster, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	return operator.Run(ctx, cfg, cluster)
}

// logTo has everybody log there, the standard log, which servers of net/http
// complain to, included.
func logTo(to config.Log) {
	handler := to.Handler(os.Stderr)
	slog.SetDefault(slog.New(handler))
	log := logr.FromSlogHandler(handler)
	ctrl.SetLogger(log)
	klog.SetLogger(log)
}

// applyDefinitions brings the definitions of the API to this program's version.
// It is an init container of the operator's own image, so that an upgrade needs
// no other.
func applyDefinitions() error {
	return install(2*time.Minute, func(ctx context.Context, i installation.Installer) error { return i.Definitions(ctx) })
}

// retire is what runs before an uninstallation: it stops the operator and takes its
// finalizer off what stays. It is a Job of the operator's own image and account, and is
// told the operator's Deployment, and then the operator's own flags.
func retire(args []string) error {
	if len(args) == 0 || strings.HasPrefix(args[0], "-") {
		return errors.New("finalizers remove: want the name of the operator's Deployment, then the operator's flags")
	}
	flags, err := config.ParseFlags(args[1:], os.Stderr)
	if err != nil {
		return err
	}
	cfg, err := flags.Load()
	if err != nil {
		return err
	}
	return install(4*time.Minute, func(ctx context.Context, i installation.Installer) error {
		return i.Retire(ctx, types.NamespacedName{Namespace: config.OwnNamespace(), Name: args[0]}, cfg.Namespaces, os.Stdout)
	})
}

// install has an installer of the operator's own account do something, in limited time.
func install(limit time.Duration, do func(context.Context, installation.Installer) error) error {
	ctrl.SetLogger(logr.Discard()) // what goes wrong comes back as an error
	cluster, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	c, err := client.New(cluster, client.Options{Scheme: scheme.New()})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	return do(ctx, installation.Installer{Client: c, Owner: apply.FieldManager})
}
