// Package e2e runs the product whole: a local cluster with the operator as it
// is installed, pods that really run, and clients that really ask.
package e2e

import (
	"context"
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/dynamo-operator/dynamo-operator/internal/playground"
)

// cluster is shared by the tests of this package; each works in namespaces of
// its own.
var cluster *playground.Cluster

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(run(m))
}

func run(m *testing.M) int {
	bin := os.Getenv("PLAYGROUND_BIN")
	if bin == "" {
		fmt.Println("PLAYGROUND_BIN is not set: no programs to run a cluster from, end-to-end tests are skipped (make test sets it)")
		return 0
	}
	dir, err := os.MkdirTemp("", "e2e-")
	if err != nil {
		fmt.Println(err)
		return 1
	}
	defer os.RemoveAll(dir)
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	log, err := os.Create(dir + "/localcluster.log")
	if err != nil {
		fmt.Println(err)
		return 1
	}
	cluster, err = playground.Up(ctx, playground.Options{BinDir: bin, Dir: dir + "/cluster", Nodes: 12, GPUsPerNode: 8, Log: log,
		Args: []string{"--with", "lws,volcano,istio,inference"}})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	defer func() {
		if err := cluster.Down(context.Background()); err != nil {
			fmt.Println(err)
		}
	}()
	if err := cluster.InstallAPI(ctx); err != nil {
		fmt.Println(err)
		return 1
	}
	if err := cluster.InstallOperator(ctx); err != nil {
		fmt.Println(err)
		return 1
	}
	return m.Run()
}
