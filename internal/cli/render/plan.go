package render

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/cli/input"
	"github.com/dynamo-operator/dynamo-operator/internal/cli/validate"
	"github.com/dynamo-operator/dynamo-operator/internal/cluster/scheme"
	"github.com/dynamo-operator/dynamo-operator/internal/core/conversion"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/manifest"
	"github.com/dynamo-operator/dynamo-operator/internal/core/render"
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

// planner does what the reconcilers do, in their order, and keeps what they
// would send.
type planner struct {
	orchestrator string
	platform     render.Platform
	rules        validation.Scope
	kinds        *runtime.Scheme
	objects      []map[string]any
	// version is that of the document in hand, in which our own kinds are printed.
	version string
}

func newPlanner(orchestrator string, cfg config.Config) (*planner, error) {
	if !slices.Contains(orchestrators, orchestrator) {
		return nil, fmt.Errorf("orchestrator %q: one of %s", orchestrator, strings.Join(orchestrators, ", "))
	}
	p := &planner{orchestrator: orchestrator, platform: cfg.Platform(), rules: cfg.Rules(), kinds: scheme.New()}
	spans := orchestrator != byDeployment
	p.platform.Capabilities = snapshot.Capabilities{
		snapshot.APILeaderWorkerSet: spans, snapshot.APIVolcano: spans,
		snapshot.APIGrove: orchestrator == byGrove,
		snapshot.APIIstio: true, snapshot.APIInference: true, snapshot.APIDevices: true,
	}
	return p, nil
}

func (p *planner) document(d input.Document, notes io.Writer) error {
	v, err := validate.Judge(d, p.rules)
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
		return p.component(object, notes)
	default:
		return nil
	}
}

// graph renders a graph's children and then those of its components.
func (p *planner) graph(dgd *v1alpha1.DynamoGraphDeployment, notes io.Writer) error {
	g, err := graph.FromGraphDeployment(dgd, p.platform.Defaults)
	if err != nil {
		return err
	}
	wanted, err := render.Graph(dgd, g, p.provider(dgd), p.platform)
	if err != nil {
		return err
	}
	p.noteKey(g, notes)
	if err := p.keep(dgd, wanted); err != nil {
		return err
	}
	for _, w := range wanted {
		child, ok := w.Object.(*v1alpha1.DynamoComponentDeployment)
		if !ok {
			continue
		}
		stored := child.DeepCopy()
		stored.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(dgd, v1alpha1.SchemeGroupVersion.WithKind(v1alpha1.KindDynamoGraphDeployment))}
		if err := p.component(stored, notes); err != nil {
			return err
		}
	}
	return nil
}

func (p *planner) provider(dgd *v1alpha1.DynamoGraphDeployment) workload.Provider {
	switch p.orchestrator {
	case auto:
		return workload.Choose(dgd.Annotations, p.platform.Capabilities, "")
	case byGrove:
		return workload.ProviderGrove
	default:
		return workload.ProviderComponent
	}
}

// noteKey tells of what is random and so not printed.
func (p *planner) noteKey(g *graph.Graph, notes io.Writer) {
	if g.NeedsSSH() {
		fmt.Fprintf(notes, "Secret %s/%s: not printed; the operator makes this key if the namespace has none\n", g.Namespace, p.platform.Pod.SSHSecret)
	}
}

func (p *planner) component(dcd *v1alpha1.DynamoComponentDeployment, notes io.Writer) error {
	g, err := graph.FromComponentDeployment(dcd, p.platform.Defaults)
	if err != nil {
		return err
	}
	if c := g.Components[0]; c.Multinode() && p.orchestrator == byDeployment {
		return fmt.Errorf("service %s spans %d nodes, which no Deployment can: render it with --orchestrator lws or grove", c.Name, c.Nodes)
	}
	wanted, err := render.Component(g, p.platform)
	if err != nil {
		return err
	}
	if g.Standalone {
		p.noteKey(g, notes)
	}
	return p.keep(dcd, wanted)
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
