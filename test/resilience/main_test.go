// Package resilience puts a graph under traffic and does to it what production does:
// rolls it out, well and badly, and kills what it stands on. It takes minutes
// and measures, so that it only runs when it is asked to: make resilience.
package resilience

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/dynamo-operator/dynamo-operator/internal/cli/localenv"
)

var (
	asked    = flag.Bool("measure", false, "run these tests")
	seed     = flag.Uint64("seed", 1, "of the chaos")
	duration = flag.Duration("chaos", 90*time.Second, "how long the chaos lasts")
)

// gpusPerNode is for four groups of two nodes and two others, all on one.
const gpusPerNode = 16

// dir holds the cluster's data, up what was started.
var (
	dir string
	up  *localenv.Cluster
)

// cluster is started by the first test that needs it.
var cluster = sync.OnceValues(func() (*localenv.Cluster, error) {
	binDir := os.Getenv("PLAYGROUND_BIN")
	if binDir == "" {
		return nil, errors.New("PLAYGROUND_BIN is not set: no programs to run a cluster from (make resilience sets it)")
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	log, err := os.Create(filepath.Join(dir, "cluster.log"))
	if err != nil {
		return nil, err
	}
	up, err = localenv.Up(ctx, localenv.Options{BinDir: binDir, Dir: filepath.Join(dir, "cluster"), Nodes: 6, GPUsPerNode: gpusPerNode, Log: log, Args: []string{"--with", "lws,volcano,grove"}})
	if err != nil {
		return nil, err
	}
	if err := up.InstallAPI(ctx); err != nil {
		return nil, err
	}
	// Graphs of runtimes before 1.x have no generations, as by default.
	return up, up.InstallOperatorWith(ctx, "rollout: {generations: true, noSpareAfter: 5s}")
})

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(run(m))
}

func run(m *testing.M) int {
	var err error
	if dir, err = os.MkdirTemp("", "resilience-"); err != nil {
		fmt.Println(err)
		return 1
	}
	defer os.RemoveAll(dir)
	defer func() {
		if up == nil {
			return
		}
		if err := up.Down(context.Background()); err != nil {
			fmt.Println(err)
		}
	}()
	return m.Run()
}
