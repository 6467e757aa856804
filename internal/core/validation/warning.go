package validation

import (
	"cmp"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/workload"
	"github.com/dynamo-operator/dynamo-operator/internal/core/workload/orchestrator"
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

// Orchestration is what runs a graph, as far as that is known: the command line knows
// what the graph says, webhook and controller what the cluster serves.
type Orchestration struct {
	// Provider is empty where it depends on the cluster.
	Provider workload.Provider
	// WithoutKAI says that there is no KAI scheduler.
	WithoutKAI bool
	// InPlace says that the operator does not roll workers out by generations.
	InPlace bool
	// Contract is what a graph's contract is chosen by, where none is recorded.
	Contract graph.ContractRules
	// NodeLabels are the labels of nodes that the operator gives to pods; nil where nobody
	// knows, which is not none.
	NodeLabels []string
	// Unfit is why the workers of this graph cannot come in generations, as seen in the
	// cluster; what the graph itself says against it is found here.
	Unfit string
}

// GraphDeploymentWarnings tells what of a graph will not be as it is written.
func GraphDeploymentWarnings(dgd *v1alpha1.DynamoGraphDeployment, r IngressRules, by Orchestration) []string {
	return wordingOf(dgd).texts(graphWarnings(asRead(dgd), r, by))
}

func graphWarnings(dgd *v1alpha1.DynamoGraphDeployment, r IngressRules, by Orchestration) []string {
	var w warnings
	by.Unfit = cmp.Or(by.Unfit, unfit(dgd, by))
	w.name(dgd.Name)
	if dgd.Annotations[v1alpha1.AnnotationStartAfter] != "" {
		w.add(field.NewPath("metadata", "annotations").Key(v1alpha1.AnnotationStartAfter), "has no effect; it belongs in the annotations of the service that waits")
	}
	for name, s := range dgd.Spec.SortedServices() {
		effective := graph.DynamoNamespace(cmp.Or(dgd.Namespace, unknownNamespace), dgd.Name, s.GlobalDynamoNamespace)
		at := field.NewPath("spec", "services").Key(name)
		w.service(s, dgd.Spec.BackendFramework, effective, r.Defaults, at)
		if told, err := graph.Service(dgd, name, graph.Defaults{}); err == nil { // or another rule says why
			w.nodes(&told, dgd.Spec.BackendFramework, at)
		}
		w.strategy(s, by, by.apart(dgd.Annotations), at)
	}
	w.misplaced(dgd.Annotations, "the annotations of a service")
	w.newer(dgd, by)
	w.queue(dgd.Annotations, by)
	w.rollouts(dgd, by)
	w.scaling(dgd, by)
	w.claims(dgd)
	w.payload(dgd)
	return w.sorted()
}

func (w *warnings) name(name string) {
	if name != "" && name[0] >= '0' && name[0] <= '9' {
		w.add(field.NewPath("metadata", "name"), "begins with a digit; most clusters refuse Services of such a name")
	}
}

// queue warns of a KAI queue that nothing is scheduled from.
func (w *warnings) queue(annotations map[string]string, by Orchestration) {
	_, set := annotations[v1alpha1.AnnotationKaiQueue]
	at := field.NewPath("metadata", "annotations").Key(v1alpha1.AnnotationKaiQueue)
	if !set || by.Provider == "" {
		return
	}
	switch _, queues := orchestrator.ForGraph(by.Provider, orchestrator.Settings{}).(workload.Queuer); {
	case !queues:
		w.add(at, "has no effect; pods are scheduled from a KAI queue only where Grove runs the graph")
	case by.WithoutKAI:
		w.add(at, "has no effect; the cluster has no KAI scheduler")
	}
}

// claims warns of claims that are listed for nobody. One that is to be made is made
// all the same.
func (w *warnings) claims(dgd *v1alpha1.DynamoGraphDeployment) {
	g, err := graph.FromGraphDeployment(dgd, graph.Defaults{})
	if err != nil {
		return // other rules say why
	}
	for i, c := range g.Claims {
		if c.Name != "" && !c.Create && !g.Mounts(c.Name) {
			w.add(field.NewPath("spec", "pvcs").Index(i), fmt.Sprintf("has no effect; no service mounts %s, and create is not set", c.Name))
		}
	}
}

// replacing are the annotations of a service that tune how its pods are replaced.
var replacing = []string{
	v1alpha1.AnnotationDeploymentStrategy, v1alpha1.AnnotationMaxSurge, v1alpha1.AnnotationMaxUnavailable, v1alpha1.AnnotationMinReadySeconds,
}

// strategy warns of tuning that what runs the pods does not know. Groups of nodes
// know Recreate alone: there is no room for a group more. Workers that come in
// generations are replaced by the operator, whatever runs them.
func (w *warnings) strategy(s *v1alpha1.SharedSpec, by Orchestration, generations bool, at *field.Path) {
	generations = generations && graph.RoleOf(string(s.ComponentType)).RunsEngine()
	places := []struct {
		annotations map[string]string
		at          *field.Path
	}{{s.Annotations, at.Child("annotations")}}
	if m := s.ExtraPodMetadata; m != nil {
		places = append(places, struct {
			annotations map[string]string
			at          *field.Path
		}{m.Annotations, at.Child("extraPodMetadata", "annotations")})
	}
	recreated := false
	for _, place := range places {
		recreated = recreated || place.annotations[v1alpha1.AnnotationDeploymentStrategy] == string(appsv1.RecreateDeploymentStrategyType)
	}
	for _, place := range places {
		for _, key := range replacing {
			if why := ineffective(key, s, by.Provider, generations, recreated); why != "" && place.annotations[key] != "" {
				w.add(place.at.Key(key), why)
			}
		}
	}
}

// ineffective says why an annotation that tunes how pods are replaced has no effect;
// empty if it has one.
func ineffective(key string, s *v1alpha1.SharedSpec, by workload.Provider, generations, recreated bool) string {
	_, ownWay := orchestrator.ForGraph(by, orchestrator.Settings{}).(workload.Updater)
	switch {
	case ownWay && !generations:
		return fmt.Sprintf("has no effect; provider %s replaces pods in a way of its own", by)
	case key == v1alpha1.AnnotationDeploymentStrategy:
		return ""
	case s.Multinode != nil && s.Multinode.NodeCount > 1 && !generations:
		return "has no effect; groups of nodes are replaced one after the other, or all at once with " + v1alpha1.AnnotationDeploymentStrategy + ": Recreate"
	case recreated && key != v1alpha1.AnnotationMinReadySeconds:
		return "has no effect; with " + v1alpha1.AnnotationDeploymentStrategy + ": Recreate no pod is made before the old ones are gone"
	default:
		return ""
	}
}

// misplaced warns of annotations of a service on an object that has services, or is one.
func (w *warnings) misplaced(annotations map[string]string, where string) {
	for _, key := range replacing {
		if annotations[key] != "" {
			w.add(field.NewPath("metadata", "annotations").Key(key), "has no effect; it belongs in "+where)
		}
	}
}

// ComponentDeploymentWarnings does the same for a component. One that belongs to
// a graph is the operator's own, whose user was told at the graph.
func ComponentDeploymentWarnings(dcd *v1alpha1.DynamoComponentDeployment, r IngressRules) []string {
	return wordingOf(dcd).texts(componentWarnings(componentAsRead(dcd), r))
}

func componentWarnings(dcd *v1alpha1.DynamoComponentDeployment, r IngressRules) []string {
	if graph.ParentGraph(dcd) != "" {
		return nil
	}
	var w warnings
	w.name(dcd.Name)
	w.misplaced(dcd.Annotations, "spec.annotations")
	w.payload(dcd)
	w.strategy(&dcd.Spec.SharedSpec, Orchestration{Provider: workload.ProviderComponent}, false, field.NewPath("spec"))
	effective := graph.DynamoNamespace(cmp.Or(dcd.Namespace, unknownNamespace), dcd.Name, dcd.Spec.GlobalDynamoNamespace)
	w.service(&dcd.Spec.SharedSpec, dcd.Spec.BackendFramework, effective, r.Defaults, field.NewPath("spec"))
	w.nodes(&dcd.Spec.SharedSpec, dcd.Spec.BackendFramework, field.NewPath("spec"))
	if dcd.Spec.Annotations[v1alpha1.AnnotationStartAfter] != "" {
		w.add(field.NewPath("spec", "annotations").Key(v1alpha1.AnnotationStartAfter), "has no effect on a component without a graph; services of a DynamoGraphDeployment start in order")
	}
	return w.sorted()
}

func (w *warnings) service(s *v1alpha1.SharedSpec, framework v1alpha1.BackendFramework, dynamoNamespace string, d graph.IngressDefaults, at *field.Path) {
	if given := s.DynamoNamespace; given != nil && *given != "" && *given != dynamoNamespace {
		w.add(at.Child("dynamoNamespace"), fmt.Sprintf("%q is no longer used; the service is in %q", *given, dynamoNamespace))
	}
	if s.Autoscaling != nil {
		w.add(at.Child("autoscaling"), "is no longer used; enable scalingAdapter and point an autoscaler at its DynamoGraphDeploymentScalingAdapter")
	}
	if s.ModelRef != nil && s.ModelRef.Revision != "" {
		w.add(at.Child("modelRef", "revision"), "has no effect")
	}
	w.ingress(s, d, at.Child("ingress"))
	if s.EPPConfig != nil && s.ComponentType != v1alpha1.ComponentTypeEPP {
		w.add(at.Child("eppConfig"), "is read only where componentType is epp")
	}
	w.annotations(s.Annotations, at.Child("annotations"))
	w.gpus(s.Resources, at.Child("resources", "requests"))
	w.caches(s, framework, at.Child("volumeMounts"))
	if s.Checkpoint != nil && s.Checkpoint.Enabled {
		w.add(at.Child("checkpoint"), "pods start cold; nothing captures checkpoints")
	}
}

// ingress warns of a route that is not made, or that leads nowhere.
func (w *warnings) ingress(s *v1alpha1.SharedSpec, d graph.IngressDefaults, at *field.Path) {
	asked := graph.ReadIngress(s.Ingress, d)
	switch role := graph.RoleOf(string(s.ComponentType)); {
	case asked == nil:
	case asked.Class == "" && asked.Gateway == "":
		w.add(at, "has neither ingressControllerClassName nor a VirtualService's gateway, and the operator is configured with none for it, so nothing is made for it")
	case role == graph.RolePlanner || role == graph.RoleOther:
		if !serves(s, "system") {
			w.add(at, "leads nowhere; components of this type listen at no port unless mainContainer has one named system")
		}
	}
}

func serves(s *v1alpha1.SharedSpec, port string) bool {
	return s.ExtraPodSpec != nil && s.ExtraPodSpec.MainContainer != nil &&
		slices.ContainsFunc(s.ExtraPodSpec.MainContainer.Ports, func(p corev1.ContainerPort) bool { return p.Name == port })
}

// caches warns of compilation caches that no engine is told of.
func (w *warnings) caches(s *v1alpha1.SharedSpec, framework v1alpha1.BackendFramework, at *field.Path) {
	c, readable := read(s, framework)
	if !readable || c.Engine == graph.EngineVLLM {
		return
	}
	for i, m := range s.VolumeMounts {
		if m.UseAsCompilationCache && m.MountPoint != "" {
			w.add(at.Index(i).Child("useAsCompilationCache"), fmt.Sprintf("%s is mounted, but only vLLM is told of it; others are told by their own variables", m.Name))
		}
	}
}

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

// nodes warns of a group whose nodes would each run on their own, or may.
func (w *warnings) nodes(s *v1alpha1.SharedSpec, framework v1alpha1.BackendFramework, at *field.Path) {
	c, readable := read(s, framework)
	if !readable || !c.Multinode() || (c.Resources.GPUs == 0 && len(c.Devices) > 0) {
		return // what claims give is known to the cluster
	}
	l, err := launch(c)
	for _, argument := range l.Unknown {
		w.add(at.Child("extraPodSpec", "mainContainer", "args"), fmt.Sprintf("%s is known only when the pod runs, so it counts as 1 in how vLLM spans the %d nodes: write the number, or a variable whose value the component says", argument, c.Nodes))
	}
	if err != nil || l.Joined {
		return
	}
	why := "the command does not launch the engine in a way that flags can be added to"
	switch {
	case c.Engine == graph.EngineNone:
		why = "no engine is recognised in the command"
	case c.Engine == graph.EngineVLLM && c.Resources.GPUs == 0:
		why = "resources.limits.gpu does not say what fits on a node"
	case len(l.Unknown) > 0:
		return // that is why
	case c.Engine == graph.EngineVLLM:
		why = "its arguments ask for no more GPUs than a node has, or stand where flags cannot be added"
	}
	w.add(at.Child("multinode"), fmt.Sprintf("nothing tells the %d nodes of each other: %s", c.Nodes, why))
}
