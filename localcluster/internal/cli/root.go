// Package cli is the command line: it turns flags into calls of package cluster and answers into lines. It holds no
// knowledge of Kubernetes.
package cli

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/dynamo-operator/dynamo-operator/localcluster/internal/clusterdir"
)

const intro = `A Kubernetes cluster of ordinary processes: no root, no containers, no network beyond loopback.

etcd, kube-apiserver, kube-controller-manager and kube-scheduler are real and are this same binary. Nodes, their GPUs
and the engines in pods are played. Everything a cluster has is in one directory: --dir, else $LOCALCLUSTER_DIR, else
.localcluster in the current folder.`

// Run executes the command line of this process and returns its exit status. kubectl, which does the same for its own,
// is passed in because of its size: nothing else here depends on the programs of Kubernetes.
func Run(kubectl func() int) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	if err := newRoot(kubectl).ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		return 1
	}
	return 0
}

func newRoot(kubectl func() int) *cobra.Command {
	root := &cobra.Command{
		Use:               "localcluster",
		Short:             "A Kubernetes cluster of ordinary processes",
		Long:              intro,
		SilenceUsage:      true,
		SilenceErrors:     true,
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: true},
	}
	dir := root.PersistentFlags().String("dir", "", "directory of the cluster (default $LOCALCLUSTER_DIR, else .localcluster)")
	resolve := func() (clusterdir.Dir, error) { return clusterdir.Resolve(*dir) }
	root.AddCommand(
		newUp(resolve), newSupervise(resolve), newDown(resolve), newStatus(resolve),
		newKubeconfig(resolve), newLogs(resolve), newKubectl(resolve, kubectl), newVersion(),
	)
	return root
}

type resolver func() (clusterdir.Dir, error)
