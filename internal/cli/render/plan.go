package render

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/cli/input"
	"github.com/dynamo-operator/dynamo-operator/internal/cli/validate"
	"github.com/dynamo-operator/dynamo-operator/internal/core/conversion"
	"github.com/dynamo-operator/dynamo-operator/internal/core/deviceclaim"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/manifest"
	"github.com/dynamo-operator/dynamo-operator/internal/core/render"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/pairing"
	"github.com/dynamo-operator/dynamo-operator/internal/core/snapshot"
	"github.com/dynamo-operator/dynamo-operator/internal/core/validation"
	"github.com/dynamo-operator/dynamo-operator/internal/core/workload"
	"github.com/dynamo-operator/dynamo-operator/internal/operator/config"
)

// What runs the pods.
const (
	auto         = "auto"
	byDeployment = "deployment"
	byLWS        = "lws"
	byGrove      = "grove"
)

var orchestrators = []string{auto, byDeployment, byLWS, byGrove}

// Renderer renders graphs as the reconcilers of an operator do, with what that one's
// configuration and orchestrator come to.
type Renderer struct {
	Platform render.Platform
	Rules    validation.Scope
	// Devices are what claims of each namespace ask for, as far as they are known.
	Devices map[string]deviceclaim.Requests

	orchestrator string
}

// Visit is told what one owner wants, and the graph that it was made from.
type Visit func(owner graph.Object, g *graph.Graph, wanted []graph.Desired) error

// Orchestrators are the words for what may run the pods.
func Orchestrators() string { return strings.Join(orchestrators, ", ") }

// NewRenderer is for an orchestrator and the operator's configuration.
func NewRenderer(orchestrator string, cfg config.Config) (Renderer, error) {
	if !slices.Contains(orchestrators, orchestrator) {
		return Renderer{}, fmt.Errorf("orchestrator %q: one of %s", orchestrator, Orchestrators())
	}
	r := Renderer{orchestrator: orchestrator, Platform: cfg.Platform(), Rules: cfg.Rules()}
	spans := orchestrator != byDeployment
	r.Platform.Capabilities = snapshot.Capabilities{
		snapshot.APILeaderWorkerSet: spans, snapshot.APIVolcano: spans,
		snapshot.APIGrove: orchestrator == byGrove,
		snapshot.APIIstio: true, snapshot.APIInference: true, snapshot.APIDevices: true,
	}
	return r, nil
}

// Graph visits a graph's children and then those of its components.
func (r Renderer) Graph(dgd *v1alpha1.DynamoGraphDeployment, g *graph.Graph, visit Visit) error {
	g, _ = r.count(g) // what is not known is told of by each component
	wanted, err := render.Graph(dgd, g, r.Provider(dgd), r.Platform)
	if err != nil {
		return err
	}
	if err := visit(dgd, g, wanted); err != nil {
		return err
	}
	for _, w := range wanted {
		child, ok := w.Object.(*v1alpha1.DynamoComponentDeployment)
		if !ok {
			continue
		}
		stored := child.DeepCopy()
		stored.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(dgd, v1alpha1.SchemeGroupVersion.WithKind(v1alpha1.KindDynamoGraphDeployment))}
		if err := r.Component(stored, visit); err != nil {
			return err
		}
	}
	return nil
}

// Component visits the children of a component.
func (r Renderer) Component(dcd *v1alpha1.DynamoComponentDeployment, visit Visit) error {
	g, err := graph.FromComponentDeployment(dcd, r.Platform.Defaults)
	if err != nil {
		return err
	}
	if c := g.Components[0]; c.Multinode() && r.orchestrator == byDeployment {
		return fmt.Errorf("service %s spans %d nodes, which no Deployment can: render it with --orchestrator lws or grove", c.Name, c.Nodes)
	}
	g, _ = r.count(g)
	wanted, err := render.Component(g, r.Platform)
	if err != nil {
		return err
	}
	return visit(dcd, g, wanted)
}

// count is a graph whose components have the GPUs that they claim, as far as claims are
// known. Without the others an operator makes nothing; who only reads is told instead.
func (r Renderer) count(g *graph.Graph) (*graph.Graph, error) {
	return deviceclaim.Count(g, r.Devices[g.Namespace])
}

// Paired is a graph with its frontends in generations, if that is asked for and possible.
func (r Renderer) Paired(dgd *v1alpha1.DynamoGraphDeployment, g *graph.Graph) *graph.Graph {
	return pairing.Of(dgd, g, r.Provider(dgd), r.Platform.Defaults.Running, r.Platform.Generations)
}

// Provider is what runs a graph.
func (r Renderer) Provider(dgd *v1alpha1.DynamoGraphDeployment) workload.Provider {
	switch r.orchestrator {
	case auto:
		return workload.Choose(dgd.Annotations, r.Platform.Capabilities, "")
	case byGrove:
		return workload.ProviderGrove
	default:
		return workload.ProviderComponent
	}
}

// planner keeps what the reconcilers would send, in their order.
type planner struct {
	Renderer
	kinds   *runtime.Scheme
	objects []map[string]any
	// version is that of the document in hand, in which our own kinds are printed.
	version string
}

func (p *planner) document(d input.Document, notes io.Writer) error {
	v, err := validate.Judge(d, p.Rules)
	if err != nil {
		return err
	}
	for _, w := range v.Warnings {
		fmt.Fprintf(notes, "%s: warning: %s\n", d, w)
	}
	if len(v.Problems) > 0 {
		return v.Problems.ToAggregate()
	}
	p.version = d.GetAPIVersion()
	switch object := v.Object.(type) {
	case *v1alpha1.DynamoGraphDeployment:
		return p.graph(object, notes)
	case *v1alpha1.DynamoComponentDeployment:
		return p.Component(object, p.visit(notes))
	default:
		return nil
	}
}

func (p *planner) graph(dgd *v1alpha1.DynamoGraphDeployment, notes io.Writer) error {
	g, err := graph.FromGraphDeployment(dgd, p.Platform.Defaults)
	if err != nil {
		return err
	}
	g = p.Paired(dgd, g)
	p.note(g, notes)
	return p.Graph(dgd, g, p.visit(notes))
}

// visit keeps what an owner wants.
func (p *planner) visit(notes io.Writer) Visit {
	return func(owner graph.Object, g *graph.Graph, wanted []graph.Desired) error {
		if g.Standalone {
			p.note(g, notes)
		}
		return p.keep(owner, wanted)
	}
}

// note tells of what is random and so not printed, and of what is not known.
func (p *planner) note(g *graph.Graph, notes io.Writer) {
	if _, err := p.count(g); err != nil {
		fmt.Fprintf(notes, "%s/%s: not in the input, and command lines depend on it: %v\n", g.Namespace, g.Name, err)
	}
	if g.NeedsSSH() {
		fmt.Fprintf(notes, "Secret %s/%s: not printed; the operator makes this key if the namespace has none\n", g.Namespace, p.Platform.Pod.SSHSecret)
	}
}

// keep adds what one owner wants, by kind and name.
func (p *planner) keep(owner graph.Object, wanted []graph.Desired) error {
	slices.SortStableFunc(wanted, func(a, b graph.Desired) int { return cmp.Compare(a.GetName(), b.GetName()) })
	from := len(p.objects)
	for _, w := range wanted {
		fields, err := manifest.Of(w, owner, p.kinds)
		if err != nil {
			return err
		}
		if fields, err = p.shown(fields); err != nil {
			return err
		}
		p.objects = append(p.objects, fields)
	}
	slices.SortStableFunc(p.objects[from:], func(a, b map[string]any) int {
		return cmp.Compare(a["kind"].(string), b["kind"].(string))
	})
	return nil
}

// shown is an object in the version of the manifest, as a server shows it there.
func (p *planner) shown(fields map[string]any) (map[string]any, error) {
	object := unstructured.Unstructured{Object: fields}
	if object.GroupVersionKind().Group != v1alpha1.GroupName || object.GetAPIVersion() == p.version || !conversion.Convertible(object.GetKind()) {
		return fields, nil
	}
	text, err := object.MarshalJSON()
	if err != nil {
		return nil, err
	}
	converted, err := conversion.Convert(text, p.version)
	if err != nil {
		return nil, err
	}
	var shown map[string]any
	if err := json.Unmarshal(converted.JSON, &shown); err != nil {
		return nil, err
	}
	delete(shown, "status")
	return shown, nil
}

// claims are what templates and claims among the documents ask for, by namespace.
func claims(documents []input.Document, namespace string) (map[string]deviceclaim.Requests, error) {
	found := map[string]deviceclaim.Requests{}
	for _, d := range documents {
		if d.GroupVersionKind().Group != resourcev1.GroupName {
			continue
		}
		var spec resourcev1.ResourceClaimSpec
		var err error
		switch d.GetKind() {
		case deviceclaim.KindTemplate:
			var template resourcev1.ResourceClaimTemplate
			err = runtime.DefaultUnstructuredConverter.FromUnstructured(d.Object, &template)
			spec = template.Spec.Spec
		case deviceclaim.KindClaim:
			var claim resourcev1.ResourceClaim
			err = runtime.DefaultUnstructuredConverter.FromUnstructured(d.Object, &claim)
			spec = claim.Spec
		default:
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", d, err)
		}
		in := cmp.Or(d.GetNamespace(), namespace)
		if found[in] == nil {
			found[in] = deviceclaim.Requests{}
		}
		found[in][graph.Ref{Kind: d.GetKind(), Name: d.GetName()}] = spec.Devices.Requests
	}
	return found, nil
}
