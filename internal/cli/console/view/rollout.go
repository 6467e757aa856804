package view

import (
	"cmp"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/cli/rollout"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/generation"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/policy"
)

// Tab is one of the pages of a graph.
type Tab struct {
	Path, Name string
	Here       bool
}

// Tabs are the pages that a graph has. That of rollouts is there once it has had one.
func Tabs(g *v1alpha1.DynamoGraphDeployment, here string) []Tab {
	base := "/graphs/" + g.Namespace + "/" + g.Name
	all := []Tab{{Path: base, Name: "Graph"}}
	if g.Status.Rollout != nil {
		all = append(all, Tab{Path: base + "/rollout", Name: "Rollout"})
	}
	all = append(all, Tab{Path: base + "/scaling", Name: "Scaling"})
	for i := range all {
		all[i].Here = all[i].Name == here
	}
	return all
}

// Rollout is the page of a graph's rollout.
type Rollout struct {
	Namespace, Name string
	Tabs            []Tab
	// Gone says that there is no such graph, None that it was never rolled out.
	Gone, None bool
	State      State
	Headline   string
	Facts      []Fact
	Steps      []Step
	Roles      []RolloutRole
	// Figures are capacity against floor over time.
	Figures     []Figure
	Generations []Generation
	Analysis    *Analysis
	Orders      []Order
	// CanChange shows the orders.
	CanChange bool
	Missing   []string
}

// Path is the page's own.
func (r Rollout) Path() string { return "/graphs/" + r.Namespace + "/" + r.Name + "/rollout" }

// RolloutRole is what serves of a service, against what has to.
type RolloutRole struct {
	Name                              string
	Desired, Floor, Effective, Lowest int
	State                             State
}

// Generation is one version of the workers.
type Generation struct {
	ID, Share, Part string
	Revision        int64
	Roles           []GenerationRole
}

// GenerationRole is what exists of a service in a generation.
type GenerationRole struct {
	Name                                           string
	Replicas, Routable, Starting, Leaving, Failing int
	State                                          State
}

// Analysis is the candidate held against the stable generation.
type Analysis struct {
	Verdict State
	Samples int64
	Rows    []Compared
}

// Compared is one measure of both.
type Compared struct{ Name, Target, Stable, Bound string }

// Order is a button.
type Order struct {
	Name, Path, Confirm string
	// Grave is one that takes something back.
	Grave bool
}

// OneRollout is the page of a graph's rollout. moments are what was seen of the graph
// so far.
func OneRollout(g *v1alpha1.DynamoGraphDeployment, moments []Moment, now time.Time) Rollout {
	page := Rollout{Namespace: g.Namespace, Name: g.Name, Tabs: Tabs(g, "Rollout")}
	r := g.Status.Rollout
	if r == nil {
		page.None = true
		return page
	}
	page.State, page.Headline = phase(g), rollout.Headline(r)
	for _, f := range rollout.Facts(g) {
		page.Facts = append(page.Facts, Fact(f))
	}
	page.Steps = rolloutSteps(g)
	for _, name := range slices.Sorted(maps.Keys(r.Roles)) {
		of := r.Roles[name]
		role := RolloutRole{Name: name, Desired: int(of.Desired), Floor: int(of.Floor), Effective: int(of.Effective), Lowest: int(of.Lowest), State: State{"at or above its floor", Good}}
		if of.Effective < of.Floor {
			role.State = State{"below its floor", Bad}
		}
		page.Roles = append(page.Roles, role)
	}
	page.Figures = Capacity(r, moments, now)
	for _, of := range r.Generations {
		page.Generations = append(page.Generations, generationOf(r, of))
	}
	page.Analysis = analysisOf(g)
	for _, o := range rollout.Orders(g) {
		page.Orders = append(page.Orders, orderOf(g, o))
	}
	return page
}

func phase(g *v1alpha1.DynamoGraphDeployment) State {
	r := g.Status.Rollout
	s := State{strings.ToLower(cmp.Or(r.Phase, "not told yet")), Busy}
	switch generation.Phase(r.Phase) {
	case generation.PhaseCompleted:
		s.Tone = Good
	case generation.PhaseBlocked, generation.PhaseAborting, generation.PhaseAborted:
		s.Tone = Bad
	}
	if g.Status.ObservedGeneration != g.Generation {
		return State{"the operator has not seen the last change yet", Off}
	}
	return s
}

// rolloutSteps are the shares that a rollout stops at, and how far it is.
func rolloutSteps(g *v1alpha1.DynamoGraphDeployment) []Step {
	p, _ := policy.Parse(g.Annotations)
	if len(p.Steps) == 0 {
		return nil
	}
	at, over := p.Recorded(g.Status.Rollout.Step), generation.Phase(g.Status.Rollout.Phase) == generation.PhaseCompleted
	var all []Step
	add := func(number int, name string) {
		s := Step{Name: name, State: State{"to come", Off}, Here: number == at && !over}
		switch {
		case over || number < at:
			s.State = State{"done", Good}
		case number == at:
			s.State = State{"now", Busy}
		}
		all = append(all, s)
	}
	for i, s := range p.Steps {
		name := s.Share.String() + " for " + s.Wait.String()
		if s.Wait == 0 {
			name = s.Share.String() + " until it is promoted"
		}
		add(i+1, name)
	}
	add(len(p.Steps)+1, "all")
	return all
}

func generationOf(r *v1alpha1.RolloutStatus, of v1alpha1.RolloutGeneration) Generation {
	g := Generation{ID: cmp.Or(of.ID, "without an id"), Share: cmp.Or(of.Share, "not told"), Revision: of.Revision}
	switch of.ID {
	case r.Target:
		g.Part = "to arrive at"
	case r.Stable:
		g.Part = "stable"
	default:
		g.Part = "left over"
	}
	for _, name := range slices.Sorted(maps.Keys(of.Roles)) {
		n := of.Roles[name]
		role := GenerationRole{Name: name, Replicas: int(n.Replicas), Routable: int(n.Routable), Starting: int(n.Starting), Leaving: int(n.Leaving), Failing: int(n.Failing)}
		switch {
		case n.Failing > 0:
			role.State = State{"failing", Bad}
		case n.Starting > 0:
			role.State = State{"starting", Busy}
		case n.Leaving > 0:
			role.State = State{"leaving", Off}
		case n.Replicas == 0:
			role.State = State{"none", Off}
		default:
			role.State = State{"serving", Good}
		}
		g.Roles = append(g.Roles, role)
	}
	return g
}

func analysisOf(g *v1alpha1.DynamoGraphDeployment) *Analysis {
	a := g.Status.Rollout.Analysis
	if a == nil {
		return nil
	}
	p, _ := policy.Parse(g.Annotations)
	out := &Analysis{Samples: a.Samples, Verdict: State{cmp.Or(a.Verdict, string(policy.VerdictInconclusive)), Busy}}
	switch policy.Verdict(a.Verdict) {
	case policy.VerdictPass:
		out.Verdict.Tone = Good
	case policy.VerdictFail:
		out.Verdict.Tone = Bad
	}
	for _, m := range []struct {
		name   string
		values []string
		bound  string
	}{
		{"Requests that failed", a.Errors, share(p.SLO.Errors)},
		{"Time to first token, 95th percentile", a.TTFTP95, longestOf(p.SLO.TTFT)},
		{"Time between tokens, 95th percentile", a.ITLP95, longestOf(p.SLO.ITL)},
	} {
		if len(m.values) == 2 {
			out.Rows = append(out.Rows, Compared{m.name, m.values[0], m.values[1], cmp.Or(m.bound, "none")})
		}
	}
	return out
}

func share(of float64) string {
	if of == 0 {
		return ""
	}
	return Round(100*of) + "%"
}

func longestOf(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return d.String()
}

// orderOf is the button of an order. It carries what was shown when it was pressed.
func orderOf(g *v1alpha1.DynamoGraphDeployment, o rollout.Order) Order {
	r := g.Status.Rollout
	seen := url.Values{"revision": {number(float64(r.Revision), 0)}, "step": {r.Step}}
	b := Order{Path: "/graphs/" + g.Namespace + "/" + g.Name + "/rollout/orders/" + string(o) + "?" + seen.Encode()}
	switch o {
	case rollout.Pause:
		b.Name, b.Confirm = "Pause", "Stop the rollout of "+g.Name+" where it is? Healing and scaling go on."
	case rollout.Resume:
		b.Name, b.Confirm = "Resume", "Let the rollout of "+g.Name+" go on?"
	case rollout.Promote:
		b.Name, b.Confirm = "Promote step "+r.Step, "Let the rollout of "+g.Name+" pass step "+r.Step+"?"
	case rollout.PromoteAll:
		b.Name, b.Confirm = "Promote all", "Let the rollout of "+g.Name+" pass all steps that are left?"
	case rollout.Abort:
		b.Name, b.Confirm, b.Grave = "Abort", "Take the rollout of "+g.Name+" back to the stable generation? The spec stays, and is not tried again.", true
	case rollout.Retry:
		b.Name, b.Confirm = "Retry", "Try the aborted spec of "+g.Name+" again?"
	case rollout.Undo:
		b.Name, b.Confirm, b.Grave = "Undo", "Write the last completed spec of "+g.Name+" back? It is rolled out like any other.", true
	default:
		b.Name, b.Confirm = string(o), string(o)+" "+g.Name+"?"
	}
	return b
}

// Moment is what was seen of a graph when it changed.
type Moment struct {
	At time.Time
	// Roles are a rollout's, nil without one.
	Roles    map[string]v1alpha1.RolloutRoleStatus
	Services map[string]Scale
}

// Same reports whether two moments show the same.
func (m Moment) Same(other Moment) bool {
	return maps.Equal(m.Roles, other.Roles) && maps.Equal(m.Services, other.Services)
}

// MomentOf is what is seen of a graph and of the scaling adapters of its namespace.
func MomentOf(g *v1alpha1.DynamoGraphDeployment, adapters []v1alpha1.DynamoGraphDeploymentScalingAdapter, now time.Time) Moment {
	m := Moment{At: now, Services: map[string]Scale{}}
	if g.Status.Rollout != nil {
		m.Roles = maps.Clone(g.Status.Rollout.Roles)
	}
	for name, s := range g.Status.Services {
		scale := scaleOf(g, name, s)
		if a := adapterOf(g, name, adapters); a != nil && meta.IsStatusConditionTrue(a.Status.Conditions, v1alpha1.ConditionActive) {
			scale.Wanted = int(a.Spec.Replicas)
		}
		m.Services[name] = scale
	}
	return m
}

// Capacity draws what served of each service against its floor since a rollout began,
// as far as it was seen.
func Capacity(r *v1alpha1.RolloutStatus, moments []Moment, now time.Time) []Figure {
	var since time.Time
	if r.StartedAt != nil {
		since = r.StartedAt.Time
	}
	var all []Figure
	for i, name := range slices.Sorted(maps.Keys(r.Roles)) {
		f := Figure{ID: "role-" + itoa(i), Title: name, Unit: "replicas", Stepped: true}
		f.lines(moments, since, now, []string{"serving", "floor", "desired"}, func(m Moment) ([]float64, bool) {
			of, there := m.Roles[name]
			return []float64{float64(of.Effective), float64(of.Floor), float64(of.Desired)}, there
		})
		all = append(all, f)
	}
	return all
}

// lines fills a figure from moments: a value holds until the next one is seen, and the
// last until now.
func (f *Figure) lines(moments []Moment, since, now time.Time, names []string, of func(Moment) ([]float64, bool)) {
	for _, n := range names {
		f.Series = append(f.Series, Series{Name: n})
	}
	put := func(at time.Time, values []float64) {
		f.Times = append(f.Times, float64(at.UnixMilli())/1000)
		for i := range f.Series {
			v := values[i]
			f.Series[i].Values = append(f.Series[i].Values, &v)
		}
	}
	var last []float64
	for _, m := range moments {
		values, there := of(m)
		if !there || m.At.Before(since) {
			continue
		}
		put(m.At, values)
		last = values
	}
	if last != nil {
		put(now, last)
	}
	f.Words = f.words()
}
