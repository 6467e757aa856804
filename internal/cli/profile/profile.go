// Package profile finds, without a cluster, a graph that meets a goal: from a
// request's manifest, a profiler's configuration, or flags alone.
package profile

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/api/v1beta1"
	"github.com/dynamo-operator/dynamo-operator/internal/cli/input"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/profileoutput"
	"github.com/dynamo-operator/dynamo-operator/internal/core/sanitise"
	"github.com/dynamo-operator/dynamo-operator/internal/profiler/bundle"
	"github.com/dynamo-operator/dynamo-operator/internal/profiler/config"
	"github.com/dynamo-operator/dynamo-operator/internal/profiler/file"
)

const help = `Find a graph that meets a goal, without a cluster and without a GPU.

The goal is a DynamoGraphDeploymentRequest (-f), or flags, or both: flags go over
the request. The answer comes from the performance model, with the band that its
estimates are good for; a model or GPU it has no table for is refused. Add your
own with --catalog.

What was found is printed as text. With --output the graph, its twin of mock
engines, the planner's profile and an HTML report are written to a folder; with
--graph the graph alone is printed, to be piped into kubectl apply.`

const examples = `  kubectl dynamo profile --model Qwen/Qwen3-32B --gpu h200_sxm --isl 3000 --osl 500 --ttft 300 --itl 20
  kubectl dynamo profile -f request.yaml --output found
  kubectl dynamo profile --model Qwen/Qwen3-32B --gpu h100_sxm --rate 20 --graph --image my/vllm:1 | kubectl apply -f -`

type options struct {
	file, base, catalog, output, name string
	graph, mocker                     bool
	set                               map[string]any // by path in the configuration
	misses                            bool           // a graph that only the cluster has
}

// Command is the verb.
func Command() *cobra.Command {
	o := &options{set: map[string]any{}}
	command := &cobra.Command{
		Use:     "profile [-f REQUEST] [--model MODEL --gpu GPU ...]",
		Short:   "Find a graph that meets a goal, without a cluster",
		Long:    help,
		Example: examples,
		Args:    cobra.NoArgs,
	}
	flags := command.Flags()
	flags.StringVarP(&o.file, "filename", "f", "", "request or profiler configuration, - for standard input")
	flags.StringVar(&o.base, "base", "", "`file` with a graph to start from, as configMapRef of a request names one")
	flags.StringVar(&o.catalog, "catalog", "", "`file` with more models, GPUs or constants")
	flags.StringVarP(&o.output, "output", "o", "", "`folder` to write graphs, profile and report to")
	flags.StringVar(&o.name, "name", "", "name of the graph; that of the request if not given")
	flags.BoolVar(&o.graph, "graph", false, "print the graph alone")
	flags.BoolVar(&o.mocker, "mocker", false, "with --graph: print its twin of mock engines")
	texts, numbers := map[string]*string{}, map[string]*float64{}
	text := func(path, name, usage string) { texts[path] = flags.String(name, "", usage) }
	number := func(path, name, usage string) { numbers[path] = flags.Float64(name, 0, usage) }
	text("deployment.model", "model", "model to serve")
	text("deployment.dgdImage", "image", "image of the graph's services")
	text("engine.backend", "backend", "vllm, sglang or trtllm")
	text("sweep.aicSystem", "gpu", "GPU, such as h200_sxm")
	text("sweep.modes", "modes", "aggregated, disaggregated or both, by comma")
	number("sla.isl", "isl", "prompt tokens of a request")
	number("sla.osl", "osl", "output tokens of a request")
	number("sla.ttft", "ttft", "target of the time to the first token, in ms")
	number("sla.itl", "itl", "target of the time between tokens, in ms")
	number("sla.requestRate", "rate", "requests a second to size replicas for")
	number("sla.confidence", "confidence", "chance, 0.5 to 0.99, with which targets are to be kept, as far as the model's bands tell")
	text("sla.arrival", "arrival", "how requests come: in-step, spread or poisson")
	number("hardware.gpuBudget", "gpus", "most GPUs of the whole graph")
	number("hardware.maxNumGpusPerEngine", "engine-gpus", "most GPUs of one engine")
	number("hardware.numGpusPerNode", "gpus-per-node", "GPUs of a node")
	number("hardware.pricePerGpuHour", "price", "dollars for a GPU and hour")
	command.RunE = func(cmd *cobra.Command, _ []string) error {
		for path, value := range texts {
			if *value != "" {
				o.set[path] = *value
			}
		}
		for path, value := range numbers {
			if *value != 0 {
				o.set[path] = *value
			}
		}
		return o.run(cmd.InOrStdin(), sanitise.Document(cmd.OutOrStdout()), cmd.ErrOrStderr())
	}
	return command
}

func (o *options) run(in io.Reader, out, notes io.Writer) error {
	c, base, name, err := o.read(in)
	if err != nil {
		return err
	}
	if o.misses && base == nil {
		fmt.Fprintln(notes, "note: the graph of configMapRef is in the cluster; without --base a template is taken")
	}
	catalog, err := file.Catalog(o.catalog)
	if err != nil {
		return err
	}
	if c.Engine.Config != "" && base == nil {
		if base, err = os.ReadFile(c.Engine.Config); err != nil {
			return fmt.Errorf("read engine.config: %w", err)
		}
	}
	names := bundle.Names{Graph: graph.RequestedGraph(name), ProfileData: graph.RequestedConfigMap(name, "profile-data")}
	if o.graph {
		names.ProfileData = "" // a graph on its own mounts nothing that nobody made
	}
	found, made, err := bundle.Search(c, catalog, base, names)
	if err != nil {
		return errors.New(bundle.Failure(err).Message) // as a controller would say it
	}
	b, err := bundle.Compose(c, made, found)
	if err != nil {
		return err
	}
	switch {
	case o.graph && o.mocker:
		fmt.Fprint(out, b.Result.MockerDeployment)
	case o.graph:
		fmt.Fprint(out, b.Result.GeneratedDeployment)
	default:
		fmt.Fprint(out, b.Text)
	}
	if o.output != "" {
		files, err := b.Files()
		if err == nil {
			err = file.Write(o.output, files)
		}
		if err != nil {
			return err
		}
		fmt.Fprintf(notes, "wrote %s\n", filepath.Join(o.output, profileoutput.KeyReportHTML))
	}
	if b.Result.State == profileoutput.Failed {
		return errors.New(b.Result.Message)
	}
	return nil
}

// read is the configuration with the flags over it, and the user's graph.
func (o *options) read(in io.Reader) (c *config.Config, base []byte, name string, err error) {
	fields := map[string]any{}
	var asked *config.Request
	name = "profile"
	if o.file != "" {
		documents, err := input.Read([]string{o.file}, in)
		if err != nil {
			return nil, nil, "", err
		}
		for _, d := range documents {
			switch d.GetKind() {
			case v1alpha1.KindDynamoGraphDeploymentRequest:
				if name = d.GetName(); name == "" {
					name = "profile"
				}
				if fields, asked, err = o.request(d); err != nil {
					return nil, nil, "", err
				}
			case v1alpha1.KindDynamoGraphDeployment:
				if base, err = yaml.Marshal(d.Object); err != nil {
					return nil, nil, "", err
				}
			case "":
				body, err := yaml.Marshal(d.Object)
				if err != nil {
					return nil, nil, "", err
				}
				if fields, asked, err = config.Fields(string(body)); err != nil {
					return nil, nil, "", err
				}
			}
		}
	}
	if o.name != "" {
		name = o.name
	}
	for path, value := range o.set {
		put(fields, path, value)
	}
	if o.base != "" {
		if base, err = os.ReadFile(o.base); err != nil {
			return nil, nil, "", fmt.Errorf("read base graph: %w", err)
		}
	}
	c, err = config.Of(fields, asked)
	return c, base, name, err
}

// request is what a controller would make of a request's configuration. One of
// v1beta1 is its configuration.
func (o *options) request(d input.Document) (map[string]any, *config.Request, error) {
	if d.GetAPIVersion() == v1beta1.SchemeGroupVersion.String() {
		spec, err := yaml.Marshal(d.Object["spec"])
		if err != nil {
			return nil, nil, err
		}
		fields, asked, err := config.Fields(string(spec))
		if err == nil && asked != nil {
			o.mocker = o.mocker || asked.Mocker
		}
		return fields, asked, err
	}
	body, err := d.MarshalJSON()
	if err != nil {
		return nil, nil, err
	}
	var r v1alpha1.DynamoGraphDeploymentRequest
	if err := json.Unmarshal(body, &r); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", d, err)
	}
	fields := map[string]any{}
	if given := r.Spec.ProfilingConfig.Config; given != nil {
		if err := json.Unmarshal(given.Raw, &fields); err != nil {
			return nil, nil, fmt.Errorf("%s: profilingConfig.config: %w", d, err)
		}
	}
	put(fields, "deployment.model", r.Spec.Model)
	put(fields, "engine.backend", string(r.Spec.Backend))
	if overrides := r.Spec.DeploymentOverrides; overrides != nil && overrides.WorkersImage != "" {
		put(fields, "deployment.dgdImage", overrides.WorkersImage)
	}
	o.misses = r.Spec.ProfilingConfig.ConfigMapRef != nil
	return fields, nil, nil
}

// put sets a value by its path of two keys.
func put(fields map[string]any, path string, value any) {
	name, key, _ := strings.Cut(path, ".")
	inner, ok := fields[name].(map[string]any)
	if !ok {
		inner = map[string]any{}
		fields[name] = inner
	}
	inner[key] = value
}
