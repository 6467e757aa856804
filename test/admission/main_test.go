// Package admission asks a real API server what the schemas admit: published
// manifests, and an example on each side of every rule. It runs no webhook, so
// that a rule seen here is a rule of the schema; but where certificates are
// tested, an operator runs for as long as the test does.
package admission

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/dynamo-operator/dynamo-operator/internal/cli/localenv"
)

const (
	// kubeconfigEnv names a server to ask, by kubeconfig. It needs no nodes and
	// no controllers; namespaces are left behind in it.
	kubeconfigEnv = "KUBECONFIG_TEST"
	// programsEnv names the folder of programs to start a server from instead.
	programsEnv = "PLAYGROUND_BIN"
)

// server is shared by the tests, which work in namespaces of their own. It is
// nil if there is none to ask.
var server *apiServer

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "admission:", err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (int, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 8*time.Minute)
	defer cancel()

	kubeconfig, kubectl := os.Getenv(kubeconfigEnv), "kubectl"
	if programs := os.Getenv(programsEnv); programs != "" {
		kubectl = filepath.Join(programs, "kubectl")
		if kubeconfig == "" {
			cluster, stop, err := start(ctx, programs)
			if err != nil {
				return 1, err
			}
			defer stop()
			kubeconfig = cluster.Kubeconfig
		}
	}
	if kubeconfig != "" {
		var err error
		if server, err = connect(ctx, kubeconfig, kubectl); err != nil {
			return 1, err
		}
	}
	return m.Run(), nil
}

// start runs a cluster with the least that an API server needs.
func start(ctx context.Context, programs string) (*localenv.Cluster, func(), error) {
	dir, err := os.MkdirTemp("", "admission-")
	if err != nil {
		return nil, nil, err
	}
	log, err := os.Create(filepath.Join(dir, "localcluster.log"))
	if err != nil {
		return nil, nil, err
	}
	cluster, err := localenv.Up(ctx, localenv.Options{BinDir: programs, Dir: filepath.Join(dir, "cluster"), Nodes: 1, Log: log})
	if err != nil {
		return nil, nil, fmt.Errorf("%w (see %s)", err, log.Name())
	}
	return cluster, func() {
		if err := cluster.Down(context.Background()); err != nil {
			fmt.Fprintln(os.Stderr, "admission:", err)
		}
		os.RemoveAll(dir)
	}, nil
}
