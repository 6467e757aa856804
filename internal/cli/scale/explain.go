package scale

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/cli/connect"
	"github.com/dynamo-operator/dynamo-operator/internal/cli/tree"
	"github.com/dynamo-operator/dynamo-operator/internal/core/conversion"
	"github.com/dynamo-operator/dynamo-operator/internal/core/dormancy"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/planner/journal"
	"github.com/dynamo-operator/dynamo-operator/internal/core/price"
	"github.com/dynamo-operator/dynamo-operator/internal/core/sanitise"
)

const explainHelp = `Tells of each service of a graph how many replicas were asked for, by whom and when, how many the
operator grants, how many are ready, how many end still if its scaling adapter tells, and how long
starts take; what its GPUs cost by the hour, if the
planner or you say what one does; whether the graph sleeps; what limits them; and the last decision of
the graph's planner with its reasons.

It reads with your rights: the graph, its components, adapters and pods, HorizontalPodAutoscalers, and
through pods/proxy what the planner tells. What you may not read is left out, and said.`

func explainCommand() *cobra.Command {
	dollars := 0.0
	command := ask("explain GRAPH", "Say who asked for replicas of a graph, what was granted and why", explainHelp,
		func(ctx context.Context, s source, name string, asJSON bool, out io.Writer) error {
			if !(dollars >= 0) || dollars > price.Highest {
				return fmt.Errorf("--price %v: want 0 to %d", dollars, price.Highest)
			}
			f, err := s.facts(ctx, name)
			if err != nil {
				return err
			}
			f.price = dollars
			e := explain(f)
			if asJSON {
				return encode(out, e)
			}
			e.write(out, time.Now())
			return nil
		})
	command.Flags().Float64Var(&dollars, "price", 0, "dollars for a GPU and hour; as the graph's planner says if not given")
	return command
}

const historyHelp = `Lists the last 200 decisions of a graph's planner that differ from the one before, the oldest
first. A planner remembers them while it runs; the last is kept in the graph's annotation
nvidia.com/scale-plan.`

func historyCommand() *cobra.Command {
	return ask("history GRAPH", "List the decisions of a graph's planner", historyHelp,
		func(ctx context.Context, s source, name string, asJSON bool, out io.Writer) error {
			f, err := s.facts(ctx, name)
			if err != nil {
				return err
			}
			if f.unasked != nil && len(f.decisions) == 0 {
				return fmt.Errorf("the planner of graph %s: %w", name, f.unasked)
			}
			if asJSON {
				return encode(out, f.decisions)
			}
			return writeHistory(out, f)
		})
}

// ask is a verb about one graph of a cluster.
func ask(use, short, long string, run func(context.Context, source, string, bool, io.Writer) error) *cobra.Command {
	var to connect.Flags
	format := ""
	command := &cobra.Command{
		Use: use, Short: short, Long: long, Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if format != "" && format != "json" {
				return fmt.Errorf("output %q: json, or nothing", format)
			}
			cluster, err := to.Cluster()
			if err != nil {
				return err
			}
			core, err := typedcorev1.NewForConfig(cluster.Config)
			if err != nil {
				return fmt.Errorf("reach the cluster: %w", err)
			}
			return run(cmd.Context(), source{cluster, core.RESTClient(), cluster.Namespace}, args[0], format == "json", cmd.OutOrStdout())
		},
	}
	to.Add(command.Flags())
	command.Flags().StringVarP(&format, "output", "o", "", "json, for programs")
	return command
}

func encode(out io.Writer, what any) error {
	encoder := json.NewEncoder(sanitise.Document(out))
	encoder.SetIndent("", "  ")
	return encoder.Encode(what)
}

// source is a cluster with the rights of who asks.
type source struct {
	client.Reader
	pods      rest.Interface
	namespace string
}

// facts are all that an explanation is made of.
type facts struct {
	graph       *v1alpha1.DynamoGraphDeployment
	components  []v1alpha1.DynamoComponentDeployment
	adapters    []v1alpha1.DynamoGraphDeploymentScalingAdapter
	autoscalers []autoscalingv2.HorizontalPodAutoscaler
	pods        []corev1.Pod
	// decisions are the planner's, from says whose; unasked is why there are none.
	decisions []journal.Record
	from      string
	unasked   error
	// price of a GPU and hour as given; 0 is what the planner says.
	price float64
	// unread is what could not be.
	unread []string
	// podsUnread says that pods are among that.
	podsUnread bool
}

// Look explains by what can be read, and asks no planner.
func Look(ctx context.Context, from client.Reader, graphKey types.NamespacedName) (Explanation, error) {
	f, err := gather(ctx, from, graphKey)
	if err != nil {
		return Explanation{}, err
	}
	return explain(f), nil
}

// gather reads all but the planner's decisions.
func gather(ctx context.Context, from client.Reader, graphKey types.NamespacedName) (facts, error) {
	f := facts{graph: &v1alpha1.DynamoGraphDeployment{}}
	if err := from.Get(ctx, graphKey, f.graph); err != nil {
		return f, err
	}
	ofGraph := client.MatchingLabels{v1alpha1.LabelGraphName: graphKey.Name}
	var components v1alpha1.DynamoComponentDeploymentList
	var adapters v1alpha1.DynamoGraphDeploymentScalingAdapterList
	var autoscalers autoscalingv2.HorizontalPodAutoscalerList
	var pods corev1.PodList
	for _, read := range []struct {
		list    client.ObjectList
		called  string
		options []client.ListOption
	}{
		{&components, "dynamocomponentdeployments", []client.ListOption{ofGraph}},
		{&adapters, "dynamographdeploymentscalingadapters", nil},
		{&autoscalers, "horizontalpodautoscalers", nil},
		{&pods, "pods", []client.ListOption{ofGraph}},
	} {
		err := from.List(ctx, read.list, append(read.options, client.InNamespace(graphKey.Namespace))...)
		switch {
		case apierrors.IsForbidden(err):
			f.unread = append(f.unread, "you may not list "+read.called)
			f.podsUnread = f.podsUnread || read.list == client.ObjectList(&pods)
		case err != nil:
			return f, fmt.Errorf("list %s: %w", read.called, err)
		}
	}
	f.components, f.autoscalers, f.pods = components.Items, autoscalers.Items, pods.Items
	for _, a := range adapters.Items {
		if a.Spec.DGDRef.Name == graphKey.Name {
			f.adapters = append(f.adapters, a)
		}
	}
	return f, nil
}

func (s source) facts(ctx context.Context, name string) (facts, error) {
	f, err := gather(ctx, s, types.NamespacedName{Namespace: s.namespace, Name: name})
	if err != nil {
		return f, err
	}
	answer, from, err := AskPlanner(ctx, s.pods, f.pods)
	if err == nil {
		f.from = from
		f.decisions, err = records(answer)
	}
	if f.unasked = err; apierrors.IsForbidden(err) {
		f.unasked = errors.New("you may not get pods/proxy, through which planners are asked")
	}
	// What it last wrote outlives it.
	var last journal.Record
	if text := f.graph.Annotations[v1alpha1.AnnotationScalePlan]; err != nil && text != "" && json.Unmarshal([]byte(text), &last) == nil {
		f.decisions, f.from = []journal.Record{last}, "annotation "+v1alpha1.AnnotationScalePlan
	}
	return f, nil
}

// Explanation is what a graph's replicas are, and why.
type Explanation struct {
	Namespace string               `json:"namespace"`
	Graph     string               `json:"graph"`
	Services  []ServiceExplanation `json:"services"`
	// GPUs are those that the graph's pods hold, those that end included.
	GPUs   int    `json:"gpus"`
	Budget string `json:"budget,omitempty"`
	// DollarsPerHour is what those cost; nil where the price of a GPU is not known, and
	// Unpriced says why.
	DollarsPerHour *float64 `json:"dollarsPerHour,omitempty"`
	Unpriced       string   `json:"unpriced,omitempty"`
	// Asleep says since when the graph has no workers, why and what wakes it; empty of one
	// that is awake.
	Asleep string `json:"asleep,omitempty"`
	// Limited says what stands between what was asked for and what there is.
	Limited []string `json:"limited,omitempty"`
	// Planner is the last decision, Teller who tells it; NoPlanner says why nobody does.
	Planner   *journal.Record `json:"planner,omitempty"`
	Teller    string          `json:"teller,omitempty"`
	NoPlanner string          `json:"noPlanner,omitempty"`
	Unread    []string        `json:"unread,omitempty"`
}

// ServiceExplanation is one service.
type ServiceExplanation struct {
	Name    string `json:"name"`
	Wanted  int    `json:"wanted"`
	Granted int    `json:"granted"`
	Ready   int    `json:"ready"`
	// Draining are those that end, and hold their GPUs until they are gone; nil where no
	// scaling adapter tells.
	Draining *int `json:"draining,omitempty"`
	GPUs     int  `json:"gpus"`
	// By is who asked, At when.
	By      string                 `json:"by"`
	At      *metav1.Time           `json:"at,omitempty"`
	Startup *v1alpha1.StartupTimes `json:"startup,omitempty"`
}

// Starts is how long starts took: the median and the 95th percentile; empty if none was
// seen.
func (s ServiceExplanation) Starts() string {
	if s.Startup == nil {
		return ""
	}
	return fmt.Sprintf("%s, p95 %s", seconds(s.Startup.P50Seconds), seconds(s.Startup.P95Seconds))
}

// explain says how replicas came to be as many.
func explain(f facts) Explanation {
	g := f.graph
	e := Explanation{Namespace: g.Namespace, Graph: g.Name, Budget: g.Annotations[v1alpha1.AnnotationGPUBudget], Unread: f.unread, Teller: f.from, Asleep: asleep(g)}
	for _, name := range conversion.Order(g) {
		s := f.service(name)
		e.GPUs += s.GPUs
		e.Services = append(e.Services, s)
		if message := g.Status.Services[name].Message; message != "" {
			e.Limited = append(e.Limited, name+": "+message)
		}
	}
	if c := meta.FindStatusCondition(g.Status.Conditions, v1alpha1.ConditionScalingLimited); c != nil && c.Status == metav1.ConditionTrue {
		e.Limited = append(e.Limited, c.Message)
	}
	for _, a := range f.adapters {
		if c := meta.FindStatusCondition(a.Status.Conditions, v1alpha1.ConditionActive); c != nil && c.Status == metav1.ConditionFalse {
			e.Limited = append(e.Limited, "scaling adapter "+a.Name+" decides nothing: "+c.Message)
		}
	}
	for _, h := range f.autoscalers {
		if !f.scales(h) {
			continue
		}
		for _, c := range h.Status.Conditions {
			if c.Type == autoscalingv2.ScalingLimited && c.Status == corev1.ConditionTrue || c.Type != autoscalingv2.ScalingLimited && c.Status == corev1.ConditionFalse {
				e.Limited = append(e.Limited, "HorizontalPodAutoscaler "+h.Name+": "+c.Message)
			}
		}
	}
	if n := len(f.decisions); n > 0 {
		e.Planner = &f.decisions[n-1]
	}
	e.DollarsPerHour, e.Unpriced = f.cost(e)
	if f.unasked != nil {
		e.NoPlanner = f.unasked.Error()
		if !slices.ContainsFunc(conversion.Order(g), func(name string) bool {
			spec := g.Spec.Services[name]
			return spec != nil && graph.RoleOf(string(spec.ComponentType)) == graph.RolePlanner
		}) {
			e.NoPlanner = "the graph has none"
		}
	}
	return e
}

// cost is what a graph's GPUs cost by the hour, each by its service, or why nobody knows.
func (f facts) cost(e Explanation) (dollars *float64, unpriced string) {
	if f.podsUnread {
		return nil, "pods, which have the GPUs, could not be read"
	}
	sum := 0.0
	for _, s := range e.Services {
		tag := f.tag(e.Planner, s.Name)
		if s.GPUs > 0 && !tag.Known() {
			return nil, tag.Why()
		}
		sum += float64(s.GPUs) * tag.Hour
	}
	if e.GPUs == 0 && f.price <= 0 && (e.Planner == nil || e.Planner.Cost == nil) {
		return nil, f.tag(e.Planner, "").Why()
	}
	return &sum, ""
}

// tag is the price of a GPU of a service: as given, or as the last decision says.
func (f facts) tag(last *journal.Record, service string) price.Tag {
	switch {
	case f.price > 0:
		return price.Find(f.price, "")
	case last != nil && last.Cost != nil && len(last.Cost.Roles) > 0:
		if own, told := last.Cost.Roles[string(f.role(service))]; told {
			return price.Tag{Hour: own.GPU, By: own.By}
		}
		return price.Tag{Unknown: "the planner tells no price of GPUs of " + service}
	case last != nil && last.Cost != nil:
		return price.Tag{Hour: last.Cost.GPU, By: last.Cost.By}
	case last != nil && last.Unpriced != "":
		return price.Tag{Unknown: last.Unpriced}
	}
	return price.Tag{Unknown: "no planner tells what a GPU costs, and no --price is given"}
}

// role is that of a service: prefill and decode are the kinds of some, and the types of others.
func (f facts) role(service string) graph.Role {
	spec := f.graph.Spec.Services[service]
	if spec == nil {
		return graph.RoleOther
	}
	if sub := graph.RoleOf(spec.SubComponentType); sub != graph.RoleOther {
		return sub
	}
	return graph.RoleOf(string(spec.ComponentType))
}

// asleep is since when a graph sleeps, why and what wakes it; empty if it does not.
func asleep(g *v1alpha1.DynamoGraphDeployment) string {
	c := meta.FindStatusCondition(g.Status.Conditions, v1alpha1.ConditionDormant)
	if dormancy.Told(g.Status.Conditions) != dormancy.Dormant {
		return ""
	}
	return fmt.Sprintf("since %s: %s; kubectl dynamo scale wake %s --namespace %s wakes it, too", c.LastTransitionTime.UTC().Format(time.RFC3339), c.Message, g.Name, g.Namespace)
}

func (f facts) service(name string) ServiceExplanation {
	g := f.graph
	status := g.Status.Services[name]
	s := ServiceExplanation{
		Name: name, Wanted: 1, Granted: int(ptr.Deref(status.GrantedReplicas, status.Replicas)), Startup: status.Startup,
		Ready: int(ptr.Deref(status.ReadyReplicas, ptr.Deref(status.AvailableReplicas, 0))),
		By:    "nobody, so it is 1",
	}
	if spec := g.Spec.Services[name]; spec != nil && spec.Replicas != nil {
		s.Wanted = int(*spec.Replicas)
		s.By, s.At = writer(g, []string{"f:spec", "f:services", "f:" + name, "f:replicas"}, "the graph's spec")
	}
	for i := range f.adapters {
		a := &f.adapters[i]
		if a.Spec.DGDRef.ServiceName != name || !meta.IsStatusConditionTrue(a.Status.Conditions, v1alpha1.ConditionActive) {
			continue
		}
		s.Wanted = int(a.Spec.Replicas)
		if a.Status.GrantedReplicas != nil && a.Status.DrainingReplicas != nil {
			s.Granted, s.Draining = int(*a.Status.GrantedReplicas), new(int(*a.Status.DrainingReplicas))
		}
		if s.By, s.At = writer(a, []string{"f:spec", "f:replicas"}, "scaling adapter "+a.Name); s.At == nil {
			s.At = a.Status.LastScaleTime
		}
		for _, h := range f.autoscalers {
			least := ptr.Deref(h.Spec.MinReplicas, 1)
			if h.Spec.ScaleTargetRef.Name == a.Name && f.scales(h) && a.Spec.Replicas >= least {
				s.By = fmt.Sprintf("HorizontalPodAutoscaler %s (%d to %d) through scaling adapter %s", h.Name, least, h.Spec.MaxReplicas, a.Name)
				s.At = h.Status.LastScaleTime
			}
		}
	}
	granted, told := 0, false
	for _, c := range f.components {
		if cmp.Or(c.Spec.ServiceName, c.Name) == name && c.Spec.Replicas != nil {
			granted, told = granted+int(*c.Spec.Replicas), true
		}
	}
	if told {
		s.Granted = granted
	}
	for _, pod := range tree.PodsOf(g.Name, name, f.pods) {
		if tree.Holds(pod) {
			s.GPUs += tree.GPUs(pod)
		}
	}
	return s
}

// scales reports whether an autoscaler is one of an adapter of the graph.
func (f facts) scales(h autoscalingv2.HorizontalPodAutoscaler) bool {
	return h.Spec.ScaleTargetRef.Kind == v1alpha1.KindDynamoGraphDeploymentScalingAdapter &&
		slices.ContainsFunc(f.adapters, func(a v1alpha1.DynamoGraphDeploymentScalingAdapter) bool { return a.Name == h.Spec.ScaleTargetRef.Name })
}

// writer is who wrote a field last, as the API server has it, and where it stands. A
// mirror of what an adapter says is the operator's own.
func writer(object metav1.Object, path []string, where string) (by string, at *metav1.Time) {
	name := ""
	for _, entry := range object.GetManagedFields() {
		if entry.FieldsV1 == nil || !owns(entry.FieldsV1.GetRawBytes(), path) || at != nil && entry.Time != nil && entry.Time.Before(at) {
			continue
		}
		name, at = entry.Manager, entry.Time
	}
	if name == "" {
		return where, nil
	}
	return name + " in " + where, at
}

func owns(fields []byte, path []string) bool {
	for _, step := range path {
		var level map[string]json.RawMessage
		if json.Unmarshal(fields, &level) != nil {
			return false
		}
		next, there := level[step]
		if !there {
			return false
		}
		fields = next
	}
	return true
}

func (e Explanation) write(out io.Writer, now time.Time) {
	budget := "no budget of its own"
	if e.Budget != "" {
		budget = "budget " + e.Budget
	}
	cost := "cost unknown: " + sanitise.Line(e.Unpriced)
	if e.DollarsPerHour != nil {
		cost = price.Rate(*e.DollarsPerHour)
	}
	fmt.Fprintf(out, "%s/%s  %d GPUs (%s), %s\n\n", e.Namespace, e.Graph, e.GPUs, cost, budget)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "SERVICE\tWANTED\tGRANTED\tREADY\tDRAINING\tGPUS\tSTART\tASKED FOR BY")
	for _, s := range e.Services {
		start := cmp.Or(s.Starts(), "-")
		by := s.By
		if s.At != nil {
			by += ", " + now.Sub(s.At.Time).Round(time.Second).String() + " ago"
		}
		draining := "-"
		if s.Draining != nil {
			draining = strconv.Itoa(*s.Draining)
		}
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%s\t%d\t%s\t%s\n", sanitise.Line(s.Name), s.Wanted, s.Granted, s.Ready, draining, s.GPUs, start, sanitise.Line(by))
	}
	_ = w.Flush() // to the same writer, whose errors nobody is left to be told
	if e.Asleep != "" {
		fmt.Fprintf(out, "asleep   %s\n", sanitise.Line(e.Asleep))
	}
	for _, line := range e.Limited {
		fmt.Fprintf(out, "limited  %s\n", sanitise.Line(line))
	}
	fmt.Fprintln(out)
	switch {
	case e.Planner != nil:
		tell(out, *e.Planner, e.Teller)
	default:
		fmt.Fprintf(out, "no planner: %s\n", sanitise.Line(e.NoPlanner))
	}
	for _, line := range e.Unread {
		fmt.Fprintf(out, "unread: %s\n", line)
	}
}

func seconds(n int32) string { return (time.Duration(n) * time.Second).String() }
