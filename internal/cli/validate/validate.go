// Package validate says, without a cluster, what is wrong with manifests of our
// API: everything at once, by file and field. It changes nothing.
package validate

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/dynamo-operator/dynamo-operator/internal/cli/input"
	rules "github.com/dynamo-operator/dynamo-operator/internal/core/validation"
	"github.com/dynamo-operator/dynamo-operator/internal/operator/config"
)

const help = `Check manifests of nvidia.com, v1alpha1 and v1beta1, without a cluster.

Every problem of every document is printed with its file and field, and the
command ends with code 1 if there is any. Unknown fields are problems. A warning
is something that is admitted and does not do what a reader would expect; it
does not fail the command. Documents of other APIs are passed over.

What only a cluster knows is not checked: whether claims, Secrets, queues and
optional APIs exist, what you may do there, and what may change on an object that
is there already. The limits of one operator are checked if its configuration is
given with --config.`

// Command is the verb.
func Command() *cobra.Command {
	var files []string
	var configuration string
	command := &cobra.Command{
		Use:     "validate -f FILE",
		Short:   "Check manifests without a cluster, all problems at once",
		Long:    help,
		Example: "  kubectl dynamo validate -f graph.yaml\n  helm template chart | kubectl dynamo validate -f -",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := config.Load(configuration)
			if err != nil {
				return err
			}
			documents, err := input.Read(files, cmd.InOrStdin())
			if err != nil {
				return err
			}
			return run(documents, cfg.Rules(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	input.Flag(command.Flags(), &files)
	command.Flags().StringVar(&configuration, "config", "", "the operator's configuration file; its defaults if left out")
	return command
}

func run(documents []input.Document, scope rules.Scope, out, notes io.Writer) error {
	problems, checked := 0, 0
	for _, d := range documents {
		if !Ours(d) {
			fmt.Fprintf(notes, "%s: passed over, it is of another API\n", d)
			continue
		}
		checked++
		v, err := Judge(d, scope)
		if err != nil {
			return err
		}
		Print(out, d, v)
		problems += len(v.Problems)
	}
	switch {
	case problems > 0:
		return fmt.Errorf("%s in %s", count(problems, "problem"), count(checked, "document"))
	case checked == 0:
		return fmt.Errorf("no document of nvidia.com among %s", count(len(documents), "document"))
	default:
		return nil
	}
}

// Print says what was found, or that all is well.
func Print(out io.Writer, d input.Document, v Verdict) {
	for _, e := range v.Problems {
		fmt.Fprintf(out, "%s: error: %s\n", d, describe(e))
	}
	for _, w := range v.Warnings {
		fmt.Fprintf(out, "%s: warning: %s\n", d, w)
	}
	if len(v.Problems) == 0 {
		fmt.Fprintf(out, "%s: ok\n", d)
	}
}

func count(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", n, word)
}
