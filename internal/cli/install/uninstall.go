package install

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"

	"github.com/dynamo-operator/dynamo-operator/internal/cli/connect"
	"github.com/dynamo-operator/dynamo-operator/internal/cli/installation"
)

// Uninstall is the verb that takes the operator out.
func Uninstall() *cobra.Command {
	var to connect.Flags
	var at place
	var purge bool
	var wait time.Duration
	command := &cobra.Command{
		Use:   "uninstall",
		Short: "Remove the operator; graphs go on serving unless they are purged",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := at.validate(); err != nil {
				return err
			}
			cluster, err := to.Cluster()
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), wait)
			defer cancel()
			i := installation.Installer{Client: cluster.WithWatch, Owner: fieldManager, Home: at.home}
			return uninstall(ctx, i, at, purge, cmd.OutOrStdout())
		},
	}
	to.AddCluster(command.Flags())
	at.add(command.Flags())
	command.Flags().BoolVar(&purge, "purge", false, "delete all graphs, models and requests first, and the definitions last, unless the operator is for one namespace")
	command.Flags().DurationVar(&wait, "timeout", 5*time.Minute, "how long to wait for all of it")
	return command
}

// uninstall goes from what needs the operator to what the operator needs. What
// stays must be deletable without it, so nothing of it waits for it any more.
func uninstall(ctx context.Context, i installation.Installer, at place, purge bool, out io.Writer) error {
	if err := at.same(ctx, i.Client); err != nil {
		return err
	}
	if at.target == "" {
		if err := i.NotByHelm(ctx); err != nil {
			return err
		}
	}
	if purge {
		for _, kind := range installation.Kinds() {
			gone, err := i.Purge(ctx, kind, at.target)
			if err != nil {
				return err
			}
			if gone > 0 {
				fmt.Fprintf(out, "✓ %d %s deleted\n", gone, kind.Kind)
			}
		}
	}
	objects, err := at.objects()
	if err != nil {
		return err
	}
	if at.converter {
		converter, err := installation.Converter(at.home)
		if err != nil {
			return err
		}
		if err := i.RemoveConverter(ctx, converter, out); err != nil {
			return err
		}
	}
	if !purge {
		if err := i.Retire(ctx, types.NamespacedName{Namespace: at.home, Name: installation.Deployment}, at.namespaces(), out); err != nil {
			return err
		}
	}
	if err := i.Remove(ctx, objects, out); err != nil {
		return err
	}
	fmt.Fprintln(out, "✓ operator and its rights removed")
	if !purge || at.target != "" { // definitions are of the cluster
		return nil
	}
	definitions, err := installation.Definitions()
	if err != nil {
		return err
	}
	if err := i.Delete(ctx, definitions); err != nil {
		return err
	}
	fmt.Fprintln(out, "✓ definitions of the API removed")
	return nil
}
