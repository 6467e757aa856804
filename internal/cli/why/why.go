// Package why explains why a graph is not ready: the way from the graph down to
// what fails, and what to do about it. It looks for itself, with the same rules
// as the operator, and says what the operator says where it finds nothing.
package why

import (
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"

	"github.com/dynamo-operator/dynamo-operator/internal/cli/connect"
	"github.com/dynamo-operator/dynamo-operator/internal/cluster/observe"
)

// Command is the verb.
func Command() *cobra.Command {
	var to connect.Flags
	command := &cobra.Command{
		Use:   "why NAME",
		Short: "Explain why a graph is not ready, and what to do about it",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			cluster, err := to.Cluster()
			if err != nil {
				return err
			}
			found, err := Look(cmd.Context(), cluster, observe.NewLogs(cluster.Pods), types.NamespacedName{Namespace: cluster.Namespace, Name: args[0]})
			if err != nil {
				return err
			}
			for _, line := range found.Lines() {
				fmt.Fprintln(cmd.OutOrStdout(), line)
			}
			return nil
		},
	}
	to.Add(command.Flags())
	return command
}
