package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/dynamo-operator/dynamo-operator/localcluster/internal/cluster"
)

func newDown(resolve resolver) *cobra.Command {
	var remove bool
	cmd := &cobra.Command{
		Use:   "down",
		Short: "Stop the cluster; its data stays for the next up",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir, err := resolve()
			if err != nil {
				return err
			}
			ran, err := cluster.Stop(cmd.Context(), dir)
			if err != nil {
				return err
			}
			answer := "was not running"
			if ran {
				answer = "stopped"
			}
			if remove {
				if err := dir.Delete(); err != nil {
					return err
				}
				answer += ", " + string(dir) + " deleted"
			}
			fmt.Fprintln(cmd.OutOrStdout(), answer)
			return nil
		},
	}
	cmd.Flags().BoolVar(&remove, "delete", false, "delete the cluster's directory too")
	return cmd
}
