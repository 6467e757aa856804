// Package e2e runs the product whole: local clusters with the operator as it is
// installed, pods that really run, and clients that really ask.
package e2e

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/dynamo-operator/dynamo-operator/internal/playground"
)

// shared is the cluster that most tests use, each in a namespace of its own. It
// has everything optional but Grove, which would run every graph.
var shared *playground.Cluster

// binDir holds the programs under test, dir the clusters' data.
var binDir, dir string

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(run(m))
}

func run(m *testing.M) int {
	if binDir = os.Getenv("PLAYGROUND_BIN"); binDir == "" {
		fmt.Println("PLAYGROUND_BIN is not set: no programs to run a cluster from, end-to-end tests are skipped (make test sets it)")
		return 0
	}
	var err error
	if dir, err = os.MkdirTemp("", "e2e-"); err != nil {
		fmt.Println(err)
		return 1
	}
	defer os.RemoveAll(dir)
	if shared, err = start("shared", "lws,volcano,istio,inference"); err != nil {
		fmt.Println(err)
		return 1
	}
	defer stop(shared)
	return m.Run()
}

// start makes a cluster with the operator in it, and optional APIs.
func start(name, with string) (*playground.Cluster, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	log, err := os.Create(filepath.Join(dir, name+".log"))
	if err != nil {
		return nil, err
	}
	options := playground.Options{BinDir: binDir, Dir: filepath.Join(dir, name), Nodes: 12, GPUsPerNode: 8, Log: log}
	if with != "" {
		options.Args = []string{"--with", with}
	}
	c, err := playground.Up(ctx, options)
	if err != nil {
		return nil, err
	}
	if err := c.InstallAPI(ctx); err != nil {
		stop(c)
		return nil, err
	}
	if err := c.InstallOperator(ctx); err != nil {
		stop(c)
		return nil, err
	}
	return c, nil
}

func stop(c *playground.Cluster) {
	if err := c.Down(context.Background()); err != nil {
		fmt.Println(err)
	}
}
