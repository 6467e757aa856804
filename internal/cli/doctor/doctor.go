// Package doctor looks at an installation and says what is wrong with it and
// what to do. It changes nothing.
package doctor

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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
			return examine(cmd.Context(), target{Cluster: cluster, apis: apis}, looks, cmd.OutOrStdout())
		},
	}
	to.AddCluster(command.Flags())
	return command
}

// look is one look at an installation.
type look struct {
	of func(context.Context, target) ([]finding, error)
	// asks says that it sends requests that are no reads, though they change
	// nothing: dry runs and reviews of rights.
	asks bool
}

var looks = []look{
	{of: version},
	{of: definitions, asks: true},
	{of: operator},
	{of: webhooks},
	{of: versions},
	{of: policies},
	{of: rights, asks: true},
	{of: optionalAPIs},
	{of: gpus},
	{of: graphs},
}

// Finding is what one look found, for who shows it elsewhere than on a terminal.
type Finding struct {
	// Wrong is something that has to be mended, Note something to know.
	Wrong, Note bool
	What, Todo  string
}

// Read takes the looks that only read. One that fails, such as for want of rights,
// is a finding of its own: the others still count.
func Read(ctx context.Context, cluster *connect.Cluster) ([]Finding, error) {
	apis, err := discovery.NewDiscoveryClientForConfig(cluster.Config)
	if err != nil {
		return nil, err
	}
	var all []Finding
	for _, l := range looks {
		if l.asks {
			continue
		}
		findings, err := l.of(ctx, target{Cluster: cluster, apis: apis})
		if err != nil {
			all = append(all, Finding{Note: true, What: "one look failed: " + err.Error(), Todo: "kubectl dynamo doctor, as somebody who may read that"})
		}
		for _, f := range findings {
			all = append(all, Finding{Wrong: f.verdict == wrong, Note: f.verdict == note, What: f.what, Todo: f.todo})
		}
	}
	return all, nil
}

// examine prints every finding and fails if something is wrong. A look that the API server
// refuses, such as for want of rights, is one of the problems: the others still count.
func examine(ctx context.Context, p target, looks []look, out io.Writer) error {
	problems := 0
	for _, l := range looks {
		findings, err := l.of(ctx, p)
		if err != nil {
			if answer := apierrors.APIStatus(nil); !errors.As(err, &answer) {
				return err // nobody answers the others either
			}
			findings = append(findings, finding{verdict: wrong, what: "one look failed: " + err.Error()})
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
