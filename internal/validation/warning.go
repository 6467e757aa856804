package validation

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/graph"
)

// warnings are things that are admitted and do not do what a reader of the
// object would expect.
type warnings []string

func (w *warnings) add(at *field.Path, text string) {
	*w = append(*w, at.String()+": "+text)
}

func (w warnings) sorted() []string {
	slices.Sort(w)
	return w
}

// unknownNamespace stands for the namespace of an object that is not in one yet.
const unknownNamespace = "<namespace>"

// GraphDeploymentWarnings tells what of a graph will not be as it is written.
func GraphDeploymentWarnings(dgd *v1alpha1.DynamoGraphDeployment) []string {
	var w warnings
	if dgd.Name != "" && dgd.Name[0] >= '0' && dgd.Name[0] <= '9' {
		w.add(field.NewPath("metadata", "name"), "begins with a digit; most clusters refuse Services of such a name")
	}
	if dgd.Annotations[v1alpha1.AnnotationStartAfter] != "" {
		w.add(field.NewPath("metadata", "annotations").Key(v1alpha1.AnnotationStartAfter), "has no effect; it belongs in the annotations of the service that waits")
	}
	for name, s := range dgd.Spec.SortedServices() {
		effective := graph.DynamoNamespace(cmp.Or(dgd.Namespace, unknownNamespace), dgd.Name, s.GlobalDynamoNamespace)
		w.service(s, dgd.Spec.BackendFramework, effective, field.NewPath("spec", "services").Key(name))
	}
	return w.sorted()
}

// ComponentDeploymentWarnings does the same for a component. One that belongs to
// a graph is the operator's own, whose user was told at the graph.
func ComponentDeploymentWarnings(dcd *v1alpha1.DynamoComponentDeployment) []string {
	if graph.ParentGraph(dcd) != "" {
		return nil
	}
	var w warnings
	effective := graph.DynamoNamespace(cmp.Or(dcd.Namespace, unknownNamespace), dcd.Name, dcd.Spec.GlobalDynamoNamespace)
	w.service(&dcd.Spec.SharedSpec, dcd.Spec.BackendFramework, effective, field.NewPath("spec"))
	if dcd.Spec.Annotations[v1alpha1.AnnotationStartAfter] != "" {
		w.add(field.NewPath("spec", "annotations").Key(v1alpha1.AnnotationStartAfter), "has no effect on a component without a graph; services of a DynamoGraphDeployment start in order")
	}
	return w.sorted()
}

func (w *warnings) service(s *v1alpha1.SharedSpec, framework v1alpha1.BackendFramework, dynamoNamespace string, at *field.Path) {
	if given := s.DynamoNamespace; given != nil && *given != "" && *given != dynamoNamespace {
		w.add(at.Child("dynamoNamespace"), fmt.Sprintf("%q is no longer used; the service is in %q", *given, dynamoNamespace))
	}
	if s.Autoscaling != nil {
		w.add(at.Child("autoscaling"), "is no longer used; enable scalingAdapter and point an autoscaler at its DynamoGraphDeploymentScalingAdapter")
	}
	if s.ModelRef != nil && s.ModelRef.Revision != "" {
		w.add(at.Child("modelRef", "revision"), "has no effect")
	}
	if i := s.Ingress; i != nil && i.Enabled && none(i.IngressControllerClassName) && (!i.UseVirtualService || none(i.VirtualServiceGateway)) {
		w.add(at.Child("ingress"), "has neither ingressControllerClassName nor a VirtualService's gateway, so nothing is made for it")
	}
	if s.EPPConfig != nil && s.ComponentType != v1alpha1.ComponentTypeEPP {
		w.add(at.Child("eppConfig"), "is read only where componentType is epp")
	}
	w.annotations(s.Annotations, at.Child("annotations"))
	w.gpus(s.Resources, at.Child("resources", "requests"))
	w.nodes(s, framework, at)
}

func none(text *string) bool { return text == nil || *text == "" }

// debugTwins are switches of earlier operators that ephemeral containers replace.
var debugTwins = []string{
	v1alpha1.AnnotationEnableDebugMode,
	v1alpha1.AnnotationEnableStealingTrafficDebugMode,
	v1alpha1.AnnotationDebugPodProductionTraffic,
}

func (w *warnings) annotations(annotations map[string]string, at *field.Path) {
	for _, key := range debugTwins {
		if annotations[key] == "true" {
			w.add(at.Key(key), "has no effect; kubectl debug adds a container to a running pod")
		}
	}
}

func (w *warnings) gpus(r *v1alpha1.Resources, at *field.Path) {
	if r == nil || r.Requests == nil || r.Limits == nil {
		return
	}
	if given, limit := r.Requests.GPU, r.Limits.GPU; given != "" && limit != "" && given != limit {
		w.add(at.Child("gpu"), fmt.Sprintf("%s is not used; GPUs cannot be overcommitted, so limits.gpu %s counts", given, limit))
	}
	if given, limit := r.Requests.GPUType, cmp.Or(r.Limits.GPUType, r.Requests.GPUType); given != limit {
		w.add(at.Child("gpuType"), fmt.Sprintf("%s is not used; limits.gpuType %s counts", given, limit))
	}
}

// nodes warns of a group whose nodes would each run on their own.
func (w *warnings) nodes(s *v1alpha1.SharedSpec, framework v1alpha1.BackendFramework, at *field.Path) {
	c, readable := read(s, framework)
	if !readable || !c.Multinode() {
		return
	}
	l, err := launch(c)
	if err != nil || l.Joined {
		return
	}
	why := "the command does not launch the engine in a way that flags can be added to"
	switch {
	case c.Engine == graph.EngineNone:
		why = "no engine is recognised in the command"
	case c.Engine == graph.EngineVLLM && c.Resources.GPUs == 0:
		why = "resources.limits.gpu does not say what fits on a node"
	case c.Engine == graph.EngineVLLM:
		why = "its arguments ask for no more GPUs than a node has, or stand where flags cannot be added"
	}
	w.add(at.Child("multinode"), fmt.Sprintf("nothing tells the %d nodes of each other: %s", c.Nodes, why))
}
