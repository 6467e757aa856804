package view

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/cli/tree"
	"github.com/dynamo-operator/dynamo-operator/internal/core/conversion"
)

// Graphs is the page of all graphs.
type Graphs struct {
	Rows []GraphRow
	// Counts sums the states up.
	Counts []Count
	GPUs   int
	// Namespaces says that there are graphs of several.
	Namespaces bool
	// Missing says in words what the page does without.
	Missing []string
}

// Count is how many are in a state.
type Count struct {
	Number int
	State  State
}

// GraphRow is one graph in a line.
type GraphRow struct {
	Namespace, Name string
	State           State
	// Cause is the first cause while the graph is not ready.
	Cause    string
	Services []ServiceCount
	GPUs     int
	Age      string
	Traffic  Traffic
}

// Path is the graph's own page.
func (r GraphRow) Path() string { return "/graphs/" + r.Namespace + "/" + r.Name }

// ServiceCount is how far one service is.
type ServiceCount struct {
	Name        string
	Ready, Want int
	State       State
}

// AllGraphs lists graphs, those first that need somebody.
func AllGraphs(graphs []v1alpha1.DynamoGraphDeployment, pods Index, traffic func(namespace, name string) Traffic, now time.Time) Graphs {
	var page Graphs
	namespaces := map[string]bool{}
	for i := range graphs {
		g := &graphs[i]
		namespaces[g.Namespace] = true
		row := GraphRow{Namespace: g.Namespace, Name: g.Name, State: GraphState(g), Age: Age(g.CreationTimestamp, now), Traffic: traffic(g.Namespace, g.Name)}
		row.Cause = cause(g)
		for _, name := range conversion.Order(g) {
			row.Services = append(row.Services, serviceCount(g, name))
		}
		for _, pod := range pods.Of(g) {
			if tree.Holds(pod) {
				row.GPUs += tree.GPUs(pod)
			}
		}
		page.GPUs += row.GPUs
		page.Rows = append(page.Rows, row)
	}
	slices.SortFunc(page.Rows, func(a, b GraphRow) int {
		return cmp.Or(urgency(a.State)-urgency(b.State), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	page.Namespaces = len(namespaces) > 1
	page.Counts = counts(page.Rows)
	return page
}

// urgency puts what needs a person before what only takes its time. One that sleeps
// needs nobody.
func urgency(s State) int {
	if s.Word == sleeping {
		return 4
	}
	return slices.Index([]Tone{Bad, Busy, Off, Good}, s.Tone)
}

// counts sums rows up, which are in the order of their urgency. What is neither well nor
// ill is told apart by its own word.
func counts(rows []GraphRow) []Count {
	words := map[Tone]string{Bad: "need attention", Busy: "on their way", Good: "ready"}
	var all []Count
	for _, r := range rows {
		of := State{cmp.Or(words[r.State.Tone], r.State.Word), r.State.Tone}
		i := slices.IndexFunc(all, func(c Count) bool { return c.State == of })
		if i < 0 {
			i, all = len(all), append(all, Count{State: of})
		}
		all[i].Number++
	}
	return all
}

// cause is what the operator says keeps a graph from being ready, or from having workers.
func cause(g *v1alpha1.DynamoGraphDeployment) string {
	ready := meta.FindStatusCondition(g.Status.Conditions, v1alpha1.ConditionReady)
	switch {
	case ready == nil:
		return "the operator has not looked at it yet"
	case ready.Status == metav1.ConditionTrue && asleep(g):
		return meta.FindStatusCondition(g.Status.Conditions, v1alpha1.ConditionDormant).Message
	case ready.Status == metav1.ConditionTrue:
		return ""
	default:
		return ready.Message
	}
}

func serviceCount(g *v1alpha1.DynamoGraphDeployment, name string) ServiceCount {
	s, seen := g.Status.Services[name]
	c := ServiceCount{Name: name, Ready: int(ptr.Deref(s.ReadyReplicas, ptr.Deref(s.AvailableReplicas, 0))), Want: int(s.Replicas)}
	// Where a scaling adapter decides, the spec does not say how many are wanted.
	if spec := g.Spec.Services[name]; spec != nil && spec.Replicas != nil && (spec.ScalingAdapter == nil || !spec.ScalingAdapter.Enabled) {
		c.Want = int(*spec.Replicas)
	}
	switch {
	case !seen:
		c.State = State{"not seen yet", Off}
	case asleep(g) && runsEngine(g, name) && c.Ready > 0:
		c.State = State{"falling asleep", Busy}
	case asleep(g) && runsEngine(g, name):
		c.State = State{sleeping, Off}
	case c.Want == 0 && c.Ready == 0:
		c.State = State{"scaled to zero", Off}
	case c.Ready >= c.Want && s.Message == "":
		c.State = State{"ready", Good}
	case s.Message != "" && GraphState(g).Tone == Bad:
		c.State = State{"not ready", Bad}
	default:
		c.State = State{"starting", Busy}
	}
	return c
}

// Traffic is what a graph's frontends tell, as one line of a table shows it.
type Traffic struct {
	// Known is false where nothing is measured; Why then says the reason.
	Known bool
	Why   string
	Rate  string
	// Line are the points of a sparkline in a box of SparkWidth by SparkHeight.
	Line string
	// Words says what the line shows, for who does not see it.
	Words string
}

// The box of a sparkline.
const (
	SparkWidth  = 96
	SparkHeight = 22
)

// Spark draws rates over time. A line needs two points.
func Spark(rates []float64) string {
	if len(rates) < 2 {
		return ""
	}
	top := max(slices.Max(rates), 1e-9)
	var points []string
	for i, r := range rates {
		x := float64(i) * SparkWidth / float64(len(rates)-1)
		y := SparkHeight - 1.5 - r/top*(SparkHeight-3)
		points = append(points, number(x, 1)+","+number(y, 1))
	}
	return strings.Join(points, " ")
}

func number(x float64, digits int) string { return strconv.FormatFloat(x, 'f', digits, 64) }

func itoa(n int) string { return strconv.Itoa(n) }
