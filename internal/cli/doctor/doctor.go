// Package doctor looks at an installation and says what is wrong with it and
// what to do. It changes nothing.
package doctor

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"k8s.io/client-go/discovery"

	"github.com/dynamo-operator/dynamo-operator/internal/cli/connect"
)

// verdict is how well something is.
type verdict int

const (
	fine verdict = iota
	note
	wrong
)

// finding is what one look found.
type finding struct {
	verdict verdict
	what    string
	// todo says what to do, where something is to be done.
	todo string
}

func (f finding) String() string {
	line := [...]string{fine: "✓ ", note: "· ", wrong: "✗ "}[f.verdict] + f.what
	if f.todo != "" {
		line += "\n    " + f.todo
	}
	return line
}

// target is the cluster that is looked at.
type target struct {
	*connect.Cluster
	apis discovery.DiscoveryInterface
}

// Command is the verb.
func Command() *cobra.Command {
	var to connect.Flags
	command := &cobra.Command{
		Use:   "doctor",
		Short: "Check versions, definitions, webhooks, certificates, rights and optional APIs",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cluster, err := to.Cluster()
			if err != nil {
				return err
			}
			apis, err := discovery.NewDiscoveryClientForConfig(cluster.Config)
			if err != nil {
				return err
			}
			return examine(cmd.Context(), target{Cluster: cluster, apis: apis}, cmd.OutOrStdout())
		},
	}
	to.AddCluster(command.Flags())
	return command
}

// examine prints every finding and fails if something is wrong.
func examine(ctx context.Context, p target, out io.Writer) error {
	problems := 0
	for _, look := range []func(context.Context, target) ([]finding, error){version, definitions, operator, webhooks, versions, policies, rights, optionalAPIs, gpus, graphs} {
		findings, err := look(ctx, p)
		if err != nil {
			return err
		}
		for _, f := range findings {
			if f.verdict == wrong {
				problems++
			}
			fmt.Fprintln(out, f)
		}
	}
	if problems > 0 {
		return fmt.Errorf("%d problems", problems)
	}
	return nil
}
