package view

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/cli/tree"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
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
	Figures         []Figure
	// Held are the graph's GPUs, Free those that nobody has; FreeKnown is false where
	// nodes cannot be seen.
	Held, Free int
	FreeKnown  bool
	// Planner says that a service of the graph is one.
	Planner bool
	Missing []string
}

// Path is the page's own.
func (s Scaling) Path() string { return "/graphs/" + s.Namespace + "/" + s.Name + "/scaling" }

// ScalingRow is a service.
type ScalingRow struct {
	Service, Role string
	Scale
	State State
	GPUs  int
	// By is who decides how many there are.
	By, Note, Changed string
}

// ScalingInput is all that the page is made of.
type ScalingInput struct {
	Graph    *v1alpha1.DynamoGraphDeployment
	Adapters []v1alpha1.DynamoGraphDeploymentScalingAdapter
	Pods     []corev1.Pod
	Moments  []Moment
	Now      time.Time
}

// OneScaling is the page of a graph's replicas.
func OneScaling(in ScalingInput) Scaling {
	g := in.Graph
	page := Scaling{Namespace: g.Namespace, Name: g.Name, Tabs: Tabs(g, "Scaling"), State: GraphState(g)}
	for _, name := range tree.Components(g) {
		spec := g.Spec.Services[name]
		if spec == nil {
			spec = &v1alpha1.SharedSpec{}
		}
		role := RoleOf(spec)
		page.Planner = page.Planner || role == graph.RolePlanner
		row := ScalingRow{Service: name, Role: roleWord(role, spec), Scale: scaleOf(g, name, g.Status.Services[name]), By: "the graph's spec"}
		for _, pod := range tree.PodsOf(g.Name, name, in.Pods) {
			if holds(pod) {
				row.GPUs += GPUs(pod)
			}
		}
		if a := adapterOf(g, name, in.Adapters); a != nil {
			row.decided(a, in.Now)
		}
		switch {
		case row.Granted == row.Wanted && row.Ready >= row.Wanted:
			row.State = State{"as wanted", Good}
		case row.Wanted > row.Ready:
			row.State = State{plural(row.Wanted-row.Ready, "replica") + " to come", Busy}
		default:
			row.State = State{plural(row.Granted-row.Wanted, "replica") + " to go", Busy}
		}
		page.Held += row.GPUs
		page.Rows = append(page.Rows, row)
	}
	page.Figures = Scales(g, in.Moments, in.Now)
	return page
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

// decided tells what an adapter has to say about a service.
func (r *ScalingRow) decided(a *v1alpha1.DynamoGraphDeploymentScalingAdapter, now time.Time) {
	if at := a.Status.LastScaleTime; at != nil {
		r.Changed = Age(*at, now)
	}
	active := meta.FindStatusCondition(a.Status.Conditions, v1alpha1.ConditionActive)
	if active == nil || active.Status != "True" {
		r.Note = "scaling adapter " + a.Name + " decides nothing"
		if active != nil {
			r.Note += ": " + active.Message
		}
		return
	}
	r.By, r.Wanted = "scaling adapter "+a.Name, int(a.Spec.Replicas)
}

// Scales draws what was wanted, granted and ready of each service, as far as it was
// seen.
func Scales(g *v1alpha1.DynamoGraphDeployment, moments []Moment, now time.Time) []Figure {
	var all []Figure
	for i, name := range tree.Components(g) {
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
	longestDecisions = 256 << 10
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
