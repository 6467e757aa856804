package graph

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/conversion"
)

// Defaults are the operator's settings that a graph inherits.
type Defaults struct {
	Discovery Discovery
	Ingress   IngressDefaults
	Contract  ContractRules
	Planner   PlannerRules
	// Running is what the children of the object in hand show, where there are any.
	Running Running
}

// FromGraphDeployment reads a DynamoGraphDeployment in the version that it is
// stored in, unless it means what its v1beta1 form says.
func FromGraphDeployment(dgd *v1alpha1.DynamoGraphDeployment, d Defaults) (*Graph, error) {
	if conversion.MeansBeta(dgd) {
		return fromStoredBeta(dgd, d)
	}
	g := newGraph(dgd, d)
	for _, name := range conversion.Order(dgd) {
		shared, err := service(dgd, name, d, g.Contract)
		if err != nil {
			return nil, fmt.Errorf("service %s: %w", name, err)
		}
		c, err := component(shared, dgd.Spec.BackendFramework, d, g.Contract)
		if err != nil {
			return nil, fmt.Errorf("service %s: %w", name, err)
		}
		c.tune(dgd, g.Contract, d.Running, join(dgd.Annotations, c.Annotations, c.PodAnnotations))
		g.named(c, name, shared.GlobalDynamoNamespace, shared.ScalingAdapter != nil && shared.ScalingAdapter.Enabled)
	}
	g.finish(dgd, d)
	return g, nil
}

// newGraph is what a graph has beside its components.
func newGraph(dgd *v1alpha1.DynamoGraphDeployment, d Defaults) *Graph {
	s := &dgd.Spec
	g := &Graph{
		Name:       dgd.Name,
		Namespace:  dgd.Namespace,
		Discovery:  discovery(dgd.Annotations, d),
		Contract:   contractOf(dgd, graphTraits(dgd), d.Contract, d.Running),
		Components: make([]Component, 0, len(s.Services)),

		Labels: s.Labels, Annotations: s.Annotations,
		PriorityClass:  s.PriorityClassName,
		UpdateStrategy: dgd.Annotations[v1alpha1.AnnotationGroveUpdateStrategy],
	}
	g.TakenOver = takenOver(dgd, carriedOut(dgd), g.Contract, d.Running)
	if t := s.TopologyConstraint; t != nil {
		g.Topology = &Topology{Name: t.TopologyProfile, Domain: t.PackDomain}
	}
	if e := s.Experimental; e != nil && e.KVTransferPolicy != nil {
		k := e.KVTransferPolicy
		g.KVTransfer = &KVTransfer{
			LabelKey: k.LabelKey, TopologyName: k.ClusterTopologyName, Domain: k.Domain,
			Preferred: k.Enforcement == v1alpha1.EnforcementPreferred, Weight: k.PreferredWeight,
		}
	}
	for _, pvc := range s.PVCs {
		claim := Claim{Name: pvc.Name, Create: deref(pvc.Create, false), StorageClass: pvc.StorageClass, AccessMode: pvc.VolumeAccessMode}
		if pvc.Size != nil {
			claim.Size = pvc.Size.DeepCopy()
		}
		g.Claims = append(g.Claims, claim)
	}
	return g
}

// named adds a component of a graph under its name.
func (g *Graph) named(c Component, name string, global, adapter bool) {
	c.Name = name
	c.ObjectName = ComponentName(g.Name, name)
	c.locate(g.KVTransfer, g.Contract)
	g.add(c, global)
	if adapter {
		g.Adapters = append(g.Adapters, Adapter{Service: name, ObjectName: c.ObjectName, Replicas: c.Replicas})
	}
}

// finish names what depends on all components.
func (g *Graph) finish(dgd metav1.Object, d Defaults) {
	g.nameCliques()
	if d.Planner.Always || dgd.GetAnnotations()[v1alpha1.AnnotationPlanner] == v1alpha1.PlannerNative {
		g.planNatively(d.Planner.Image)
	}
	g.generate(dgd.GetAnnotations(), d.Running)
}

// layer puts what a graph says for all under what a service says.
func layer(graph, service map[string]string) map[string]string {
	if len(graph) == 0 {
		return service
	}
	return join(graph, service)
}

// Service is a service's spec as its component carries it: the user's, with
// what the graph says for all of its services. It shares memory with the graph:
// who changes what is below its fields has to copy it first.
func Service(dgd *v1alpha1.DynamoGraphDeployment, name string, d Defaults) (v1alpha1.SharedSpec, error) {
	return service(dgd, name, d, contractOf(dgd, graphTraits(dgd), d.Contract, d.Running))
}

func service(dgd *v1alpha1.DynamoGraphDeployment, name string, d Defaults, contract Contract) (v1alpha1.SharedSpec, error) {
	shared := v1alpha1.SharedSpec{}
	if service := dgd.Spec.Services[name]; service != nil {
		shared = *service
	}
	shared.Envs = mergeEnvs(dgd.Spec.Envs, shared.Envs)
	shared.Labels = layer(dgd.Spec.Labels, shared.Labels)
	shared.Annotations = inherit(layer(dgd.Spec.Annotations, shared.Annotations), dgd.Annotations, contract)
	if shared.ComponentType == v1alpha1.ComponentTypeFrontend && shared.Ingress == nil {
		shared.Ingress = DefaultIngress(dgd.Name, d.Ingress)
	}
	return ApplyDeploymentConfig(name, shared)
}

// FromComponentDeployment reads a DynamoComponentDeployment in the version that it
// is stored in: the only component of a graph, which has the name of the
// DynamoGraphDeployment that owns it or, where there is none, its own.
func FromComponentDeployment(dcd *v1alpha1.DynamoComponentDeployment, d Defaults) (*Graph, error) {
	if conversion.MeansBeta(dcd) {
		return fromStoredBetaComponent(dcd, d)
	}
	g := newComponentGraph(dcd, discovery(dcd.Spec.Annotations, d), d)
	c, err := component(dcd.Spec.SharedSpec, dcd.Spec.BackendFramework, d, g.Contract)
	if err != nil {
		return nil, err
	}
	c.tune(dcd, g.Contract, d.Running, join(dcd.Annotations, c.Annotations, c.PodAnnotations))
	g.only(dcd, c, dcd.Spec.GlobalDynamoNamespace, d)
	return g, nil
}

// newComponentGraph is the graph of one component. Those of a graph are told the
// contract by it.
func newComponentGraph(dcd *v1alpha1.DynamoComponentDeployment, discovery Discovery, d Defaults) *Graph {
	parent := ParentGraph(dcd)
	g := &Graph{
		Name:       cmp.Or(parent, dcd.Name),
		Namespace:  dcd.Namespace,
		Discovery:  discovery,
		Standalone: parent == "",
		Contract:   ContractSeed,
	}
	if g.Standalone {
		g.Contract = contractOf(dcd, componentTraits(dcd), d.Contract, d.Running)
		g.TakenOver = takenOver(dcd, componentCarriedOut(dcd), g.Contract, d.Running)
		return g
	}
	g.TakenOver = dcd.Annotations[v1alpha1.AnnotationAdoptedGeneration]
	if Contract(dcd.Annotations[v1alpha1.AnnotationRuntimeContract]) == ContractV1 {
		g.Contract = ContractV1
	}
	return g
}

// only adds the component to its graph.
func (g *Graph) only(dcd *v1alpha1.DynamoComponentDeployment, c Component, global bool, d Defaults) {
	c.Name = cmp.Or(dcd.Spec.ServiceName, dcd.Name)
	c.ObjectName = dcd.Name
	c.Labels = join(dcd.Labels, c.Labels)
	g.add(c, global)
	if g.Standalone {
		g.generate(dcd.Annotations, d.Running)
		return
	}
	told := &g.Components[0]
	told.NamespaceLabel = cmp.Or(d.Running.namespaceLabel(g), told.NamespaceLabel)
	// Under the seed's contract a generation counts if that is said too: others have
	// labels of their own.
	if _, said := dcd.Annotations[v1alpha1.AnnotationRuntimeContract]; said {
		g.Generation = generationID(dcd.Labels[v1alpha1.LabelGeneration])
	}
	told.join(g.Generation)
	told.Class = dcd.Labels[v1alpha1.LabelComponentClass]
}

// ParentGraph is the name of the graph that owns a component; empty for one
// that stands alone.
func ParentGraph(dcd metav1.Object) string {
	for _, ref := range dcd.GetOwnerReferences() {
		if ref.Kind == v1alpha1.KindDynamoGraphDeployment {
			return ref.Name
		}
	}
	return ""
}

func (g *Graph) add(c Component, global bool) {
	c.Graph = g.Name
	c.Namespace = g.Namespace
	c.DynamoNamespace = DynamoNamespace(g.Namespace, g.Name, global)
	c.RuntimeNamespace, c.NamespaceLabel = c.DynamoNamespace, c.DynamoNamespace
	c.ServiceName = serviceName(c.ObjectName)
	c.Contract = g.Contract
	g.Components = append(g.Components, c)
}

// discovery reads the user's choice. A value that we do not know is refused by
// validation; here it counts as not given.
func discovery(annotations map[string]string, d Defaults) Discovery {
	switch chosen := Discovery(annotations[v1alpha1.AnnotationDiscoveryBackend]); chosen {
	case DiscoveryKubernetes, DiscoveryEtcd:
		return chosen
	default:
		return d.Discovery
	}
}

// inherited are the annotations of a graph that count for each of its services.
var inherited = []string{v1alpha1.AnnotationDiscoveryBackend, v1alpha1.AnnotationEnableMetrics}

// inherit lets the graph's annotations win under the seed's contract, and the
// service's under that of 1.x.
func inherit(service, graph map[string]string, contract Contract) map[string]string {
	joined := maps.Clone(service)
	for _, key := range inherited {
		if _, own := service[key]; own && contract == ContractV1 {
			continue
		}
		if value, set := graph[key]; set {
			if joined == nil {
				joined = map[string]string{}
			}
			joined[key] = value
		}
	}
	return joined
}

// mergeEnvs lets a service's variables win over the graph's. A graph without
// variables leaves the service's list as the user wrote it.
func mergeEnvs(graph, service []corev1.EnvVar) []corev1.EnvVar {
	if len(graph) == 0 {
		return service
	}
	byName := map[string]corev1.EnvVar{}
	for _, v := range slices.Concat(graph, service) {
		byName[v.Name] = v
	}
	merged := slices.Collect(maps.Values(byName))
	slices.SortFunc(merged, func(a, b corev1.EnvVar) int { return cmp.Compare(a.Name, b.Name) })
	return merged
}

func join(layers ...map[string]string) map[string]string {
	joined := map[string]string{}
	for _, layer := range layers {
		maps.Copy(joined, layer)
	}
	return joined
}

// component reads what a service's own spec says; identity is added later.
func component(s v1alpha1.SharedSpec, framework v1alpha1.BackendFramework, d Defaults, contract Contract) (Component, error) {
	resources, err := readResources(s.Resources)
	if err != nil {
		return Component{}, err
	}
	if contract == ContractV1 {
		resources.repeatGPUs(s.Resources)
	}
	word, sub := typeUnder(contract, string(s.ComponentType), s.SubComponentType)
	role := RoleOf(word)
	c := Component{
		Discovery:    discovery(s.Annotations, d),
		Role:         role,
		Type:         word,
		SubType:      sub,
		Replicas:     deref(s.Replicas, 1),
		Nodes:        1,
		Labels:       s.Labels,
		Annotations:  withoutOrder(s.Annotations),
		StartAfter:   startAfter(s.Annotations),
		Metrics:      s.Annotations[v1alpha1.AnnotationEnableMetrics] != "false",
		Env:          s.Envs,
		Resources:    resources,
		SharedMemory: readSharedMemory(s.SharedMemory),
		Liveness:     s.LivenessProbe,
		Readiness:    s.ReadinessProbe,
		Ingress:      ReadIngress(s.Ingress, d.Ingress),
		Picker:       readPicker(s.EPPConfig),
	}
	if s.Multinode != nil {
		c.Nodes = s.Multinode.NodeCount
	}
	if s.ModelRef != nil {
		c.Model = s.ModelRef.Name
	}
	c.EnvFromSecret = deref(s.EnvFromSecret, "")
	if s.ExtraPodMetadata != nil {
		c.PodLabels, c.PodAnnotations = s.ExtraPodMetadata.Labels, s.ExtraPodMetadata.Annotations
	}
	if s.ExtraPodSpec != nil {
		c.Main, c.Pod = s.ExtraPodSpec.MainContainer, s.ExtraPodSpec.PodSpec
		if c.Pod != nil && equality.Semantic.DeepEqual(*c.Pod, corev1.PodSpec{}) {
			c.Pod = nil
		}
	}
	if c.Main != nil {
		c.Engine = chooseEngine(role, Engine(framework), c.Main.Command, c.Main.Args)
	} else {
		c.Engine = chooseEngine(role, Engine(framework), nil, nil)
	}
	c.Mounts = readMounts(s.VolumeMounts, c.Engine)
	if contract == ContractV1 {
		c.complete()
	}
	c.Resources.GPUs = gpusOf(&c, contract)
	c.readRuntime(&s)
	return c, nil
}

// complete adds what v1beta1 has a main container mean without saying it: claims of the
// names that it mounts, and limits of what it requests and cannot be overcommitted. A
// component of a graph is stored in the words of that version, so both have to mean the
// same.
func (c *Component) complete() {
	var volumes []corev1.Volume
	if c.Pod != nil {
		volumes = c.Pod.Volumes
	}
	if c.Main != nil {
		c.Mounts = append(claimsOf(c.Main.VolumeMounts, volumes), c.Mounts...)
	}
	whole := countable(c.MainContainer().Resources)
	c.Resources.Requests, c.Resources.Limits = whole.Requests, whole.Limits
}

// typeUnder is a component's type and its refinement. The seed labels what the user
// wrote; since 1.x prefill and decode are types of their own.
func typeUnder(contract Contract, word, sub string) (string, string) {
	if contract != ContractV1 {
		return word, sub
	}
	switch split := Role(sub); {
	case Role(word) == RoleWorker && (split == RolePrefill || split == RoleDecode):
		return sub, sub
	case Role(word) == RolePrefill || Role(word) == RoleDecode:
		return word, word
	default:
		return word, sub
	}
}

// readRuntime reads what v1alpha1 has learnt since the seed.
func (c *Component) readRuntime(s *v1alpha1.SharedSpec) {
	if f := s.FrontendSidecar; f != nil {
		c.FrontendSidecar = conversion.FrontendSidecar
		pod := corev1.PodSpec{}
		if c.Pod != nil {
			pod = *c.Pod
		}
		sidecar := corev1.Container{Name: c.FrontendSidecar, Image: f.Image, Args: f.Args, Env: f.Envs}
		if f.EnvFromSecret != nil {
			sidecar.EnvFrom = []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: *f.EnvFromSecret}}}}
		}
		pod.Containers = append(slices.Clone(pod.Containers), sidecar)
		c.Pod = &pod
	}
	if m := s.GPUMemoryService; m != nil && m.Enabled {
		c.GPUMemory = &GPUMemory{Mode: sharing(m.Mode == v1alpha1.SharingInterPod), DeviceClass: cmp.Or(m.DeviceClassName, defaultDeviceClass), Clients: m.ExtraClientContainers}
	}
	if f := s.Failover; f != nil && f.Enabled {
		c.Failover = failover(f.Mode == v1alpha1.SharingInterPod, f.NumShadows)
	}
	if k := s.Checkpoint; k != nil && k.Enabled {
		c.Checkpoint = &Checkpoint{Ref: k.CheckpointRef, Wait: k.StartupPolicy == v1alpha1.StartupWaitForCheckpoint}
	}
	if t := s.TopologyConstraint; t != nil {
		c.PackDomain = t.PackDomain
	}
	c.MinAvailable = s.MinAvailable
	c.Version = s.RuntimeVersionOverride
	used := c.Resources.Claims
	if c.Main != nil {
		used = slices.Concat(c.Main.Resources.Claims, used)
	}
	c.Devices = deviceClaims(c.Pod, used)
}

// defaultDeviceClass is that of GPUs.
const defaultDeviceClass = "gpu.nvidia.com"

func sharing(interPod bool) SharingMode {
	if interPod {
		return SharingInterPod
	}
	return SharingIntraPod
}

// failover is how engines stand by. Those of one pod are two: a third would meet its group
// where the second does.
func failover(interPod bool, shadows int32) *Failover {
	if !interPod {
		shadows = 1
	}
	return &Failover{Mode: sharing(interPod), Shadows: max(1, shadows)}
}

// tune reads the annotations by which a user tunes the runtime.
func (c *Component) tune(object metav1.Object, contract Contract, running Running, annotations map[string]string) {
	if mode := DiscoveryMode(annotations[v1alpha1.AnnotationDiscoveryMode]); mode == DiscoveryModePod || mode == DiscoveryModeContainer {
		c.DiscoveryMode = mode
	}
	if c.Engine == EngineVLLM && c.Multinode() {
		c.Executor = executor(object, annotations, contract, running)
	}
}

func deref[T any](p *T, otherwise T) T {
	if p == nil {
		return otherwise
	}
	return *p
}

// readPicker gives a reference without a key the one that we write to.
func readPicker(e *v1alpha1.EPPConfig) *Picker {
	switch {
	case e == nil:
		return nil
	case e.ConfigMapRef != nil:
		return &Picker{ConfigMap: e.ConfigMapRef.Name, Key: cmp.Or(e.ConfigMapRef.Key, PickerConfigKey)}
	case e.Config != nil:
		return &Picker{Key: PickerConfigKey, Inline: e.Config.Raw}
	default:
		return nil
	}
}

// defaultSharedMemory suits engines that pass tensors between processes.
var defaultSharedMemory = resource.MustParse("8Gi")

// readSharedMemory takes a stored size of zero for unset: typed clients of
// earlier operators wrote it.
func readSharedMemory(s *v1alpha1.SharedMemory) SharedMemory {
	switch {
	case s != nil && s.Disabled:
		return SharedMemory{}
	case s == nil || s.Size == nil || s.Size.IsZero():
		return SharedMemory{Size: new(defaultSharedMemory.DeepCopy())}
	default:
		return SharedMemory{Size: new(s.Size.DeepCopy())}
	}
}

func readMounts(list []v1alpha1.VolumeMount, engine Engine) []Mount {
	var mounts []Mount
	for _, m := range list {
		mount := Mount{Claim: m.Name, Path: m.MountPoint, CompilationCache: m.UseAsCompilationCache}
		if mount.CompilationCache && mount.Path == "" {
			mount.Path = engine.CompilationCache()
		}
		mounts = append(mounts, mount)
	}
	return mounts
}
