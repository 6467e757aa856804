// Command kubectl-dynamo is the command line beside the operator; kubectl finds
// it as a plugin.
package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/dynamo-operator/dynamo-operator/internal/cli/console"
	"github.com/dynamo-operator/dynamo-operator/internal/cli/convert"
	"github.com/dynamo-operator/dynamo-operator/internal/cli/demo"
	"github.com/dynamo-operator/dynamo-operator/internal/cli/doctor"
	"github.com/dynamo-operator/dynamo-operator/internal/cli/exit"
	"github.com/dynamo-operator/dynamo-operator/internal/cli/install"
	"github.com/dynamo-operator/dynamo-operator/internal/cli/models"
	"github.com/dynamo-operator/dynamo-operator/internal/cli/plan"
	"github.com/dynamo-operator/dynamo-operator/internal/cli/profile"
	"github.com/dynamo-operator/dynamo-operator/internal/cli/render"
	"github.com/dynamo-operator/dynamo-operator/internal/cli/rollout"
	"github.com/dynamo-operator/dynamo-operator/internal/cli/scale"
	"github.com/dynamo-operator/dynamo-operator/internal/cli/scale/wake"
	"github.com/dynamo-operator/dynamo-operator/internal/cli/status"
	"github.com/dynamo-operator/dynamo-operator/internal/cli/validate"
	"github.com/dynamo-operator/dynamo-operator/internal/cli/why"
	"github.com/dynamo-operator/dynamo-operator/internal/core/sanitise"
	"github.com/dynamo-operator/dynamo-operator/internal/core/version"
)

func main() {
	root := command()
	// What is shown are names, messages and log lines of tenants.
	stderr := sanitise.NewWriter(os.Stderr)
	root.SetOut(sanitise.NewWriter(os.Stdout))
	root.SetErr(stderr)
	if err := root.Execute(); err != nil {
		if err.Error() != "" {
			fmt.Fprintln(stderr, "kubectl-dynamo:", err)
		}
		os.Exit(code(err))
	}
}

func command() *cobra.Command {
	root := &cobra.Command{
		Use:           "kubectl-dynamo",
		Short:         "Work with inference graphs",
		Version:       version.String(),
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	scaling := scale.Command()
	scaling.AddCommand(wake.Command())
	root.AddCommand(convert.Command(), demo.Command(), doctor.Command(), install.Command(), install.Uninstall(), models.Command(), plan.Command(), profile.Command(), render.Command(), rollout.Command(), scaling, status.Command(), console.Command(), validate.Command(), why.Command())
	refuseUnknown(root)
	return root
}

// refuseUnknown has a verb with others below it refuse one that it does not have. By
// itself it would print its help and end well, and a script that says "rollout abrot"
// would go on as if something had been aborted.
func refuseUnknown(c *cobra.Command) {
	for _, below := range c.Commands() {
		if below.HasSubCommands() && !below.Runnable() {
			below.Args = cobra.NoArgs
			below.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
		}
		refuseUnknown(below)
	}
}

// code is 1, unless the verb has a meaning of its own for how it ended.
func code(err error) int {
	if end, ok := errors.AsType[exit.With](err); ok {
		return end.Code
	}
	return 1
}
