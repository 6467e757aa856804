// Package chart holds the charts against the real Helm and a real API server,
// and runs the operator as a pod of the platform chart.
package chart

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dynamo-operator/dynamo-operator/internal/cli/localenv"
	"github.com/dynamo-operator/dynamo-operator/internal/testkit/retryclient"
)

const (
	platform    = "../../charts/platform"
	definitions = "../../charts/crds"
)

var (
	cluster *localenv.Cluster
	helm    string
	folder  string
)

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	programs := os.Getenv("PLAYGROUND_BIN")
	if programs == "" {
		fmt.Println("PLAYGROUND_BIN is not set: no programs to run a cluster from, tests of the charts are skipped (make test sets it)")
		return 0
	}
	if err := start(programs); err != nil {
		fmt.Println(err)
		return 1
	}
	defer os.RemoveAll(folder)
	defer func() {
		if err := cluster.Down(context.Background()); err != nil {
			fmt.Println(err)
		}
	}()
	code := m.Run()
	if code != 0 {
		fmt.Print(cluster.Log(60))
	}
	return code
}

func start(programs string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Minute)
	defer cancel()
	built, err := exec.CommandContext(ctx, "../../hack/tool.sh", "helm").Output()
	if err != nil {
		return fmt.Errorf("build helm: %w", err)
	}
	helm = strings.TrimSpace(string(built))
	if folder, err = os.MkdirTemp("", "chart-"); err != nil {
		return err
	}
	log, err := os.Create(filepath.Join(folder, "localcluster.log"))
	if err != nil {
		return err
	}
	cluster, err = localenv.Up(ctx, localenv.Options{BinDir: programs, Dir: filepath.Join(folder, "cluster"), Nodes: 2, GPUsPerNode: 8, Log: log})
	if err != nil {
		said, _ := os.ReadFile(log.Name())
		return fmt.Errorf("%w\n%s", err, said)
	}
	cluster.Client = retryclient.Client(cluster.Client)
	return nil
}

// runHelm runs the real Helm against the cluster, with nothing of this
// machine's own settings.
func runHelm(ctx context.Context, stdin string, args ...string) (string, error) {
	command := exec.CommandContext(ctx, helm, args...)
	command.Env = append(append(os.Environ(), localenv.Environment(cluster.Kubeconfig)...), "HELM_CACHE_HOME="+folder, "HELM_CONFIG_HOME="+folder, "HELM_DATA_HOME="+folder)
	command.Stdin = strings.NewReader(stdin)
	var out, problems bytes.Buffer
	command.Stdout, command.Stderr = &out, &problems
	if err := command.Run(); err != nil {
		return out.String(), fmt.Errorf("helm %s: %w", args[0], errors.New(problems.String()))
	}
	return out.String(), nil
}

// template renders the platform chart with values.
func template(ctx context.Context, values string, args ...string) (string, error) {
	return runHelm(ctx, values, append([]string{"template", "dynamo", platform, "--namespace", "dynamo-system", "--kube-version", "1.37.0", "--values", "-"}, args...)...)
}
