// Package install puts the operator into a cluster, and takes it out again in an
// order in which nothing hangs.
package install

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/dynamo-operator/dynamo-operator/internal/cli/connect"
	"github.com/dynamo-operator/dynamo-operator/internal/installation"
)

// fieldManager is under whose name the installation is written.
const fieldManager = "kubectl-dynamo"

// Command is the verb that installs.
func Command() *cobra.Command {
	var to connect.Flags
	var image string
	var wait time.Duration
	command := &cobra.Command{
		Use:   "install",
		Short: "Install the operator and the definitions of its API, or bring them up to date",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cluster, err := to.Cluster()
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), wait)
			defer cancel()
			i := installation.Installer{Client: cluster.WithWatch, Owner: fieldManager, Image: image}
			for _, step := range []struct {
				what string
				do   func(context.Context) error
			}{
				{"no other operator for all namespaces", i.Alone},
				{"definitions of the API", i.Definitions},
				{"operator and its rights", i.Operator},
				{"operator is ready", i.Ready},
			} {
				if err := step.do(ctx); err != nil {
					return err
				}
				fmt.Fprintln(cmd.OutOrStdout(), "✓", step.what)
			}
			return nil
		},
	}
	to.AddCluster(command.Flags())
	command.Flags().StringVar(&image, "image", "", "image of the operator, instead of the one it is shipped with")
	command.Flags().DurationVar(&wait, "timeout", 5*time.Minute, "how long to wait for all of it")
	return command
}
