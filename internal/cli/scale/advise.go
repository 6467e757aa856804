package scale

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/types"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/cli/connect"
	"github.com/dynamo-operator/dynamo-operator/internal/cli/input"
	"github.com/dynamo-operator/dynamo-operator/internal/cli/validate"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/planner/capacity"
	"github.com/dynamo-operator/dynamo-operator/internal/core/planner/decision"
	"github.com/dynamo-operator/dynamo-operator/internal/core/planner/pricing"
	"github.com/dynamo-operator/dynamo-operator/internal/core/planner/simulation"
	"github.com/dynamo-operator/dynamo-operator/internal/core/validation"
	"github.com/dynamo-operator/dynamo-operator/internal/planner/config"
	"github.com/dynamo-operator/dynamo-operator/internal/planner/role"
)

const adviseHelp = `Plays a trace of requests against what a graph with prefill and decode could be told, and says
which to take: a fixed size, the planner with floors and pauses, or a HorizontalPodAutoscaler a role.
It takes what keeps the targets for --share of the requests with the fewest GPU-hours.

Of the graph it takes GPUs of replicas, the planner's targets, floors and budget, the model that
workers serve, its GPUs and their price as the planner is told, and how long starts took; a flag
counts more. Traces are as those of simulate. Routing is ideal
and times are those of the model, so figures compare policies and promise nothing about a cluster.
A fixed size is chosen knowing the trace: tomorrow's may be higher.`

func advise() *cobra.Command {
	var to connect.Flags
	var files []string
	var startup time.Duration
	share := 0.97
	o := &options{}
	command := &cobra.Command{
		Use:   "advise [GRAPH] (--trace TRACE | --from-cluster)",
		Short: "Say which policy of scaling a graph is to take for a trace",
		Long:  adviseHelp,
		Example: `  kubectl dynamo scale advise chat --trace day.csv
  kubectl dynamo scale advise chat --from-cluster
  kubectl dynamo scale advise -f graph.yaml --trace sine --low 5 --high 45 --startup 2m`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			dgd, err := subject(cmd.Context(), &to, args, files, cmd.InOrStdin())
			if err != nil {
				return err
			}
			if !(share > 0 && share <= 1) {
				return fmt.Errorf("--share %v: want more than 0 and at most 1", share)
			}
			if startup < 0 {
				return fmt.Errorf("--startup %s: want 0 or more", startup)
			}
			if o.fromCluster && len(args) == 0 {
				return errors.New("--from-cluster goes with the name of a graph")
			}
			if err := o.ask(cmd.Context(), &to, args); err != nil {
				return err
			}
			c := &consultation{options: o, share: share, startup: startup}
			if err := c.read(dgd, cmd.Flags()); err != nil {
				return err
			}
			return c.run(cmd.OutOrStdout())
		},
	}
	f := command.Flags()
	o.flags(f)
	to.Add(f)
	f.StringArrayVarP(&files, "filename", "f", nil, "file with the graph, instead of one in a cluster; - is standard input")
	f.DurationVar(&startup, "startup", 0, "how long a replica takes to serve; as the graph's status has it, or 2m, if not given")
	f.Float64Var(&share, "share", share, "share of requests that are to keep both targets")
	require(command)
	return command
}

// subject is the graph that advice is for.
func subject(ctx context.Context, to *connect.Flags, args, files []string, stdin io.Reader) (*v1alpha1.DynamoGraphDeployment, error) {
	switch {
	case len(args) == 1 && len(files) == 0:
		cluster, err := to.Cluster()
		if err != nil {
			return nil, err
		}
		dgd := &v1alpha1.DynamoGraphDeployment{}
		return dgd, cluster.Get(ctx, types.NamespacedName{Namespace: cluster.Namespace, Name: args[0]}, dgd)
	case len(args) == 0 && len(files) > 0:
		documents, err := input.Read(files, stdin)
		if err != nil {
			return nil, err
		}
		for _, d := range documents {
			if !validate.Ours(d) || d.GetKind() != v1alpha1.KindDynamoGraphDeployment {
				continue
			}
			verdict, err := validate.Judge(d, validation.Scope{})
			if err != nil {
				return nil, fmt.Errorf("%s: %w", d, err)
			}
			dgd, ok := verdict.Object.(*v1alpha1.DynamoGraphDeployment)
			if !ok {
				return nil, fmt.Errorf("%s: %w", d, verdict.Problems.ToAggregate())
			}
			return dgd, nil
		}
		return nil, fmt.Errorf("%s: no DynamoGraphDeployment is in there", strings.Join(files, ", "))
	}
	return nil, errors.New("name a graph of the cluster, or one in a file with -f")
}

// consultation is what advice is given about.
type consultation struct {
	*options
	share   float64
	startup time.Duration

	name     string
	services [decision.Roles]string
	floors   decision.Vector
	each     decision.Vector
	model    capacity.Model
	by, from string
	planner  string
	prices   pricing.Tags
	notes    []string // of the planner's arguments
}

// read takes from a graph what no flag gives.
func (c *consultation) read(dgd *v1alpha1.DynamoGraphDeployment, given *pflag.FlagSet) error {
	g, err := graph.FromGraphDeployment(dgd, graph.Defaults{})
	if err != nil {
		return err
	}
	c.name, c.floors = g.Name, decision.Vector{1, 1}
	told, err := c.told(g)
	if err != nil {
		return err
	}
	if c.gpu != "" {
		told.GPU = [decision.Roles]string{c.gpu, c.gpu}
	}
	if c.price > 0 {
		told.Price = [decision.Roles]float64{c.price, c.price}
	}
	parts, missing := role.Find(g.Components, told.Mode)
	if missing == "" && (parts.Scaled[decision.Prefill] == nil || parts.Scaled[decision.Decode] == nil) {
		missing = "its planner scales one role alone"
	}
	if missing != "" {
		return fmt.Errorf("graph %s: %s; advice is about prefill and decode together", g.Name, missing)
	}
	c.each = parts.GPUs(told.GPUs)
	for i, flag := range []string{"prefill-gpus", "decode-gpus"} {
		c.services[i] = parts.Scaled[i].Name
		if given.Changed(flag) {
			told.GPUs[i] = [...]int{c.prefillGPUs, c.decodeGPUs}[i]
			c.each[i] = told.GPUs[i]
		}
	}
	c.prices = parts.Prices(told)
	if c.planner != "" {
		c.floors = told.Floors
		if !given.Changed("ttft") {
			c.ttft = 1e3 * told.TTFT.Seconds()
		}
		if !given.Changed("itl") {
			c.itl = 1e3 * told.ITL.Seconds()
		}
	}
	if !given.Changed("gpus") {
		c.gpus = budget(dgd, told, c.planner != "", c.gpus)
	}
	c.starts(dgd, given)
	if c.profile != "" || c.options.model != "" {
		c.replicas(parts, told, given)
		c.model, err = c.timing()
		c.by = "what the flags say, and on what the graph has where they do not"
		return err
	}
	c.model, c.by = role.Estimate(told, parts)
	if short, _, long := strings.Cut(c.by, "; known: "); long {
		c.by = short + ")"
	}
	return nil
}

// replicas have a model that is named be timed on what the graph has, where no flag says.
func (c *consultation) replicas(parts role.Components, told config.Config, given *pflag.FlagSet) {
	c.kinds, c.prefillGPUs, c.decodeGPUs = parts.Kinds(told), c.each[decision.Prefill], c.each[decision.Decode]
	if engine := parts.Scaled[decision.Prefill].Engine; engine != graph.EngineNone && !given.Changed("backend") {
		c.backend = string(engine)
	}
}

// told is what the graph's planner is, if it has one.
func (c *consultation) told(g *graph.Graph) (config.Config, error) {
	machine := config.Machine{Env: map[string]string{"DYN_PARENT_DGD_K8S_NAME": g.Name}}
	for _, one := range g.Components {
		if one.Role != graph.RolePlanner {
			continue
		}
		main := one.MainContainer()
		told, err := config.New(append(append([]string{}, main.Command...), main.Args...), machine)
		if err != nil {
			return told, fmt.Errorf("planner %s of graph %s: %w", one.Name, g.Name, err)
		}
		c.planner, c.notes = one.Name, told.Notes
		return told, nil
	}
	return config.New(nil, machine)
}

// budget is the smallest that is said.
func budget(dgd *v1alpha1.DynamoGraphDeployment, told config.Config, planned bool, otherwise int) int {
	least := 0
	if n, err := strconv.Atoi(dgd.Annotations[v1alpha1.AnnotationGPUBudget]); err == nil && n > 0 {
		least = n
	}
	if planned && told.Budget > 0 && (least == 0 || told.Budget < least) {
		least = told.Budget
	}
	if least == 0 {
		return otherwise
	}
	return least
}

// unknownStart is what a start is taken to take that nobody has seen, as planners do.
const unknownStart = 2 * time.Minute

// starts is how long a replica takes until it serves.
func (c *consultation) starts(dgd *v1alpha1.DynamoGraphDeployment, given *pflag.FlagSet) {
	if given.Changed("startup") {
		c.from = "as given"
		return
	}
	for _, service := range c.services {
		if seen := dgd.Status.Services[service].Startup; seen != nil {
			c.startup, c.from = max(c.startup, time.Duration(seen.P95Seconds)*time.Second), "as seen in 19 of 20 cases"
		}
	}
	if c.startup == 0 {
		c.startup, c.from = unknownStart, "assumed, since none was seen"
	}
}

func (c *consultation) run(out io.Writer) error {
	t, err := c.requests()
	if err != nil {
		return err
	}
	s := simulation.Setup{
		Trace: t, Model: c.model, Target: capacity.Target{FirstToken: c.ttft / 1e3, Token: c.itl / 1e3}, Startup: c.startup.Seconds(),
		Budget: c.gpus, GPUs: c.each,
	}
	if c.gpus > 0 && c.floors.GPUs(c.each) > c.gpus {
		return fmt.Errorf("the floors of graph %s take %d GPUs, its budget is %d", c.name, c.floors.GPUs(c.each), c.gpus)
	}
	s.Begin = simulation.Beginning(s)
	a, err := simulation.Advise(s, c.share, c.floors)
	if err != nil {
		return err
	}
	for _, note := range c.notes {
		fmt.Fprintf(out, "note: %s: %s\n", c.planner, note)
	}
	prompt, answer := t.Means()
	fmt.Fprintf(out, "%s: %d requests in %s, %.1f/s, %.0f and %.0f tokens\n", c.trace, len(t), round(t.Length()), t.Rate(), prompt, answer)
	fmt.Fprintf(out, "%s: TTFT %.0f ms, ITL %.0f ms for %.0f %% of requests, %d GPUs (%d and %d a replica), starts of %s (%s), timed by %s\n%s\n\n",
		c.name, c.ttft, c.itl, 100*c.share, c.gpus, c.each[decision.Prefill], c.each[decision.Decode], c.startup, c.from, c.by, c.prices)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "POLICY\tSLO %\tP95 TTFT\tP95 ITL\tGPU-HOURS\tCOST\tPEAK\tCHANGES")
	row := func(called string, p simulation.Played) {
		fmt.Fprintf(w, "%s\t%.1f\t%.0f ms\t%.1f ms\t%.2f\t%s\t%d\t%d\n", called, 100*p.Met, 1e3*p.First95, 1e3*p.Token95, p.GPUHours, c.prices.Hours(p.RoleHours), p.Peak, p.Changes)
	}
	row(a.Take.Called(), a.Take.Played)
	for _, x := range a.Others {
		row(x.Called(), x.Played)
	}
	row("who knows the future", a.Bound)
	_ = w.Flush() // to the same writer, whose errors nobody is left to be told
	fmt.Fprintln(out)
	for _, line := range c.words(a) {
		fmt.Fprintln(out, line)
	}
	return nil
}

func round(seconds float64) time.Duration {
	return time.Duration(seconds * float64(time.Second)).Round(time.Second)
}

// hours are those of GPUs, with what they cost.
func (c *consultation) hours(p simulation.Played) string {
	cost := c.prices.Hours(p.RoleHours)
	if !c.prices.Known() {
		cost = "cost " + cost
	}
	return fmt.Sprintf("%.2f GPU-hours (%s)", p.GPUHours, cost)
}

// words are the advice.
func (c *consultation) words(a simulation.Advice) []string {
	said := []string{fmt.Sprintf("Take %s: %.1f %% of requests keep the targets, with %s.", a.Take.Called(), 100*a.Take.Met, c.hours(a.Take.Played))}
	if !a.Reached {
		said = append(said, fmt.Sprintf("Nothing reaches %.0f %% here, and who knows the future %.1f %%: more GPUs, or other targets, are needed.", 100*c.share, 100*a.Bound.Met))
	}
	if len(a.Others) > 0 {
		next := a.Others[0]
		for _, x := range a.Others { // what differs in kind tells more than another setting
			if x.Policy != a.Take.Policy {
				next = x
				break
			}
		}
		said = append(said, fmt.Sprintf("Next is %s: %.1f %%, with %s.", next.Called(), 100*next.Met, c.hours(next.Played)))
	}
	switch b := a.Bursts; {
	case b.Count == 0:
		said = append(said, "The rate is never half as much again as its mean.")
	case b.Median < c.startup:
		said = append(said, fmt.Sprintf("Half of the time of %d bursts is in those of at most %s, and a start takes %s: what is started for one is ready after it, whoever decides.", b.Count, b.Median, c.startup))
	default:
		said = append(said, fmt.Sprintf("Half of the time of %d rises is in those of at least %s, and a start takes %s: there is time to follow them.", b.Count, b.Median, c.startup))
	}
	return append(said, c.change(a.Take)...)
}

// change is what to write.
func (c *consultation) change(x simulation.Candidate) []string {
	prefill, decode := c.services[decision.Prefill], c.services[decision.Decode]
	switch x.Policy {
	case simulation.PolicyFixed:
		said := []string{fmt.Sprintf("Write: replicas %d of %s and %d of %s. The size was chosen knowing the trace: look again when traffic grows.",
			x.Size[decision.Prefill], prefill, x.Size[decision.Decode], decode)}
		if c.planner != "" {
			said = append(said, fmt.Sprintf("Take %s away, or have it only advise (--no-operation): else it goes on deciding.", c.planner))
		}
		return said
	case simulation.PolicyNative:
		most := c.gpus
		if most <= 0 {
			most = -1
		}
		flags := fmt.Sprintf("--prefill-min-endpoint=%d --decode-min-endpoint=%d --max-gpu-budget=%d", x.Floors[decision.Prefill], x.Floors[decision.Decode], most)
		if x.Pause > 0 {
			flags += fmt.Sprintf(" --scale-down-pause=%.0f", x.Pause.Seconds())
		}
		if c.planner == "" {
			return []string{"Write: a service of componentType planner, with annotation " + v1alpha1.AnnotationPlanner + ": native on the graph and arguments " + flags + "."}
		}
		return []string{fmt.Sprintf("Write: arguments %s of %s.", flags, c.planner)}
	default:
		return []string{fmt.Sprintf("Write: scalingAdapter.enabled of %s and %s, and a HorizontalPodAutoscaler for each adapter.", prefill, decode)}
	}
}
