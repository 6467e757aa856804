// Package render prints, without a cluster, what the operator would apply for a
// manifest. It renders by the operator's own code and sends nothing.
package render

import (
	"cmp"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/cli/input"
	"github.com/dynamo-operator/dynamo-operator/internal/cli/output"
	"github.com/dynamo-operator/dynamo-operator/internal/cli/validate"
	"github.com/dynamo-operator/dynamo-operator/internal/cluster/scheme"
	"github.com/dynamo-operator/dynamo-operator/internal/core/sanitise"
	"github.com/dynamo-operator/dynamo-operator/internal/operator/config"
)

const help = `Print every object that the operator would apply for the graphs and components
of a manifest: first the children of a graph, by kind and name, then those of
each of its components. The same input gives the same bytes.

Manifests may be of v1alpha1 or v1beta1; objects of our own API are printed in the
version of the manifest. Otherwise the fields are exactly those that the operator
sends and owns on a cluster where nothing runs yet. What only a cluster knows is left out:
  - the uid in owner references, so the output is for reading, not for applying
  - pull Secrets that the operator finds in the namespace by registry
  - the SSH key of TensorRT-LLM on several nodes, which it makes once
  - the mark of a restart, which goes from service to service
  - how many GPUs pods claim by a ResourceClaimTemplate or ResourceClaim that is not in
    the input: command lines of services of several nodes depend on it

Orchestrators:
  auto        Deployments, and LeaderWorkerSets for services of several nodes;
              a graph that is recorded to run on Grove is rendered for Grove
  deployment  Deployments only; a service of several nodes is an error
  lws         as auto, whatever is recorded
  grove       one PodCliqueSet for each graph`

type options struct {
	files        []string
	namespace    string
	orchestrator string
	config       string
	output       output.Format
}

// Command is the verb.
func Command() *cobra.Command {
	var o options
	command := &cobra.Command{
		Use:     "render -f FILE",
		Short:   "Print what the operator would apply, without a cluster",
		Long:    help,
		Example: "  kubectl dynamo render -f graph.yaml\n  kubectl dynamo render -f graph.yaml -n prod --config operator.yaml --orchestrator grove -o json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return o.run(cmd.InOrStdin(), sanitise.Document(cmd.OutOrStdout()), cmd.ErrOrStderr())
		},
	}
	flags := command.Flags()
	input.Flag(flags, &o.files)
	flags.StringVarP(&o.namespace, "namespace", "n", "default", "namespace of documents that name none")
	flags.StringVar(&o.orchestrator, "orchestrator", auto, "what runs the pods: "+Orchestrators())
	flags.StringVar(&o.config, "config", "", "the operator's configuration file; its defaults if left out")
	flags.StringVarP((*string)(&o.output), "output", "o", string(output.YAML), "yaml or json")
	return command
}

// run prints all or nothing: half of a graph helps nobody.
func (o options) run(stdin io.Reader, out, notes io.Writer) error {
	if err := o.output.Validate(); err != nil {
		return err
	}
	cfg, err := LoadConfig(o.config)
	if err != nil {
		return err
	}
	renderer, err := NewRenderer(o.orchestrator, cfg)
	if err != nil {
		return err
	}
	p := &planner{Renderer: renderer, kinds: scheme.New()}
	documents, err := input.Read(o.files, stdin)
	if err != nil {
		return err
	}
	if p.Devices, err = claims(documents, o.namespace); err != nil {
		return err
	}
	var errs []error
	rendered := 0
	for _, d := range documents {
		if !renderable(d) {
			fmt.Fprintf(notes, "%s: passed over, the operator renders nothing for it\n", d)
			continue
		}
		rendered++
		if d.GetNamespace() == "" {
			d.SetNamespace(o.namespace)
		}
		if err := p.document(d, notes); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", d, err))
		}
	}
	switch {
	case len(errs) > 0:
		return errors.Join(errs...)
	case rendered == 0:
		return errors.New("no DynamoGraphDeployment or DynamoComponentDeployment in the input")
	default:
		return o.output.Write(out, p.objects, false)
	}
}

// LoadConfig reads the operator's configuration as it is where that is installed.
func LoadConfig(path string) (config.Config, error) {
	cfg, err := config.Load(path)
	if err != nil {
		return cfg, err
	}
	// Only the operator's pod is told where it runs; here it is where it is installed.
	cfg.Webhook.Namespace = cmp.Or(cfg.Webhook.Namespace, config.SystemNamespace)
	return cfg, cfg.Validate()
}

func renderable(d input.Document) bool {
	kind := d.GetKind()
	return validate.Ours(d) && (kind == v1alpha1.KindDynamoGraphDeployment || kind == v1alpha1.KindDynamoComponentDeployment)
}
