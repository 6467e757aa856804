package compat

import (
	"context"
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/dynamo-operator/dynamo-operator/internal/playground"
)

// cluster is a control plane without nodes: everything is sent to it as a dry
// run, so that objects come back the way the API server would store them.
var cluster *playground.Cluster

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(run(m))
}

func run(m *testing.M) int {
	bin := os.Getenv("PLAYGROUND_BIN")
	if bin == "" {
		fmt.Println("PLAYGROUND_BIN is not set: no programs to run a cluster from, compatibility is not measured (make compat sets it)")
		return m.Run()
	}
	dir, err := os.MkdirTemp("", "compat-")
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
	cluster, err = playground.Up(ctx, playground.Options{
		BinDir: bin, Dir: dir + "/cluster", Nodes: 1, Log: log,
		Args: []string{"--with", "lws,volcano,istio,inference,grove"},
	})
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
	return m.Run()
}
