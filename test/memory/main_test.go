// Package memory measures how much memory a tenant can make the operator use. The
// operator runs as a process beside a cluster of its own; a tenant fills one
// namespace with objects as large as the API server takes.
package memory

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/dynamo-operator/dynamo-operator/internal/cli/localenv"
)

// measure is what make memory asks for; the rest runs with the other tests.
var measure = flag.Bool("measure", false, "700 Secrets and 700 ConfigMaps of 1 MiB instead of some")

var (
	cluster        *localenv.Cluster
	binDir, folder string
)

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(run(m))
}

func run(m *testing.M) int {
	if binDir = os.Getenv("PLAYGROUND_BIN"); binDir == "" {
		fmt.Println("PLAYGROUND_BIN is not set: no programs to run a cluster from, tests of memory are skipped (make test sets it)")
		return 0
	}
	var err error
	if folder, err = os.MkdirTemp("", "memory-"); err != nil {
		fmt.Println(err)
		return 1
	}
	defer os.RemoveAll(folder)
	log, err := os.Create(filepath.Join(folder, "localcluster.log"))
	if err != nil {
		fmt.Println(err)
		return 1
	}
	ctx, cancel := context.WithTimeout(context.Background(), 8*time.Minute)
	defer cancel()
	cluster, err = localenv.Up(ctx, localenv.Options{BinDir: binDir, Dir: filepath.Join(folder, "cluster"), Nodes: 2, GPUsPerNode: 8, Log: log})
	if err != nil {
		said, _ := os.ReadFile(log.Name()) // it goes with the folder
		fmt.Printf("%v\n%s\n", err, said)
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
