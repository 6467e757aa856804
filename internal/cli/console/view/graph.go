package view

import (
	"cmp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/cli/rollout"
	"github.com/dynamo-operator/dynamo-operator/internal/cli/tree"
	"github.com/dynamo-operator/dynamo-operator/internal/cli/why"
	"github.com/dynamo-operator/dynamo-operator/internal/core/conversion"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/generation"
)

// Graph is the page of one graph.
type Graph struct {
	Namespace, Name string
	Tabs            []Tab
	State           State
	Age, Backend    string
	// Word is what the version that it was written as calls its parts.
	Word string
	// Why explains what keeps it from being ready.
	Why why.Explanation
	// Stages are the picture: the way of a request through the graph.
	Stages     []Stage
	Beside     []Box
	Conditions []Condition
	Events     []Event
	Models     []string
	// TrafficMissing says why there are no figures.
	TrafficMissing string
	Restart        string
	// Rollout says in words what is rolled out; empty unless one is under way.
	Rollout string
	// Sleep is what a graph that scales to zero does; nil of others.
	Sleep   *Sleep
	Missing []string
	// Gone says that there is no such graph.
	Gone bool
	// CanChange shows what changes the graph.
	CanChange bool
	// Frontend says that there is something to ask.
	Frontend bool
}

// Path is the page's own.
func (g Graph) Path() string { return "/graphs/" + g.Namespace + "/" + g.Name }

// Stage is a step on a request's way.
type Stage struct {
	Title string
	Boxes []Box
}

// Box is a service in the picture.
type Box struct {
	Service, Role, Workload string
	Ready, Want             int
	State                   State
	Message                 string
	Nodes                   string
	GPUs                    int
	Pods                    []Pod
	// Shown are the pods that the picture has room for, More the number of others.
	Shown []Pod
	More  int
	Load  *Load
	// Routing is how a frontend chooses among workers.
	Routing string
}

// tiles is how many pods of a service the picture shows one by one.
const tiles = 24

// Pod is a pod in the picture and in the table.
type Pod struct {
	Namespace, Graph, Name string
	State                  State
	Node, Age              string
	GPUs                   int
	Containers             []string
	Load                   *Load
}

// Path is the page of the pod's log.
func (p Pod) Path() string { return "/graphs/" + p.Namespace + "/" + p.Graph + "/pods/" + p.Name }

// Title is what a tile says when it is pointed at or read aloud.
func (p Pod) Title() string {
	words := []string{p.Name, p.State.Word, "on " + cmp.Or(p.Node, "no node")}
	if p.GPUs > 0 {
		words = append(words, plural(p.GPUs, "GPU"))
	}
	if p.Load != nil {
		words = append(words, p.Load.String())
	}
	return join(words)
}

// Load is what an engine tells of itself.
type Load struct {
	Running, Waiting float64
	// KV is the share of the cache that is in use, 0 to 1.
	KV float64
}

// Percent is the cache's use.
func (l Load) Percent() int { return int(l.KV*100 + 0.5) }

func (l Load) String() string {
	return "KV cache " + itoa(l.Percent()) + " %, " + number(l.Running, 0) + " running, " + number(l.Waiting, 0) + " waiting"
}

// Input is all that the page of a graph is made of.
type Input struct {
	Graph  *v1alpha1.DynamoGraphDeployment
	Pods   []corev1.Pod
	Events []corev1.Event
	Why    why.Explanation
	// Loads are what engines tell, by pod.
	Loads map[string]Load
	Now   time.Time
}

// OneGraph is the page of one graph.
func OneGraph(in Input) Graph {
	g := in.Graph
	page := Graph{
		Namespace: g.Namespace, Name: g.Name, Tabs: Tabs(g, "Graph"), State: GraphState(g), Age: Age(g.CreationTimestamp, in.Now), Word: tree.Word(g), Why: in.Why,
		Backend: string(g.Spec.BackendFramework), Conditions: Conditions(g.Status.Conditions, in.Now), Events: Events(g, in.Events, in.Now), Restart: restart(g), Rollout: underWay(g), Sleep: sleepOf(g, in.Now),
	}
	boxes := map[graph.Role][]Box{}
	for _, name := range conversion.Order(g) {
		spec := g.Spec.Services[name]
		if spec == nil {
			spec = &v1alpha1.SharedSpec{}
		}
		role := RoleOf(spec)
		boxes[role] = append(boxes[role], box(in, name, spec, role))
		if spec.ModelRef != nil && !slices.Contains(page.Models, spec.ModelRef.Name) {
			page.Models = append(page.Models, spec.ModelRef.Name)
		}
	}
	page.Frontend = len(boxes[graph.RoleFrontend]) > 0
	for _, s := range []struct {
		title string
		roles []graph.Role
	}{
		{"Gateway", []graph.Role{graph.RoleEPP}},
		{"Frontend and router", []graph.Role{graph.RoleFrontend}},
		{"Prefill", []graph.Role{graph.RolePrefill}},
		{"Decode", []graph.Role{graph.RoleDecode}},
		{"Workers", []graph.Role{graph.RoleWorker}},
	} {
		var of []Box
		for _, role := range s.roles {
			of = append(of, boxes[role]...)
		}
		if len(of) > 0 {
			page.Stages = append(page.Stages, Stage{s.title, of})
		}
	}
	page.Beside = slices.Concat(boxes[graph.RolePlanner], boxes[graph.RoleOther])
	return page
}

// AllBoxes are the services in the order of the picture.
func (g Graph) AllBoxes() []Box {
	var all []Box
	for _, s := range g.Stages {
		all = append(all, s.Boxes...)
	}
	return append(all, g.Beside...)
}

// GPUs are those that all of its pods hold.
func (g Graph) GPUs() int {
	n := 0
	for _, b := range g.AllBoxes() {
		n += b.GPUs
	}
	return n
}

func box(in Input, name string, spec *v1alpha1.SharedSpec, role graph.Role) Box {
	count := serviceCount(in.Graph, name)
	status := in.Graph.Status.Services[name]
	b := Box{
		Service: name, Role: roleWord(role, spec), Ready: count.Ready, Want: count.Want, State: count.State,
		Message: status.Message, Workload: strings.TrimSpace(string(status.ComponentKind) + " " + status.ComponentName),
	}
	if role == graph.RoleFrontend {
		b.Routing = routing(spec)
	}
	var nodes []string
	sum, told := Load{}, 0
	for _, pod := range tree.PodsOf(in.Graph.Name, name, in.Pods) {
		p := OnePod(pod, in.Graph.Name, in.Now)
		if l, ok := in.Loads[pod.Name]; ok {
			p.Load = &l
			sum.Running, sum.Waiting, sum.KV, told = sum.Running+l.Running, sum.Waiting+l.Waiting, sum.KV+l.KV, told+1
		}
		if p.Node != "" && !slices.Contains(nodes, p.Node) {
			nodes = append(nodes, p.Node)
		}
		if tree.Holds(pod) {
			b.GPUs += p.GPUs
		}
		b.Pods = append(b.Pods, p)
	}
	if told > 0 {
		sum.KV /= float64(told)
		b.Load = &sum
	}
	slices.Sort(nodes)
	if b.Nodes = join(nodes); len(nodes) > 3 {
		b.Nodes = join(nodes[:3]) + " and " + itoa(len(nodes)-3) + " more"
	}
	b.Shown = b.Pods[:min(tiles, len(b.Pods))]
	b.More = len(b.Pods) - len(b.Shown)
	return b
}

// OnePod is a pod of a graph.
func OnePod(pod corev1.Pod, of string, now time.Time) Pod {
	p := Pod{Namespace: pod.Namespace, Graph: of, Name: pod.Name, State: PodState(pod), Node: pod.Spec.NodeName, Age: Age(pod.CreationTimestamp, now), GPUs: tree.GPUs(pod)}
	for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		p.Containers = append(p.Containers, c.Name)
	}
	return p
}

func roleWord(role graph.Role, spec *v1alpha1.SharedSpec) string {
	switch role {
	case graph.RoleEPP:
		return "endpoint picker"
	case graph.RoleOther:
		return cmp.Or(string(spec.ComponentType), "service")
	default:
		return string(role)
	}
}

// routing reads how a frontend picks workers from its command line and variables.
func routing(spec *v1alpha1.SharedSpec) string {
	var words []string
	if p := spec.ExtraPodSpec; p != nil && p.MainContainer != nil {
		words = slices.Concat(p.MainContainer.Command, p.MainContainer.Args)
		for _, e := range p.MainContainer.Env {
			words = append(words, e.Name+"="+e.Value)
		}
	}
	for _, e := range spec.Envs {
		words = append(words, e.Name+"="+e.Value)
	}
	fields := strings.Fields(strings.Join(words, " "))
	for i, w := range fields {
		value := ""
		switch {
		case strings.HasPrefix(w, "DYN_ROUTER_MODE="):
			value = strings.TrimPrefix(w, "DYN_ROUTER_MODE=")
		case strings.HasPrefix(w, "--router-mode="):
			value = strings.TrimPrefix(w, "--router-mode=")
		case w == "--router-mode" && i+1 < len(fields):
			value = fields[i+1]
		}
		switch value {
		case "":
		case "kv":
			return "routes to the worker with the most of the prompt in its KV cache"
		default:
			return "routes " + strings.ReplaceAll(value, "-", " ")
		}
	}
	return ""
}

func restart(g *v1alpha1.DynamoGraphDeployment) string {
	r := g.Status.Restart
	if r == nil {
		return ""
	}
	text := "Restart " + r.ObservedID + ": " + strings.ToLower(string(r.Phase))
	if len(r.InProgress) > 0 {
		text += ", now " + join(r.InProgress)
	}
	if r.Message != "" {
		text += ". " + r.Message
	}
	return text
}

// underWay says what is rolled out, until it is completed.
func underWay(g *v1alpha1.DynamoGraphDeployment) string {
	r := g.Status.Rollout
	if r == nil || generation.Phase(r.Phase) == generation.PhaseCompleted {
		return ""
	}
	text := rollout.Headline(r) + ": " + strings.ToLower(r.Phase)
	if r.Message != "" {
		text += ", " + r.Message
	}
	return text
}

// Event is something that happened to a graph or to what runs for it.
type Event struct {
	Object, Reason, Message, Age string
	Times                        int
	State                        State
}

// latest is how many events a page shows.
const latest = 40

// Events are those about a graph and what it is made of, the newest first.
func Events(g *v1alpha1.DynamoGraphDeployment, all []corev1.Event, now time.Time) []Event {
	var prefixes []string
	for name := range g.Spec.SortedServices() {
		prefixes = append(prefixes, graph.ComponentName(g.Name, name))
	}
	about := func(name string) bool {
		return name == g.Name || slices.ContainsFunc(prefixes, func(p string) bool { return name == p || strings.HasPrefix(name, p+"-") })
	}
	var mine []corev1.Event
	for i := range all {
		if all[i].InvolvedObject.Namespace == g.Namespace && about(all[i].InvolvedObject.Name) {
			mine = append(mine, all[i])
		}
	}
	slices.SortStableFunc(mine, func(a, b corev1.Event) int { return seen(b).Compare(seen(a)) })
	var out []Event
	for _, e := range mine[:min(latest, len(mine))] {
		state := State{"normal", Off}
		if e.Type == corev1.EventTypeWarning {
			state = State{"warning", Bad}
		}
		times := int(e.Count)
		if e.Series != nil {
			times = int(e.Series.Count)
		}
		out = append(out, Event{
			Object: e.InvolvedObject.Kind + " " + e.InvolvedObject.Name, Reason: e.Reason, Message: e.Message,
			Age: age(seen(e), now), Times: times, State: state,
		})
	}
	return out
}

// seen is when an event was last seen.
func seen(e corev1.Event) time.Time {
	last := e.LastTimestamp.Time
	if e.EventTime.After(last) {
		last = e.EventTime.Time
	}
	if e.Series != nil && e.Series.LastObservedTime.After(last) {
		last = e.Series.LastObservedTime.Time
	}
	if last.IsZero() {
		last = e.CreationTimestamp.Time
	}
	return last
}
