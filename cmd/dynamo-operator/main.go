// Command dynamo-operator keeps inference graphs as their owners wrote them.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/dynamo-operator/dynamo-operator/internal/app"
	"github.com/dynamo-operator/dynamo-operator/internal/config"
	"github.com/dynamo-operator/dynamo-operator/internal/version"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "dynamo-operator:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	cfg, err := load(args)
	if err != nil {
		return err
	}
	ctrl.SetLogger(logr.FromSlogHandler(cfg.Log.Handler(os.Stderr)))
	cluster, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	return app.Run(ctx, cfg, cluster)
}

// load reads the configuration file; a flag that is given wins over it.
func load(args []string) (config.Config, error) {
	var (
		flags       = flag.NewFlagSet("dynamo-operator", flag.ExitOnError)
		path        = flags.String("config", "", "configuration `file`")
		showVersion = flags.Bool("version", false, "print the version and exit")
		overrides   []func(*config.Config)
	)
	override := func(name, usage string, set func(c *config.Config, value string)) {
		flags.Func(name, usage, func(value string) error {
			overrides = append(overrides, func(c *config.Config) { set(c, value) })
			return nil
		})
	}
	override("namespace", "look after this `namespace` only", func(c *config.Config, v string) { c.Namespace = v })
	override("metrics-address", "`address` of the metrics server", func(c *config.Config, v string) { c.Server.MetricsAddress = v })
	override("health-address", "`address` of the health server", func(c *config.Config, v string) { c.Server.HealthAddress = v })
	override("log-format", "text or json", func(c *config.Config, v string) { c.Log.Format = v })
	if err := flags.Parse(args); err != nil {
		return config.Config{}, err
	}
	if *showVersion {
		fmt.Println(version.String())
		os.Exit(0)
	}
	cfg, err := config.Load(*path)
	if err != nil {
		return config.Config{}, err
	}
	for _, set := range overrides {
		set(&cfg)
	}
	return cfg, cfg.Validate()
}
