// Package model runs the operator against many engines that are not there: a
// real API server holds pods and endpoints on paper, and the operator's way to
// them is a proxy into this process, where each engine is an HTTP server that
// can be slow, fail or hang.
package model

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/dynamo-operator/dynamo-operator/internal/cli/localenv"
	"github.com/dynamo-operator/dynamo-operator/internal/testkit/retryclient"
)

var (
	idle = flag.Duration("idle", 10*time.Second, "how long engines must be left alone")
	slow = flag.Duration("slow", 0, "how long slow engines take; 0 is until the others are loaded")
)

// cluster is where the operator under test looks, operator what it is.
var (
	cluster  *localenv.Cluster
	operator *program
	network  *fabric
)

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(run(m))
}

func run(m *testing.M) int {
	programs := os.Getenv("PLAYGROUND_BIN")
	if programs == "" {
		fmt.Println("PLAYGROUND_BIN is not set: no programs to run a cluster from, tests are skipped (make test sets it)")
		return 0
	}
	dir, err := os.MkdirTemp("", "model-")
	if err != nil {
		fmt.Println(err)
		return 1
	}
	defer os.RemoveAll(dir)
	if err := setUp(dir, programs); err != nil {
		fmt.Println(err)
		return 1
	}
	defer func() {
		operator.stop()
		if err := cluster.Down(context.Background()); err != nil {
			fmt.Println(err)
		}
	}()
	code := m.Run()
	if code != 0 {
		fmt.Print(cluster.Log(20))
	}
	return code
}

func setUp(dir, programs string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 8*time.Minute)
	defer cancel()
	log, err := os.Create(filepath.Join(dir, "cluster.log"))
	if err != nil {
		return err
	}
	cluster, err = localenv.Up(ctx, localenv.Options{BinDir: programs, Dir: filepath.Join(dir, "cluster"), Nodes: 1, Log: log, Args: []string{"--audit-log"}})
	if err != nil {
		said, _ := os.ReadFile(log.Name()) // it goes with the folder
		return fmt.Errorf("%w\n%s", err, said)
	}
	cluster.Client = retryclient.Client(cluster.Client)
	if err := cluster.InstallAPI(ctx); err != nil {
		return err
	}
	network = newFabric()
	operator = &program{path: filepath.Join(programs, "dynamo-operator"), config: filepath.Join(dir, "operator.yaml"), kubeconfig: cluster.Kubeconfig, log: filepath.Join(dir, "operator.log")}
	if err := operator.configure(patiently, seldom); err != nil {
		return err
	}
	return operator.start()
}

// How long a deletion waits for engines: longer than a busy machine takes, and so
// short that a test can see the end of it.
const (
	patiently   = 10 * time.Minute
	impatiently = 20 * time.Second
)

// How long engines are believed: for longer than a test, or for a moment.
const (
	seldom = time.Hour
	often  = 2 * time.Second
)

// configuration of the operator: short waits, so that what fails is tried again
// before a test loses patience.
const configuration = `
apiVersion: dynamo-operator/v1alpha1
kind: OperatorConfiguration
network: {forwardProxy: %q}
lora: {retryMin: 500ms, retryMax: 3s, unloadDeadline: %s, recheck: %s}
server: {metricsAddress: "", healthAddress: ""}
log: {format: text}
`

// program is the operator as a process, outside the cluster.
type program struct {
	path, config, kubeconfig, log string
	process                       *exec.Cmd
}

// configure writes what it reads when it starts.
func (p *program) configure(unload, recheck time.Duration) error {
	return os.WriteFile(p.config, fmt.Appendf(nil, configuration, network.url(), unload, recheck), 0o600)
}

func (p *program) start() error {
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	p.process = exec.Command(p.path, "--config", p.config)
	p.process.Env = append(os.Environ(), "KUBECONFIG="+p.kubeconfig)
	p.process.Stdout, p.process.Stderr = log, log
	return p.process.Start()
}

// stop ends it the hard way: what it knew is gone.
func (p *program) stop() {
	if p.process == nil {
		return
	}
	_ = p.process.Process.Signal(syscall.SIGKILL) // it may have ended by itself
	_ = p.process.Wait()
}

// words are what the operator said, for a test that fails.
func (p *program) words() string {
	text, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-4000):])
}
