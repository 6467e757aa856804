// Package localenv starts a local cluster as a child process, installs the
// operator in it, and talks to what the operator makes. The demo, the end-to-end
// tests and the benchmarks are built on it.
package localenv

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/dynamo-operator/dynamo-operator/internal/cluster/scheme"
)

// Options describe a cluster.
type Options struct {
	// BinDir holds the programs of this repository.
	BinDir string
	// Dir keeps the cluster's data; a second run over it finds it again.
	Dir         string
	Nodes       int
	GPUsPerNode int
	// ServerOnly is etcd and the API server, without controllers and nodes.
	ServerOnly bool
	// Log takes what the cluster prints.
	Log io.Writer
	// Args are further arguments of localcluster up.
	Args []string
}

// Cluster is a running local cluster.
type Cluster struct {
	Kubeconfig string
	Config     *rest.Config
	Client     client.WithWatch
	// HTTP reaches pods and Services by their names inside the cluster.
	HTTP *http.Client

	options Options
	process *exec.Cmd
	ended   chan struct{}
}

// Up starts a cluster and returns when its API server answers. The cluster ends
// with Down, and in any case with this process.
func Up(ctx context.Context, o Options) (*Cluster, error) {
	log.SetLogger(logr.Discard()) // what goes wrong comes back as an error
	if o.ServerOnly {
		o.Args = append([]string{"--server-only"}, o.Args...)
	}
	process := exec.Command(filepath.Join(o.BinDir, "localcluster"), append([]string{"up",
		"--dir", o.Dir, "--bin-dir", o.BinDir,
		"--nodes", strconv.Itoa(o.Nodes), "--gpus-per-node", strconv.Itoa(o.GPUsPerNode),
	}, o.Args...)...)
	process.Stdout, process.Stderr = o.Log, o.Log
	process.SysProcAttr = child()
	if err := process.Start(); err != nil {
		return nil, fmt.Errorf("start localcluster: %w", err)
	}
	c := &Cluster{options: o, process: process, ended: make(chan struct{})}
	go func() {
		_ = process.Wait() // how it ended stands in ProcessState
		close(c.ended)
	}()
	if err := c.connect(ctx); err != nil {
		return nil, errors.Join(err, c.Down(ctx))
	}
	return c, nil
}

// connect waits until the cluster can be used.
func (c *Cluster) connect(ctx context.Context) error {
	return c.Eventually(ctx, "the cluster to answer", func(ctx context.Context) error {
		c.Kubeconfig = filepath.Join(c.options.Dir, "kubeconfig")
		config, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig)
		if err != nil {
			return err
		}
		config.QPS, config.Burst = 500, 1000
		if err := ready(ctx, config); err != nil {
			return err
		}
		if c.Config = config; c.HTTP == nil {
			if c.HTTP, err = c.proxied(); err != nil {
				return err
			}
		}
		if c.Client, err = client.NewWithWatch(config, client.Options{Scheme: scheme.New()}); err != nil {
			return err
		}
		if c.options.ServerOnly {
			return nil
		}
		return c.nodesReady(ctx)
	})
}

// nodesReady holds until every node can take pods.
func (c *Cluster) nodesReady(ctx context.Context) error {
	var nodes corev1.NodeList
	if err := c.Client.List(ctx, &nodes); err != nil {
		return err
	}
	ready := 0
	for _, node := range nodes.Items {
		if slices.ContainsFunc(node.Status.Conditions, func(condition corev1.NodeCondition) bool {
			return condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue
		}) {
			ready++
		}
	}
	if ready < c.options.Nodes {
		return fmt.Errorf("%d of %d nodes ready", ready, c.options.Nodes)
	}
	return nil
}

func ready(ctx context.Context, config *rest.Config) error {
	apis, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return err
	}
	_, err = apis.RESTClient().Get().AbsPath("/readyz").DoRaw(ctx)
	return err
}

// proxied is an HTTP client that sends everything through the cluster's forward
// proxy.
func (c *Cluster) proxied() (*http.Client, error) {
	text, err := os.ReadFile(filepath.Join(c.options.Dir, "cluster.json"))
	if err != nil {
		return nil, err
	}
	var state struct {
		ProxyURL string `json:"proxyURL"`
	}
	if err := json.Unmarshal(text, &state); err != nil {
		return nil, fmt.Errorf("read cluster.json: %w", err)
	}
	proxy, err := url.Parse(state.ProxyURL)
	if err != nil || state.ProxyURL == "" {
		return nil, fmt.Errorf("cluster.json: proxyURL %q is no URL", state.ProxyURL)
	}
	return &http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(proxy)}}, nil
}

// longest is how long a single try may take: one that hangs must not use up all
// the time that there is.
const longest = 3 * time.Minute

// Eventually tries until it works, the context ends, or the cluster has died.
func (c *Cluster) Eventually(ctx context.Context, what string, try func(context.Context) error) error {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		attempt, cancel := context.WithTimeout(ctx, longest)
		err := try(attempt)
		cancel()
		if err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-c.ended:
			return fmt.Errorf("wait for %s: localcluster has ended: %s", what, c.process.ProcessState)
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w: %w", what, ctx.Err(), err)
		}
	}
}

// Down stops the cluster; its data stays.
func (c *Cluster) Down(context.Context) error {
	select {
	case <-c.ended:
		return nil
	default:
	}
	if err := c.process.Process.Signal(syscall.SIGTERM); err != nil {
		return fmt.Errorf("stop localcluster: %w", err)
	}
	<-c.ended
	return nil
}

// Environment is what kubectl and Helm need to ask the cluster of a kubeconfig. What they
// discover they keep for hours by host and port; another cluster may have had this one's
// port, so it is kept beside the kubeconfig.
func Environment(kubeconfig string) []string {
	return []string{"KUBECONFIG=" + kubeconfig, "KUBECACHEDIR=" + filepath.Join(filepath.Dir(kubeconfig), "cache")}
}

// Kubectl runs kubectl against the cluster and returns what it prints.
func (c *Cluster) Kubectl(ctx context.Context, stdin io.Reader, args ...string) (string, error) {
	command := exec.CommandContext(ctx, filepath.Join(c.options.BinDir, "kubectl"), args...)
	command.Env = append(os.Environ(), Environment(c.Kubeconfig)...)
	command.Stdin = stdin
	output, err := command.CombinedOutput()
	if err != nil {
		return string(output), fmt.Errorf("kubectl %v: %w: %s", args, err, output)
	}
	return string(output), nil
}
