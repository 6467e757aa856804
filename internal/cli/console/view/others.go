package view

import (
	"cmp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/cli/doctor"
	"github.com/dynamo-operator/dynamo-operator/internal/cli/models"
	"github.com/dynamo-operator/dynamo-operator/internal/cli/tree"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/profileoutput"
)

// Models is the page of models and adapters.
type Models struct {
	Rows    []Model
	Missing []string
}

// Model is one model and the pods that have it.
type Model struct {
	Namespace, Name, Kind, Model, Base string
	Ready, Total                       int
	State                              State
	// Message says why it is nowhere.
	Message string
	Pods    []ModelPod
}

// ModelPod is a pod that has a model, or is to have it.
type ModelPod struct {
	Name, Path string
	State      State
}

// AllModels lists models by namespace and name.
func AllModels(all []v1alpha1.DynamoModel, pods []corev1.Pod) Models {
	where := map[string]string{}
	for i := range pods {
		if g := pods[i].Labels[v1alpha1.LabelGraphName]; g != "" {
			where[pods[i].Namespace+"/"+pods[i].Name] = "/graphs/" + pods[i].Namespace + "/" + g + "/pods/" + pods[i].Name
		}
	}
	var page Models
	for i := range all {
		m := &all[i]
		row := Model{
			Namespace: m.Namespace, Name: m.Name, Kind: string(cmp.Or(m.Spec.ModelType, v1alpha1.ModelTypeBase)), Model: m.Spec.ModelName, Base: m.Spec.BaseModelName,
			Ready: int(m.Status.ReadyEndpoints), Total: int(m.Status.TotalEndpoints),
		}
		switch {
		case row.Total == 0:
			row.State, row.Message = State{"nowhere", Bad}, models.Overall(m)
			if m.Status.ObservedGeneration == 0 {
				row.State.Tone = Off
			}
		case row.Ready < row.Total:
			row.State = State{"loading", Busy}
		default:
			row.State = State{"ready", Good}
		}
		for _, e := range m.Status.Endpoints {
			p := ModelPod{Name: cmp.Or(e.PodName, e.Address), Path: where[m.Namespace+"/"+e.PodName], State: State{models.State(m, e), Busy}}
			switch {
			case e.Error != "":
				p.State.Tone, row.State = Bad, State{"failing", Bad}
			case e.Ready:
				p.State.Tone = Good
			}
			row.Pods = append(row.Pods, p)
		}
		page.Rows = append(page.Rows, row)
	}
	slices.SortFunc(page.Rows, func(a, b Model) int {
		return cmp.Or(urgency(a.State)-urgency(b.State), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return page
}

// Requests is the page of requests for graphs.
type Requests struct {
	Rows    []RequestRow
	Missing []string
}

// RequestRow is a request in a line.
type RequestRow struct {
	Namespace, Name, Model, Backend, Age string
	State                                State
	Message                              string
	Phase                                string
	Graph, GraphPath                     string
}

// Path is the request's own page.
func (r RequestRow) Path() string { return "/requests/" + r.Namespace + "/" + r.Name }

// AllRequests lists requests, those first that need somebody.
func AllRequests(all []v1alpha1.DynamoGraphDeploymentRequest, now time.Time) Requests {
	var page Requests
	for i := range all {
		page.Rows = append(page.Rows, requestRow(&all[i], now))
	}
	slices.SortFunc(page.Rows, func(a, b RequestRow) int {
		return cmp.Or(urgency(a.State)-urgency(b.State), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return page
}

func requestRow(r *v1alpha1.DynamoGraphDeploymentRequest, now time.Time) RequestRow {
	row := RequestRow{
		Namespace: r.Namespace, Name: r.Name, Model: r.Spec.Model, Backend: string(cmp.Or(r.Status.Backend, r.Spec.Backend)), Age: Age(r.CreationTimestamp, now),
		State: State{strings.ToLower(string(cmp.Or(r.Status.State, "not seen yet"))), Busy}, Phase: r.Status.ProfilingPhase,
	}
	switch r.Status.State {
	case v1alpha1.RequestStateReady:
		row.State.Tone = Good
	case v1alpha1.RequestStateFailed:
		row.State.Tone = Bad
	case v1alpha1.RequestStateInitial, v1alpha1.RequestStateDeploymentDeleted:
		row.State.Tone = Off
	}
	for _, c := range r.Status.Conditions {
		if c.Status == "False" && (c.Type == v1alpha1.ConditionSucceeded || row.Message == "") && row.State.Tone != Good {
			row.Message = c.Message
		}
	}
	if d := r.Status.Deployment; d != nil && d.Name != "" {
		row.Graph, row.GraphPath = d.Name, "/graphs/"+cmp.Or(d.Namespace, r.Namespace)+"/"+d.Name
	}
	return row
}

// Request is the page of one request.
type Request struct {
	RequestRow
	Gone       bool
	Steps      []Step
	Conditions []Condition
	// Done and Total are candidates; Total is 0 while nothing is known.
	Done, Total int
	Stage, Best string
	Chosen      []Fact
	Targets     []Target
	Remedy      string
	// Report says that the profiler wrote one.
	Report bool
	// OutputMissing says why the profiler's output is not shown.
	OutputMissing string
	Missing       []string
}

// Percent is how many candidates are done.
func (r Request) Percent() int {
	if r.Total <= 0 {
		return 0
	}
	return min(100, 100*r.Done/r.Total)
}

// Step is a stage of a request's life.
type Step struct {
	Name  string
	State State
	Here  bool
}

// Fact is something about the chosen configuration.
type Fact struct{ Name, Value string }

// Target is a promise and how it is kept.
type Target struct {
	Words string
	State State
	// Got and Want as shares of the larger, for a bar.
	Got, Want int
	Name      string
}

// OneRequest is the page of a request, with what its profiler wrote so far. What
// anybody may have written is shown, and decides nothing.
func OneRequest(r *v1alpha1.DynamoGraphDeploymentRequest, output map[string]string, now time.Time) Request {
	page := Request{RequestRow: requestRow(r, now), Conditions: Conditions(r.Status.Conditions, now), Steps: steps(r.Status.State)}
	if text := output[profileoutput.KeyProgress]; text != "" {
		if p, err := profileoutput.ParseProgress(text); err == nil {
			page.Done, page.Total, page.Stage, page.Best = p.Done, p.Total, string(p.Stage), p.Best
		}
	}
	page.Report = output[profileoutput.KeyReportHTML] != ""
	res, err := profileoutput.ParseResult(output[profileoutput.KeyResult])
	if output[profileoutput.KeyResult] == "" || err != nil {
		return page
	}
	page.Remedy = res.Remedy
	for _, f := range []Fact{
		{"Configuration", res.Chosen}, {"GPUs", nonZero(float64(res.GPUs))}, {"Time to first token, ms", nonZero(res.TTFTMs)}, {"Time between tokens, ms", nonZero(res.ITLMs)},
		{"Output tokens a second and GPU", nonZero(res.TokensPerGPU)}, {"Requests a second", nonZero(res.RequestRate)}, {"Cost of a million tokens", nonZero(res.CostPerMillion)},
	} {
		if f.Value != "" {
			page.Chosen = append(page.Chosen, f)
		}
	}
	for _, t := range res.Targets {
		top := max(t.Got, t.Want, 1e-9)
		target := Target{Name: t.Name, Words: t.String(), State: State{"missed", Bad}, Got: int(100 * t.Got / top), Want: int(100 * t.Want / top)}
		if t.Met {
			target.State = State{"met", Good}
		}
		page.Targets = append(page.Targets, target)
	}
	return page
}

func nonZero(x float64) string {
	if x == 0 {
		return ""
	}
	return Round(x)
}

// steps walks a request's life up to where it is.
func steps(now v1alpha1.RequestState) []Step {
	all := []v1alpha1.RequestState{v1alpha1.RequestStatePending, v1alpha1.RequestStateProfiling, v1alpha1.RequestStateDeploying, v1alpha1.RequestStateReady}
	at := slices.Index(all, now)
	var out []Step
	for i, s := range all {
		step := Step{Name: string(s), State: State{"to come", Off}, Here: i == at}
		switch {
		case i < at || now == v1alpha1.RequestStateReady:
			step.State = State{"done", Good}
		case i == at:
			step.State = State{"now", Busy}
		}
		out = append(out, step)
	}
	switch now {
	case v1alpha1.RequestStateFailed:
		return append(out, Step{Name: "Failed", State: State{"failed", Bad}, Here: true})
	case v1alpha1.RequestStateDeploymentDeleted:
		return append(out, Step{Name: "Deployment deleted", State: State{"deleted", Off}, Here: true})
	default:
		return out
	}
}

// Cluster is the page of nodes, GPUs and the installation.
type Cluster struct {
	Nodes []Node
	// GPUs are all, Held those that pods have.
	GPUs, Held int
	Findings   []Finding
	// FindingsAge is how old they are.
	FindingsAge string
	Problems    int
	Missing     []string
}

// Free are GPUs that nobody has.
func (c Cluster) Free() int { return max(0, c.GPUs-c.Held) }

// Finding is one of doctor's.
type Finding struct {
	State      State
	What, Todo string
}

// Node is a node and who holds its GPUs.
type Node struct {
	Name, Product string
	State         State
	GPUs, Held    int
	Holders       []Holder
	Pods          int
}

// Free are GPUs that nobody has.
func (n Node) Free() int { return max(0, n.GPUs-n.Held) }

// Percent of the GPUs that are held.
func (n Node) Percent() int {
	if n.GPUs == 0 {
		return 0
	}
	return min(100, 100*n.Held/n.GPUs)
}

// Holder is who has GPUs of a node.
type Holder struct {
	Name, Path string
	GPUs       int
}

// OneCluster is the page of the cluster.
func OneCluster(nodes []corev1.Node, pods []corev1.Pod) Cluster {
	var page Cluster
	at := map[string]int{}
	for i := range nodes {
		n := &nodes[i]
		node := Node{Name: n.Name, Product: n.Labels["nvidia.com/gpu.product"], State: nodeState(n)}
		for name, quantity := range n.Status.Allocatable {
			if graph.IsGPU(name) {
				node.GPUs += int(quantity.Value())
			}
		}
		page.GPUs += node.GPUs
		page.Nodes = append(page.Nodes, node)
	}
	slices.SortFunc(page.Nodes, func(a, b Node) int { return cmp.Compare(a.Name, b.Name) })
	for i := range page.Nodes {
		at[page.Nodes[i].Name] = i
	}
	for _, pod := range pods {
		i, known := at[pod.Spec.NodeName]
		if !known || !tree.Holds(pod) {
			continue
		}
		node := &page.Nodes[i]
		node.Pods++
		count := tree.GPUs(pod)
		if count == 0 {
			continue
		}
		node.Held += count
		page.Held += count
		node.hold(pod, count)
	}
	for i := range page.Nodes {
		slices.SortFunc(page.Nodes[i].Holders, func(a, b Holder) int { return cmp.Compare(a.Name, b.Name) })
	}
	return page
}

func (n *Node) hold(pod corev1.Pod, count int) {
	h := Holder{Name: "pod " + pod.Namespace + "/" + pod.Name, GPUs: count}
	if g := pod.Labels[v1alpha1.LabelGraphName]; g != "" {
		h.Name, h.Path = pod.Namespace+"/"+g, "/graphs/"+pod.Namespace+"/"+g
	}
	if i := slices.IndexFunc(n.Holders, func(o Holder) bool { return o.Name == h.Name }); i >= 0 {
		n.Holders[i].GPUs += count
		return
	}
	n.Holders = append(n.Holders, h)
}

func nodeState(n *corev1.Node) State {
	ready := slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
	switch {
	case !ready:
		return State{"not ready", Bad}
	case n.Spec.Unschedulable:
		return State{"takes no new pods", Off}
	default:
		return State{"ready", Good}
	}
}

// Findings are doctor's, those first that need somebody.
func Findings(all []doctor.Finding) []Finding {
	var out []Finding
	for _, f := range all {
		state := State{"fine", Good}
		switch {
		case f.Wrong:
			state = State{"wrong", Bad}
		case f.Note:
			state = State{"note", Off}
		}
		out = append(out, Finding{State: state, What: f.What, Todo: f.Todo})
	}
	slices.SortStableFunc(out, func(a, b Finding) int { return urgency(a.State) - urgency(b.State) })
	return out
}
