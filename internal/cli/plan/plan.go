// Package plan says what a change of a graph would do before it is made: which
// fields replace which pods, how many GPUs that takes, how few pods serve meanwhile
// and how long it takes. It renders by the operator's own code and writes nothing.
package plan

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/cli/connect"
	"github.com/dynamo-operator/dynamo-operator/internal/cli/exit"
	"github.com/dynamo-operator/dynamo-operator/internal/cli/input"
	"github.com/dynamo-operator/dynamo-operator/internal/cli/render"
	"github.com/dynamo-operator/dynamo-operator/internal/cli/validate"
	"github.com/dynamo-operator/dynamo-operator/internal/core/sanitise"
	"github.com/dynamo-operator/dynamo-operator/internal/core/validation"
)

const help = `Say what a manifest would change on graphs that run, without changing them:

  - each field that differs, and the services whose pods it replaces
  - GPUs held now, at the peak, and after
  - what is started and stopped at a time, and how few replicas serve meanwhile
  - how long that takes, from how long the pods took to start that run now

The graph that runs is read from the cluster or, with --live, from a file: a
manifest, or what kubectl get -o yaml printed. Pods in that file tell start times.
A field that the new manifest does not have counts as removed.

Pods are replaced in place: each service by its own workload and strategy, old and
new pods in one Dynamo namespace. Where the configuration (--config) rolls workers
out by generations, the steps are those of the operator's own planner, each a write.

The code is 0 if nothing changes, 2 if something does, and 3 if the change would be
refused, would leave a service without a single replica or below its floor for a
while, or would not come to its end.`

// Codes with which the command ends.
const (
	codeChanges = 2
	codeRefused = 3
)

type options struct {
	to           connect.Flags
	files        []string
	live         []string
	orchestrator string
	config       string
	output       string
}

// Command is the verb.
func Command() *cobra.Command {
	var o options
	command := &cobra.Command{
		Use:     "plan -f FILE",
		Short:   "Say what a change would replace, how few pods serve meanwhile, and how long it takes",
		Long:    help,
		Example: "  kubectl dynamo plan -f new.yaml\n  kubectl dynamo plan -f new.yaml --live live.yaml -o json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return o.run(cmd.Context(), cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	flags := command.Flags()
	o.to.Add(flags)
	flags.StringArrayVarP(&o.files, "filename", "f", nil, "file or folder with the new graphs, - for standard input; may be repeated")
	flags.StringArrayVar(&o.live, "live", nil, "file with the graphs that run, instead of asking a cluster; may be repeated")
	flags.StringVar(&o.orchestrator, "orchestrator", "auto", "what runs the pods: "+render.Orchestrators())
	flags.StringVar(&o.config, "config", "", "the operator's configuration file; its defaults if left out")
	flags.StringVarP(&o.output, "output", "o", "table", "table or json")
	if err := command.MarkFlagRequired("filename"); err != nil {
		panic(err) // the flag is defined above
	}
	return command
}

func (o options) run(ctx context.Context, stdin io.Reader, out, notes io.Writer) error {
	write, known := map[string]func(io.Writer, []Plan) error{"table": writeTable, "json": writeJSON}[o.output]
	if !known {
		return fmt.Errorf("output %q: table or json", o.output)
	}
	if o.output == "json" {
		out = sanitise.Document(out)
	}
	cfg, err := render.LoadConfig(o.config)
	if err != nil {
		return err
	}
	renderer, err := render.NewRenderer(o.orchestrator, cfg)
	if err != nil {
		return err
	}
	documents, err := input.Read(o.files, stdin)
	if err != nil {
		return err
	}
	source, err := o.source(stdin)
	if err != nil {
		return err
	}
	var plans []Plan
	for _, d := range documents {
		if !validate.Ours(d) || d.GetKind() != v1alpha1.KindDynamoGraphDeployment {
			fmt.Fprintf(notes, "%s: passed over, it is no graph\n", d)
			continue
		}
		if d.GetNamespace() == "" {
			d.SetNamespace(source.namespace())
		}
		p, err := o.plan(ctx, d, source, renderer, notes)
		if err != nil {
			return fmt.Errorf("%s: %w", d, err)
		}
		plans = append(plans, p)
	}
	if len(plans) == 0 {
		return errors.New("no DynamoGraphDeployment in the input")
	}
	if err := write(out, plans); err != nil {
		return err
	}
	return conclude(plans)
}

// source is where what runs is read: the files of --live, or a cluster.
func (o options) source(stdin io.Reader) (source, error) {
	if len(o.live) > 0 {
		if slices.Contains(o.live, input.Stdin) && slices.Contains(o.files, input.Stdin) {
			return nil, errors.New("standard input is either the new graphs or those that run")
		}
		documents, err := input.Read(o.live, stdin)
		return files{documents, cmp.Or(o.to.Given(), "default")}, err
	}
	c, err := o.to.Cluster()
	if err != nil {
		return nil, fmt.Errorf("%w; without a cluster, give the graph that runs with --live", err)
	}
	return cluster{c}, nil
}

// plan compares one graph with what runs of it.
func (o options) plan(ctx context.Context, d input.Document, from source, r render.Renderer, notes io.Writer) (Plan, error) {
	verdict, err := validate.Judge(d, r.Rules)
	if err != nil {
		return Plan{}, err
	}
	if len(verdict.Problems) > 0 {
		return Plan{}, exit.With{Code: codeRefused, Message: "would be refused: " + verdict.Problems.ToAggregate().Error()}
	}
	seen, err := from.live(ctx, d.GetNamespace(), d.GetName(), r.Rules)
	if err != nil {
		return Plan{}, err
	}
	if seen.graph != nil {
		if err := keepWords(d, seen.graph); err != nil {
			return Plan{}, err
		}
		// What it has by now was admitted; Update judges the change.
		if verdict, err = validate.Judge(d, r.Rules); err != nil {
			return Plan{}, err
		}
	}
	desired := verdict.Object.(*v1alpha1.DynamoGraphDeployment)
	if seen.graph != nil {
		inherit(desired, seen.graph)
		change := validation.Update(seen.graph, desired, r.Rules)
		if len(change.Problems) > 0 {
			return Plan{}, exit.With{Code: codeRefused, Message: "would be refused: " + change.Problems.ToAggregate().Error()}
		}
		verdict.Warnings = change.Warnings
	}
	for _, w := range verdict.Warnings {
		fmt.Fprintf(notes, "%s: warning: %s\n", d, w)
	}
	c := comparison{renderer: r, version: d.GetAPIVersion(), seen: seen, desired: desired, words: maps.Clone(d.GetAnnotations())}
	maps.DeleteFunc(c.words, func(key, _ string) bool { return !slices.Contains(words, key) })
	return c.plan()
}

// conclude is the code of all plans together.
func conclude(plans []Plan) error {
	code := 0
	for _, p := range plans {
		switch {
		case p.Interrupted():
			code = codeRefused
		case p.Changes():
			code = max(code, codeChanges)
		}
	}
	if code == 0 {
		return nil
	}
	return exit.With{Code: code}
}
