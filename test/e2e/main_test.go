// Package e2e runs the product whole: local clusters with the operator as it is
// installed, pods that really run, and clients that really ask.
package e2e

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/dynamo-operator/dynamo-operator/internal/cli/localenv"
	"github.com/dynamo-operator/dynamo-operator/internal/testkit/retryclient"
)

// shared is the cluster that most tests use, each in a namespace of its own. It
// has everything optional but Grove, which would run every graph.
var shared *localenv.Cluster

// grove and bare start further clusters for the first test that needs them: one
// where Grove runs every graph, and one with nothing optional.
var (
	grove = sync.OnceValues(func() (*localenv.Cluster, error) { return start("grove", "grove", usualNodes) })
	bare  = sync.OnceValues(func() (*localenv.Cluster, error) { return start("bare", "", usualNodes) })
)

// need is a cluster, or the end of the test.
func need(t *testing.T, cluster func() (*localenv.Cluster, error)) *localenv.Cluster {
	t.Helper()
	c, err := cluster()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// running are all clusters, to be stopped in the end.
var running struct {
	sync.Mutex
	clusters []*localenv.Cluster
}

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
	defer stopAll()
	if shared, err = start("shared", everything, usualNodes); err != nil {
		fmt.Println(err)
		return 1
	}
	code := m.Run()
	if code != 0 {
		for _, c := range running.clusters {
			fmt.Print(c.Log(60))
		}
	}
	if err := checkRights(); err != nil {
		fmt.Println(err)
		return 1
	}
	return code
}

// everything optional but Grove, which would run every graph.
const everything = "lws,volcano,istio,inference"

// usualNodes are enough for what runs at once in most tests.
const usualNodes = 12

const gpusPerNode = 8

// start makes a cluster with the operator in it, and optional APIs.
func start(name, with string, nodes int) (*localenv.Cluster, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 8*time.Minute)
	defer cancel()
	log, err := os.Create(filepath.Join(dir, name+".log"))
	if err != nil {
		return nil, err
	}
	options := localenv.Options{BinDir: binDir, Dir: filepath.Join(dir, name), Nodes: nodes, GPUsPerNode: gpusPerNode, Log: log, Args: []string{"--audit-log"}}
	if with != "" {
		options.Args = append(options.Args, "--with", with)
	}
	c, err := localenv.Up(ctx, options)
	if err != nil {
		said, _ := os.ReadFile(log.Name()) // it goes with the folder
		return nil, fmt.Errorf("%w\n%s", err, said)
	}
	running.Lock()
	running.clusters = append(running.clusters, c)
	running.Unlock()
	c.Client = retryclient.Client(c.Client)
	if err := c.InstallAPI(ctx); err != nil {
		return nil, err
	}
	// Budgets of namespaces are the operator's configuration: the tests that need one have
	// their namespaces in it from the start, and nobody else's is bounded.
	if err := c.InstallOperatorWith(ctx, fmt.Sprintf("scaling: {namespaces: {%s: %d}}", namespaceOf(arbitrated), arbitratedGPUs)); err != nil {
		return nil, fmt.Errorf("%w\n%s", err, c.Log(60))
	}
	return c, nil
}

func stopAll() {
	running.Lock()
	defer running.Unlock()
	var all sync.WaitGroup
	for _, c := range running.clusters {
		all.Go(func() {
			if err := c.Down(context.Background()); err != nil {
				fmt.Println(err)
			}
		})
	}
	all.Wait()
}
