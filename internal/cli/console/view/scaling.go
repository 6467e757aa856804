package view

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/cli/scale"
	"github.com/dynamo-operator/dynamo-operator/internal/cli/tree"
	"github.com/dynamo-operator/dynamo-operator/internal/core/conversion"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/planner/budget"
	"github.com/dynamo-operator/dynamo-operator/internal/core/planner/journal"
)

// Scale is how many replicas a service has, of how many.
type Scale struct{ Wanted, Granted, Ready int }

func scaleOf(g *v1alpha1.DynamoGraphDeployment, name string, s v1alpha1.ServiceReplicaStatus) Scale {
	c := serviceCount(g, name)
	return Scale{Wanted: c.Want, Granted: int(s.Replicas), Ready: c.Ready}
}

// Scaling is the page of a graph's replicas and who decides them.
type Scaling struct {
	Namespace, Name string
	Tabs            []Tab
	Gone            bool
	State           State
	Rows            []ScalingRow
	// Limited says what stands between what was asked for and what there is.
	Limited []string
	Budgets []Budget
	// BudgetsMissing says why budgets of namespaces and of all are not shown.
	BudgetsMissing string
	Figures        []Figure
	// Held are the graph's GPUs, Free those that nobody has; FreeKnown is false where
	// nodes cannot be seen.
	Held, Free int
	FreeKnown  bool
	// Planner says that a service of the graph is one.
	Planner bool
	// Sleep is what a graph that scales to zero does; nil of others.
	Sleep *Sleep
	// CanChange shows what changes the graph.
	CanChange bool
	Missing   []string
}

// Path is the page's own.
func (s Scaling) Path() string { return "/graphs/" + s.Namespace + "/" + s.Name + "/scaling" }

// ScalingRow is a service.
type ScalingRow struct {
	Service, Role string
	Scale
	State State
	GPUs  int
	// By is who asked for so many, Changed how long ago.
	By, Changed string
	// Start is how long starts take.
	Start string
}

// ScalingInput is all that the page is made of.
type ScalingInput struct {
	Graph *v1alpha1.DynamoGraphDeployment
	// Explained is what kubectl dynamo scale explain tells.
	Explained scale.Explanation
	// Pods are all that are seen.
	Pods    []corev1.Pod
	Moments []Moment
	// Configured are the operator's budgets; nil where they cannot be read.
	Configured *budget.Budgets
	// Everywhere says that pods of all namespaces are seen.
	Everywhere bool
	Now        time.Time
}

// OneScaling is the page of a graph's replicas.
func OneScaling(in ScalingInput) Scaling {
	g := in.Graph
	page := Scaling{
		Namespace: g.Namespace, Name: g.Name, Tabs: Tabs(g, "Scaling"), State: GraphState(g), Sleep: sleepOf(g, in.Now),
		Limited: in.Explained.Limited, Held: in.Explained.GPUs, Budgets: budgets(in),
	}
	limited := meta.IsStatusConditionTrue(g.Status.Conditions, v1alpha1.ConditionScalingLimited)
	for _, s := range in.Explained.Services {
		spec := g.Spec.Services[s.Name]
		if spec == nil {
			spec = &v1alpha1.SharedSpec{}
		}
		role := RoleOf(spec)
		page.Planner = page.Planner || role == graph.RolePlanner
		row := ScalingRow{
			Service: s.Name, Role: roleWord(role, spec), Scale: Scale{Wanted: s.Wanted, Granted: s.Granted, Ready: s.Ready},
			GPUs: s.GPUs, By: s.By, Start: s.Starts(),
		}
		if s.At != nil {
			row.Changed = Age(*s.At, in.Now)
		}
		switch {
		case asleep(g) && role.RunsEngine():
			row.State = serviceCount(g, s.Name).State
		case row.Granted == row.Wanted && row.Ready >= row.Wanted:
			row.State = State{"as wanted", Good}
		case row.Granted < row.Wanted && limited:
			row.State = State{plural(row.Wanted-row.Granted, "replica") + " not granted", Busy}
		case row.Wanted > row.Ready:
			row.State = State{plural(row.Wanted-row.Ready, "replica") + " to come", Busy}
		default:
			row.State = State{plural(row.Granted-row.Wanted, "replica") + " to go", Busy}
		}
		page.Rows = append(page.Rows, row)
	}
	page.Figures = Scales(g, in.Moments, in.Now)
	return page
}

// Budget is one of GPUs, and who uses it.
type Budget struct {
	Of string
	// GPUs is 0 where none is set.
	GPUs int
	// Used are those of pods that have not ended, with a node or without; Known is false
	// where not all of those are seen.
	Used    int
	Known   bool
	Holders []Holder
}

// Left are GPUs that are not used.
func (b Budget) Left() int { return max(0, b.GPUs-b.Used) }

// Percent of the budget that is used.
func (b Budget) Percent() int {
	if b.GPUs == 0 {
		return 0
	}
	return min(100, 100*b.Used/b.GPUs)
}

// budgets are those that a graph counts against: its own, and where they can be read
// those of its namespace and of all.
func budgets(in ScalingInput) []Budget {
	g := in.Graph
	own, err := strconv.Atoi(in.Explained.Budget)
	if err != nil || own < 0 {
		own = 0 // it has no effect, which a warning says
	}
	all := []Budget{used(Budget{Of: "graph " + g.Name, GPUs: own, Known: true}, in.Pods, func(p corev1.Pod) Holder {
		if p.Namespace != g.Namespace || p.Labels[v1alpha1.LabelGraphName] != g.Name {
			return Holder{}
		}
		return Holder{Name: cmp.Or(p.Labels[v1alpha1.LabelComponent], p.Name)}
	})}
	if in.Configured == nil {
		return all
	}
	byGraph := func(within func(namespace string) bool) func(corev1.Pod) Holder {
		return func(p corev1.Pod) Holder {
			name := p.Labels[v1alpha1.LabelGraphName]
			if name == "" || !within(p.Namespace) {
				return Holder{}
			}
			return Holder{Name: p.Namespace + "/" + name, Path: "/graphs/" + p.Namespace + "/" + name}
		}
	}
	return append(all,
		used(Budget{Of: "namespace " + g.Namespace, GPUs: in.Configured.Namespaces[g.Namespace], Known: true}, in.Pods, byGraph(func(n string) bool { return n == g.Namespace })),
		used(Budget{Of: "all graphs", GPUs: in.Configured.Cluster, Known: in.Everywhere}, in.Pods, byGraph(func(string) bool { return true })),
	)
}

// used counts who has GPUs of a budget, those with the most first.
func used(b Budget, pods []corev1.Pod, by func(corev1.Pod) Holder) Budget {
	for _, pod := range pods {
		n, h := tree.GPUs(pod), by(pod)
		if n == 0 || h.Name == "" || tree.Ended(pod) {
			continue
		}
		i := slices.IndexFunc(b.Holders, func(x Holder) bool { return x.Name == h.Name })
		if i < 0 {
			i, b.Holders = len(b.Holders), append(b.Holders, h)
		}
		b.Holders[i].GPUs += n
		b.Used += n
	}
	slices.SortFunc(b.Holders, func(x, y Holder) int { return cmp.Or(y.GPUs-x.GPUs, cmp.Compare(x.Name, y.Name)) })
	return b
}

func adapterOf(g *v1alpha1.DynamoGraphDeployment, service string, all []v1alpha1.DynamoGraphDeploymentScalingAdapter) *v1alpha1.DynamoGraphDeploymentScalingAdapter {
	i := slices.IndexFunc(all, func(a v1alpha1.DynamoGraphDeploymentScalingAdapter) bool {
		return a.Namespace == g.Namespace && a.Spec.DGDRef.Name == g.Name && a.Spec.DGDRef.ServiceName == service
	})
	if i < 0 {
		return nil
	}
	return &all[i]
}

// Scales draws what was wanted, granted and ready of each service, as far as it was
// seen.
func Scales(g *v1alpha1.DynamoGraphDeployment, moments []Moment, now time.Time) []Figure {
	var all []Figure
	for i, name := range conversion.Order(g) {
		f := Figure{ID: "scale-" + itoa(i), Title: name, Unit: "replicas", Stepped: true}
		f.lines(moments, time.Time{}, now, []string{"ready", "wanted", "granted"}, func(m Moment) ([]float64, bool) {
			s, there := m.Services[name]
			return []float64{float64(s.Ready), float64(s.Wanted), float64(s.Granted)}, there
		})
		all = append(all, f)
	}
	return all
}

// Bounds of what a planner's decisions are shown of.
const (
	longestDecisions = 1 << 20
	shownDecisions   = 50
)

// Decision is one that a planner tells of.
type Decision struct{ Title, Text string }

// Decisions reads what a planner answers when it is asked for its decisions. Planners
// differ, and anybody may run one: what has a form that is known is shown in parts, and
// all else as it came.
func Decisions(answer []byte) []Decision {
	answer = bytes.TrimSpace(answer[:min(len(answer), longestDecisions)])
	if len(answer) == 0 {
		return nil
	}
	var list []json.RawMessage
	if json.Unmarshal(answer, &list) != nil {
		var around struct {
			Decisions []json.RawMessage `json:"decisions"`
		}
		if json.Unmarshal(answer, &around) != nil || around.Decisions == nil {
			return []Decision{{Text: indented(answer)}}
		}
		list = around.Decisions
	}
	list = list[max(0, len(list)-shownDecisions):]
	var all []Decision
	for _, one := range slices.Backward(list) {
		all = append(all, decision(one))
	}
	return all
}

func decision(raw json.RawMessage) Decision {
	var ours journal.Record
	if json.Unmarshal(raw, &ours) == nil && len(ours.Words) > 0 && !ours.At.IsZero() {
		lines := ours.Words
		if why := scale.Unwritten(ours); why != "" {
			lines = append(lines, why)
		}
		return Decision{Title: ours.At.UTC().Format(time.RFC3339), Text: strings.Join(lines, "\n")}
	}
	fields := map[string]any{}
	if json.Unmarshal(raw, &fields) != nil {
		var text string
		if json.Unmarshal(raw, &text) != nil {
			text = indented(raw)
		}
		return Decision{Text: text}
	}
	var d Decision
	var lines []string
	for _, key := range []string{"at", "time", "timestamp"} {
		if value, ok := fields[key].(string); ok && d.Title == "" {
			d.Title = value
			delete(fields, key)
		}
	}
	if words, ok := fields["words"].([]any); ok && len(words) > 0 {
		// It says all of it in words; the fields beside are for programs.
		fields = map[string]any{"failed": fields["failed"]}
		for _, w := range words {
			lines = append(lines, plain(w))
		}
	}
	for _, key := range []string{"explanation", "message", "text"} {
		if value, ok := fields[key].(string); ok && value != "" {
			lines = append(lines, value)
			delete(fields, key)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		if fields[key] != nil {
			lines = append(lines, key+": "+plain(fields[key]))
		}
	}
	d.Text = strings.Join(lines, "\n")
	return d
}

func plain(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case float64:
		return Round(v)
	default:
		text, err := json.Marshal(v)
		if err != nil {
			return fmt.Sprint(v)
		}
		return string(text)
	}
}

func indented(raw []byte) string {
	var b bytes.Buffer
	if json.Indent(&b, raw, "", "  ") != nil {
		return string(raw)
	}
	return b.String()
}
