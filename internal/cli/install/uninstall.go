package install

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/dynamo-operator/dynamo-operator/internal/cli/connect"
	"github.com/dynamo-operator/dynamo-operator/internal/cli/installation"
)

// Uninstall is the verb that takes the operator out.
func Uninstall() *cobra.Command {
	var to connect.Flags
	var purge bool
	var wait time.Duration
	command := &cobra.Command{
		Use:   "uninstall",
		Short: "Remove the operator; graphs go on serving unless they are purged",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cluster, err := to.Cluster()
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), wait)
			defer cancel()
			i := installation.Installer{Client: cluster.WithWatch, Owner: fieldManager}
			return uninstall(ctx, i, purge, cmd.OutOrStdout())
		},
	}
	to.AddCluster(command.Flags())
	command.Flags().BoolVar(&purge, "purge", false, "delete all graphs, models and requests first, and the definitions last")
	command.Flags().DurationVar(&wait, "timeout", 5*time.Minute, "how long to wait for all of it")
	return command
}

// uninstall goes from what needs the operator to what the operator needs. What
// stays must be deletable without it, so nothing of it waits for it any more.
func uninstall(ctx context.Context, i installation.Installer, purge bool, out io.Writer) error {
	if purge {
		for _, kind := range installation.Kinds() {
			gone, err := i.Purge(ctx, kind)
			if err != nil {
				return err
			}
			if gone > 0 {
				fmt.Fprintf(out, "✓ %d %s deleted\n", gone, kind.Kind)
			}
		}
	}
	objects, err := installation.Operator()
	if err != nil {
		return err
	}
	if err := i.Remove(ctx, objects); err != nil {
		return err
	}
	fmt.Fprintln(out, "✓ operator and its rights removed")
	if purge {
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
	for _, kind := range installation.Kinds() {
		freed, err := i.Free(ctx, kind)
		if err != nil {
			return err
		}
		if freed > 0 {
			fmt.Fprintf(out, "✓ %d %s stay and can be deleted without the operator\n", freed, kind.Kind)
		}
	}
	return nil
}
