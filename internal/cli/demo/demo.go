// Package demo is the product in one command: a cluster, the operator, a graph,
// an answer. It only strings together what a user would do by hand.
package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/cli/connect"
	"github.com/dynamo-operator/dynamo-operator/internal/cli/console"
	"github.com/dynamo-operator/dynamo-operator/internal/cli/liveview"
	"github.com/dynamo-operator/dynamo-operator/internal/cli/localenv"
	"github.com/dynamo-operator/dynamo-operator/internal/cli/tree"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
)

// Dir is where the demo's cluster has its data by default: not where localcluster
// has it, since the demo's has another number of nodes and each would refuse to run
// over the other's data.
const Dir = ".localcluster-demo"

const question = "Why do GPUs like to work in graphs?"

// Command is the verb.
func Command() *cobra.Command {
	var d demo
	command := &cobra.Command{
		Use:   "demo",
		Short: "Start a local cluster with the operator, deploy a graph and ask it something",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			d.out = cmd.OutOrStdout()
			return d.run(ctx)
		},
	}
	flags := command.Flags()
	flags.StringVarP(&d.manifest, "filename", "f", "examples/quickstart.yaml", "graph to deploy")
	flags.StringVar(&d.options.BinDir, "bin-dir", beside(), "folder of the programs that make up the cluster")
	flags.StringVar(&d.options.Dir, "dir", Dir, "folder for the cluster's data")
	flags.IntVar(&d.options.Nodes, "nodes", 1, "number of simulated nodes")
	flags.IntVar(&d.options.GPUsPerNode, "gpus-per-node", 8, "simulated GPUs of each node")
	flags.BoolVar(&d.once, "once", false, "end after the answer and leave nothing running")
	return command
}

// beside is the folder that this program stands in.
func beside() string {
	self, err := os.Executable()
	if err != nil {
		return "bin"
	}
	return filepath.Dir(self)
}

type demo struct {
	options  localenv.Options
	manifest string
	once     bool
	out      io.Writer
}

func (d *demo) run(ctx context.Context) (err error) {
	limited, cancel := context.WithTimeoutCause(ctx, 5*time.Minute, errors.New("the demo took longer than five minutes"))
	defer cancel()
	d.options.Log = indented(d.out)
	d.step("Starting a local Kubernetes control plane")
	cluster, err := localenv.Up(limited, d.options)
	if err != nil {
		return err
	}
	defer func() {
		d.step("Stopping the cluster")
		err = errors.Join(err, cluster.Down(context.WithoutCancel(ctx)))
	}()
	d.step("Installing the API and the operator")
	if err := cluster.InstallAPI(limited); err != nil {
		return err
	}
	if err := d.meanwhile("the operator is starting", func() error { return cluster.InstallOperator(limited) }); err != nil {
		return err
	}
	d.step("Deploying " + d.manifest)
	key, err := d.deploy(limited, cluster)
	if err != nil {
		return err
	}
	dgd, err := d.watch(limited, cluster, key)
	if err != nil {
		return err
	}
	if err := d.ask(limited, cluster, dgd); err != nil {
		return err
	}
	if d.once {
		return nil
	}
	cancel()
	return d.stay(ctx, cluster, dgd)
}

// meanwhile does what may take long on a busy machine, and says every ten seconds that it
// still goes on.
func (d *demo) meanwhile(what string, do func() error) error {
	done, began := make(chan error, 1), time.Now()
	go func() { done <- do() }()
	tick := time.NewTicker(10 * time.Second)
	defer tick.Stop()
	for {
		select {
		case err := <-done:
			return err
		case <-tick.C:
			fmt.Fprintf(d.out, "  %s, after %s\n", what, time.Since(began).Round(time.Second))
		}
	}
}

// stay keeps the cluster up, with a console to look at it, until somebody ends it.
func (d *demo) stay(ctx context.Context, cluster *localenv.Cluster, dgd *v1alpha1.DynamoGraphDeployment) error {
	reached, err := connect.To(rest.CopyConfig(cluster.Config), "")
	if err != nil {
		return err
	}
	page, err := console.Listen(console.Options{Cluster: reached})
	if err != nil {
		return err
	}
	d.printNextSteps(cluster, dgd, page.URL())
	return page.Run(ctx)
}

func (d *demo) step(what string) {
	fmt.Fprintln(d.out, "▸ "+what)
}

// deploy applies the manifest and names the graph in it.
func (d *demo) deploy(ctx context.Context, cluster *localenv.Cluster) (types.NamespacedName, error) {
	file, err := os.Open(d.manifest)
	if err != nil {
		return types.NamespacedName{}, err
	}
	defer file.Close()
	objects, err := cluster.Decode(file, "default")
	if err != nil {
		return types.NamespacedName{}, fmt.Errorf("%s: %w", d.manifest, err)
	}
	if err := cluster.Apply(ctx, objects); err != nil {
		return types.NamespacedName{}, err
	}
	for _, object := range objects {
		if object.GetKind() == v1alpha1.KindDynamoGraphDeployment {
			return client.ObjectKeyFromObject(object), nil
		}
	}
	return types.NamespacedName{}, fmt.Errorf("%s holds no %s", d.manifest, v1alpha1.KindDynamoGraphDeployment)
}

// watch shows the graph until it is ready.
func (d *demo) watch(ctx context.Context, cluster *localenv.Cluster, key types.NamespacedName) (*v1alpha1.DynamoGraphDeployment, error) {
	drawing := liveview.New(d.out)
	dgd := &v1alpha1.DynamoGraphDeployment{}
	err := cluster.Eventually(ctx, "the graph to be ready", func(ctx context.Context) error {
		if err := cluster.Client.Get(ctx, key, dgd); err != nil {
			return err
		}
		var pods corev1.PodList
		if err := cluster.Client.List(ctx, &pods, client.InNamespace(key.Namespace)); err != nil {
			return err
		}
		drawing.Show(tree.Lines(dgd, pods.Items))
		ready := meta.FindStatusCondition(dgd.Status.Conditions, v1alpha1.ConditionReady)
		if ready == nil || ready.Status != "True" || dgd.Status.ObservedGeneration != dgd.Generation {
			return errors.New("not ready")
		}
		return nil
	})
	return dgd, err
}

// ask sends one question to the graph's frontend and prints the answer as it
// comes.
func (d *demo) ask(ctx context.Context, cluster *localenv.Cluster, dgd *v1alpha1.DynamoGraphDeployment) error {
	url, err := frontend(dgd)
	if err != nil {
		return err
	}
	var models []string
	err = cluster.Eventually(ctx, "a model", func(ctx context.Context) (err error) {
		if models, err = cluster.Models(ctx, url); err == nil && len(models) == 0 {
			err = errors.New("the frontend knows no model yet")
		}
		return err
	})
	if err != nil {
		return err
	}
	d.step(fmt.Sprintf("Asking %s: %s", models[0], question))
	err = cluster.Chat(ctx, url, models[0], question, 48, func(piece string) { fmt.Fprint(d.out, piece) })
	fmt.Fprintln(d.out)
	return err
}

// frontend is the address of a graph's frontend inside the cluster.
func frontend(dgd *v1alpha1.DynamoGraphDeployment) (string, error) {
	for name, service := range dgd.Spec.SortedServices() {
		if service.ComponentType == v1alpha1.ComponentTypeFrontend {
			return fmt.Sprintf("http://%s.%s.svc:8000", graph.ServiceName(dgd.Name, name), dgd.Namespace), nil
		}
	}
	return "", fmt.Errorf("graph %s has no frontend to ask", dgd.Name)
}

func (d *demo) printNextSteps(cluster *localenv.Cluster, dgd *v1alpha1.DynamoGraphDeployment, page string) {
	kubectl := filepath.Join(d.options.BinDir, "kubectl")
	fmt.Fprintf(d.out, `
The cluster stays up until Ctrl-C. See it in a browser (the URL works once):

  %s

In another terminal:

  export KUBECONFIG=%s
  %s get dgd,pods
  %s port-forward service/%s-frontend 8000 &
  curl localhost:8000/v1/models
`, page, cluster.Kubeconfig, kubectl, kubectl, dgd.Name)
}

// indented sets the cluster's own lines apart.
func indented(w io.Writer) io.Writer { return indenter{w} }

type indenter struct{ w io.Writer }

func (i indenter) Write(p []byte) (int, error) {
	for line := range strings.Lines(string(p)) {
		if _, err := io.WriteString(i.w, "  "+line); err != nil {
			return 0, err
		}
	}
	return len(p), nil
}
