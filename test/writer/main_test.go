// Package writer runs several operators, as processes under accounts of their own,
// beside an API server that nothing else works on, and reads from its audit log who
// wrote when: at any time one of them writes to a namespace. Each attack is made
// twice, on what is shipped and on a program without the guard that stops it.
package writer

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/dynamo-operator/dynamo-operator/internal/cli/installation"
	"github.com/dynamo-operator/dynamo-operator/internal/cli/localenv"
)

var (
	// shipped runs with the durations that are shipped, which takes minutes: make
	// writers.
	shipped = flag.Bool("shipped", false, "use the durations that are shipped instead of short ones")

	cluster *localenv.Cluster
	folder  string
	// program is the operator as it is shipped, unguarded the one that a test can take
	// guards from.
	program, unguarded string
)

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(run(m))
}

func run(m *testing.M) int {
	programs := os.Getenv("PLAYGROUND_BIN")
	if programs == "" {
		fmt.Println("PLAYGROUND_BIN is not set: no programs to run an API server from, its tests are skipped (make test sets it)")
		return 0
	}
	var err error
	if folder, err = os.MkdirTemp("", "writer-"); err != nil {
		fmt.Println(err)
		return 1
	}
	defer os.RemoveAll(folder)
	stop, err := start(programs)
	defer stop()
	if err != nil {
		fmt.Println(err)
		return 1
	}
	return m.Run()
}

// start runs an API server that knows our kinds and roles, without an operator.
func start(programs string) (stop func(), err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	program, unguarded = filepath.Join(programs, "dynamo-operator"), filepath.Join(folder, "unguarded")
	build := exec.CommandContext(ctx, "go", "build", "-tags", "unguarded", "-ldflags", "-s -w", "-o", unguarded, "../../cmd/dynamo-operator")
	if out, err := build.CombinedOutput(); err != nil {
		return func() {}, fmt.Errorf("build an operator without guards: %w: %s", err, out)
	}
	log, err := os.Create(filepath.Join(folder, "localcluster.log"))
	if err != nil {
		return func() {}, err
	}
	cluster, err = localenv.Up(ctx, localenv.Options{
		BinDir: programs, Dir: filepath.Join(folder, "cluster"), Nodes: 1, ServerOnly: true, Log: log, Args: []string{"--audit-log"},
	})
	if err != nil {
		return func() {}, err
	}
	stop = func() {
		if err := cluster.Down(context.Background()); err != nil {
			fmt.Println(err)
		}
	}
	return stop, errors.Join(cluster.InstallAPI(ctx), installRights(ctx))
}

// installRights installs what is shipped but for the operator itself.
func installRights(ctx context.Context) error {
	objects, err := installation.Operator()
	if err != nil {
		return err
	}
	for i, object := range objects {
		if object.GetKind() == "Deployment" {
			return cluster.Apply(ctx, append(objects[:i:i], objects[i+1:]...))
		}
	}
	return errors.New("no Deployment is shipped")
}
