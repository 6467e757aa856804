// Package scale is the verb about scaling: what was decided about a graph and why, and
// what policies would make of a trace, which it plays against the same decisions that a
// planner makes. It changes nothing.
package scale

import (
	"cmp"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/dynamo-operator/dynamo-operator/internal/cli/connect"
	"github.com/dynamo-operator/dynamo-operator/internal/core/perfmodel"
	"github.com/dynamo-operator/dynamo-operator/internal/core/planner/capacity"
	"github.com/dynamo-operator/dynamo-operator/internal/core/planner/decision"
	"github.com/dynamo-operator/dynamo-operator/internal/core/planner/simulation"
	"github.com/dynamo-operator/dynamo-operator/internal/core/planner/trace"
	"github.com/dynamo-operator/dynamo-operator/internal/core/price"
	"github.com/dynamo-operator/dynamo-operator/internal/core/sanitise"
)

// Command is the verb.
func Command() *cobra.Command {
	command := &cobra.Command{Use: "scale", Short: "See why a graph has its replicas, and what policies of scaling would do"}
	command.AddCommand(explainCommand(), historyCommand(), simulate(), advise())
	return command
}

type options struct {
	trace                   string
	fromCluster             bool
	came                    *trace.Bins // to a graph, where its planner was asked
	low, high               float64
	period, length, repeat  time.Duration
	input, output           int32
	rate, time, spread      float64
	ttft, itl               float64
	startups                []time.Duration
	policies                []string
	gpus                    int
	profile, model, gpu     string
	kinds                   [decision.Roles]string // GPUs of a graph's roles
	backend, page           string
	prefillGPUs, decodeGPUs int
	price                   float64
	quantile                float64
	seed                    uint64
}

const help = `Plays a trace of requests against replicas that start, serve and end, under several policies, and
prints for each how many requests kept the targets, and what GPU-hours and dollars that took. The
policies:

  native       decisions as dynamo-operator makes them: forecast, need, one budget for both roles
  original     the planner of January 2026, every 60 s, that remembers the last value
  hpa          a HorizontalPodAutoscaler for each role, on requests per replica
  fixed        the best fixed size, chosen in hindsight
  clairvoyant  knows every request beforehand: no policy can be expected to do better

--trace is a file in the form of Azure's or BurstGPT's CSV or Mooncake's JSON lines, gzip or not,
or one of sine, step and poisson, which are made. With --from-cluster and a GRAPH it is what came to
that graph, as its planner has seen it while it ran, a day at most: ticks of 5 s and mean lengths,
in which requests come by chance. The planner is asked through pods/proxy, with your rights.
Replicas are timed by --profile, a folder that the profiler wrote, by --model and --gpu through the
performance model, or else as a model of 8 billion parameters on one H200. GPU-hours are priced by
--price, or by a table of round figures for --gpu; what GPU a profile is of nobody knows. Routing is
ideal and the timing exact: what differs between two lines is the policy.`

func simulate() *cobra.Command {
	var to connect.Flags
	o := &options{}
	command := &cobra.Command{
		Use:   "simulate (--trace TRACE | GRAPH --from-cluster)",
		Short: "Play a trace against policies of scaling, without a cluster",
		Long:  help,
		Example: `  kubectl dynamo scale simulate --trace sine --low 5 --high 45
  kubectl dynamo scale simulate --trace day.csv --rate-scale 12 --ttft 300 --itl 12 --page day.html
  kubectl dynamo scale simulate chat --from-cluster --rate-scale 2`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.fromCluster != (len(args) == 1) {
				return errors.New("--from-cluster goes with the name of a graph, and a graph with it")
			}
			if err := o.ask(cmd.Context(), &to, args); err != nil {
				return err
			}
			return o.run(sanitise.Document(cmd.OutOrStdout()), cmd.ErrOrStderr())
		},
	}
	f := command.Flags()
	o.flags(f)
	to.Add(f)
	f.DurationSliceVar(&o.startups, "startup", []time.Duration{30 * time.Second, 120 * time.Second}, "how long a replica takes to serve; several by comma")
	f.StringSliceVar(&o.policies, "policy", []string{"native", "original", "hpa", "fixed", "clairvoyant"}, "policies, by comma")
	f.Float64Var(&o.quantile, "quantile", 0, "share of futures that native is ready for; its default if not given")
	f.StringVar(&o.page, "page", "", "`file` to write the curves to, as one HTML page")
	require(command)
	return command
}

// require has a trace be given, once.
func require(command *cobra.Command) {
	command.MarkFlagsOneRequired("trace", "from-cluster")
	command.MarkFlagsMutuallyExclusive("trace", "from-cluster")
}

// ask asks the planner of a graph what came to it, where that is the trace.
func (o *options) ask(ctx context.Context, to *connect.Flags, graphs []string) (err error) {
	if !o.fromCluster {
		return nil
	}
	if o.came, err = observed(ctx, to, graphs[0]); err == nil {
		o.trace = "what came to " + graphs[0]
	}
	return err
}

// flags are those of what is played, and on what.
func (o *options) flags(f *pflag.FlagSet) {
	f.StringVar(&o.trace, "trace", "", "`file` of requests, or sine, step or poisson")
	f.BoolVar(&o.fromCluster, "from-cluster", false, "take what came to the graph, as its planner has seen it, for the trace")
	f.Float64Var(&o.low, "low", 5, "lowest rate of a trace that is made, in requests a second")
	f.Float64Var(&o.high, "high", 45, "highest rate of a trace that is made; the rate of poisson")
	f.DurationVar(&o.period, "period", 10*time.Minute, "period of sine; of step a third of it before, in and after the step is --length / 3")
	f.DurationVar(&o.length, "length", 30*time.Minute, "length of a trace that is made")
	f.Int32Var(&o.input, "isl", 3000, "prompt tokens of a trace that is made")
	f.Int32Var(&o.output, "osl", 300, "output tokens of a trace that is made")
	f.DurationVar(&o.repeat, "repeat", 0, "play the trace again and again for so long")
	f.Float64Var(&o.rate, "rate-scale", 1, "copies of each request of a file, or of a graph's")
	f.Float64Var(&o.spread, "spread", 20, "seconds over which the copies are spread")
	f.Float64Var(&o.time, "time-scale", 1, "factor on the times of a file, or of a graph's")
	f.Float64Var(&o.ttft, "ttft", 200, "target of the time to the first token, in ms")
	f.Float64Var(&o.itl, "itl", 10, "target of the time between tokens, in ms")
	f.IntVar(&o.gpus, "gpus", 16, "budget of GPUs; 0 is none")
	f.IntVar(&o.prefillGPUs, "prefill-gpus", 1, "GPUs of a prefill replica")
	f.IntVar(&o.decodeGPUs, "decode-gpus", 1, "GPUs of a decode replica")
	f.StringVar(&o.profile, "profile", "", "`folder` with the profile of an engine, as the planner mounts it")
	f.StringVar(&o.model, "model", "", "model, timed by the performance model")
	f.StringVar(&o.gpu, "gpu", "", "GPU that replicas have, by which --model is timed and GPU-hours are priced; "+assumedGPU+" for --model if neither this nor the graph's planner says")
	f.Float64Var(&o.price, "price", 0, "dollars for a GPU and hour; those of the built-in table for --gpu if not given")
	f.StringVar(&o.backend, "backend", "vllm", "engine of --model: vllm, sglang or trtllm")
	f.Uint64Var(&o.seed, "seed", 7, "what chance begins with: the same gives the same")
}

// Section is one start-up time with what each policy made of it.
type Section struct {
	Startup time.Duration
	// Price is that of a GPU.
	Price  price.Tag
	Played []simulation.Played
}

func (o *options) run(out, notes io.Writer) error {
	for _, p := range o.policies {
		if !slices.Contains(simulation.Names(), simulation.Name(p)) {
			return fmt.Errorf("policy %q: want some of %v", p, simulation.Names())
		}
	}
	each := decision.Vector{max(1, o.prefillGPUs), max(1, o.decodeGPUs)}
	if least := each[decision.Prefill] + each[decision.Decode]; o.gpus > 0 && o.gpus < least {
		return fmt.Errorf("--gpus %d: one replica of prefill and one of decode take %d", o.gpus, least)
	}
	t, err := o.requests()
	if err != nil {
		return err
	}
	model, err := o.timing()
	if err != nil {
		return err
	}
	input, output := t.Means()
	fmt.Fprintf(out, "%s: %d requests in %s, %.1f/s, %.0f and %.0f tokens; TTFT %.0f ms, ITL %.0f ms, %d GPUs\n",
		o.trace, len(t), time.Duration(t.Length()*float64(time.Second)).Round(time.Second), t.Rate(), input, output, o.ttft, o.itl, o.gpus)
	tag := o.tag()
	fmt.Fprintln(out, tag)
	var sections []Section
	for _, startup := range o.startups {
		s := simulation.Setup{
			Trace: t, Model: model, Target: capacity.Target{FirstToken: o.ttft / 1e3, Token: o.itl / 1e3}, Startup: startup.Seconds(),
			Budget: o.gpus, GPUs: each,
		}
		s.Begin = simulation.Beginning(s)
		section := Section{Startup: startup, Price: tag}
		for _, name := range o.policies {
			p, err := simulation.Play(s, simulation.Name(name), func(c *decision.Config) {
				if o.quantile > 0 {
					c.Quantile = o.quantile
				}
			})
			if err != nil {
				return err
			}
			section.Played = append(section.Played, p)
		}
		sections = append(sections, section)
		Print(out, section)
	}
	if o.page == "" {
		return nil
	}
	text, err := page(o.trace, sections)
	if err != nil {
		return err
	}
	if err := os.WriteFile(o.page, []byte(text), 0o644); err != nil { //nolint:gosec // a report to be shown around
		return fmt.Errorf("write the page: %w", err)
	}
	fmt.Fprintf(notes, "wrote %s\n", o.page)
	return nil
}

// Print is a table of one start-up time.
func Print(out io.Writer, s Section) {
	fmt.Fprintf(out, "\nstarts of %s\n", s.Startup)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "POLICY\tSLO %\tTTFT %\tITL %\tP95 TTFT\tP95 ITL\tGPU-HOURS\tCOST\tPEAK\tCHANGES\tOVER BUDGET\t")
	for _, p := range s.Played {
		fmt.Fprintf(w, "%s\t%.1f\t%.1f\t%.1f\t%.0f ms\t%.1f ms\t%.2f\t%s\t%d\t%d\t%d\t%s\n", p.Policy, 100*p.Met, 100*p.MetFirst, 100*p.MetToken,
			1e3*p.First95, 1e3*p.Token95, p.GPUHours, s.Price.Hours(p.GPUHours), p.Peak, p.Changes, p.Violations, p.Note)
	}
	_ = w.Flush() // to the same writer, whose errors nobody is left to be told
}

// assumedGPU is what replicas have where nothing says otherwise.
const assumedGPU = "h200_sxm"

// tag is the price of a GPU. Of which one a profile is nobody knows.
func (o *options) tag() price.Tag {
	gpu := o.gpu
	if gpu == "" && o.profile == "" {
		gpu = assumedGPU
	}
	return price.Find(o.price, gpu)
}

// requests is the trace.
func (o *options) requests() (trace.Trace, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	chance := rand.New(rand.NewPCG(o.seed, o.seed)) //nolint:gosec // a simulation is to be the same each time
	length := o.length.Seconds()
	var t trace.Trace
	switch o.trace {
	case "sine":
		t = trace.Generate(trace.Sine(o.low, o.high, o.period.Seconds()), length, o.input, o.output, chance)
	case "step":
		t = trace.Generate(trace.Step(o.low, o.high, length/3, 2*length/3), length, o.input, o.output, chance)
	case "poisson":
		t = trace.Generate(trace.Poisson(o.high), length, o.input, o.output, chance)
	default:
		var err error
		if t, err = o.recorded(chance); err != nil {
			return nil, err
		}
		t = t.Stretch(o.time)
		if o.repeat > 0 {
			t = t.Repeat(o.repeat.Seconds())
		}
		if o.rate != 1 {
			t = t.Multiply(o.rate, o.spread, chance)
		}
	}
	if t.Length() < simulation.Slot {
		return nil, fmt.Errorf("trace %s: %d requests in %.0f s are too few", o.trace, len(t), t.Length())
	}
	return t, nil
}

// recorded are requests that somebody sent: those that a planner saw, or those of a file.
func (o *options) recorded(chance *rand.Rand) (trace.Trace, error) {
	if o.came == nil {
		return ReadTrace(o.trace)
	}
	t, err := o.came.Trace(chance)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", o.trace, err)
	}
	return t, nil
}

// ReadTrace reads a file, compressed or not.
func ReadTrace(path string) (trace.Trace, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var from io.Reader = file
	if strings.HasSuffix(path, ".gz") {
		if from, err = gzip.NewReader(file); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	t, err := trace.Read(from)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return t, nil
}

// timing is what times replicas.
func (o *options) timing() (capacity.Model, error) {
	switch {
	case o.profile != "":
		return readProfile(o.profile)
	case o.model != "":
		catalog := perfmodel.Default()
		model, err := catalog.Model(o.model)
		if err != nil {
			return nil, err
		}
		engine := func(role decision.Role, gpus int) (*perfmodel.Estimator, error) {
			gpu, err := catalog.GPU(cmp.Or(o.kinds[role], o.gpu, assumedGPU))
			if err != nil {
				return nil, err
			}
			return catalog.Estimator(perfmodel.Setup{Model: model, GPU: gpu, Engine: perfmodel.Engine(o.backend), Parallel: perfmodel.Parallel{TP: max(1, gpus)}, Pool: true})
		}
		prefill, err := engine(decision.Prefill, o.prefillGPUs)
		if err != nil {
			return nil, err
		}
		decode, err := engine(decision.Decode, o.decodeGPUs)
		if err != nil {
			return nil, err
		}
		return capacity.FromEstimators(prefill, decode)
	default:
		return capacity.H200(), nil
	}
}

// readProfile reads one from where the original's planner looks for it.
func readProfile(folder string) (capacity.Model, error) {
	p, err := capacity.ReadProfile(os.DirFS(folder))
	if err != nil {
		return nil, fmt.Errorf("profile %s: %w", folder, err)
	}
	return p.Model()
}
