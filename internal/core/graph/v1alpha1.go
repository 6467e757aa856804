package graph

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
)

// Defaults are the operator's settings that a graph inherits.
type Defaults struct {
	Discovery Discovery
	Ingress   IngressDefaults
}

// FromGraphDeployment reads a DynamoGraphDeployment.
func FromGraphDeployment(dgd *v1alpha1.DynamoGraphDeployment, d Defaults) (*Graph, error) {
	g := &Graph{
		Name:      dgd.Name,
		Namespace: dgd.Namespace,
		Discovery: discovery(dgd.Annotations, d),
	}
	g.Components = make([]Component, 0, len(dgd.Spec.Services))
	for name := range dgd.Spec.SortedServices() {
		shared, err := Service(dgd, name, d)
		if err != nil {
			return nil, fmt.Errorf("service %s: %w", name, err)
		}
		c, err := component(shared, dgd.Spec.BackendFramework, d)
		if err != nil {
			return nil, fmt.Errorf("service %s: %w", name, err)
		}
		c.Name = name
		c.ObjectName = ComponentName(dgd.Name, name)
		g.add(c, shared)
		if shared.ScalingAdapter != nil && shared.ScalingAdapter.Enabled {
			g.Adapters = append(g.Adapters, Adapter{Service: name, ObjectName: c.ObjectName, Replicas: c.Replicas})
		}
	}
	g.nameCliques()
	for _, pvc := range dgd.Spec.PVCs {
		claim := Claim{Name: pvc.Name, Create: deref(pvc.Create, false), StorageClass: pvc.StorageClass, AccessMode: pvc.VolumeAccessMode}
		if pvc.Size != nil {
			claim.Size = pvc.Size.DeepCopy()
		}
		g.Claims = append(g.Claims, claim)
	}
	return g, nil
}

// Service is a service's spec as its component carries it: the user's, with
// what the graph says for all of its services. It shares memory with the graph:
// who changes what is below its fields has to copy it first.
func Service(dgd *v1alpha1.DynamoGraphDeployment, name string, d Defaults) (v1alpha1.SharedSpec, error) {
	shared := v1alpha1.SharedSpec{}
	if service := dgd.Spec.Services[name]; service != nil {
		shared = *service
	}
	shared.Envs = mergeEnvs(dgd.Spec.Envs, shared.Envs)
	shared.Annotations = inherit(shared.Annotations, dgd.Annotations)
	if shared.ComponentType == v1alpha1.ComponentTypeFrontend && shared.Ingress == nil {
		shared.Ingress = DefaultIngress(dgd.Name, d.Ingress)
	}
	return ApplyDeploymentConfig(name, shared)
}

// FromComponentDeployment reads a DynamoComponentDeployment: the only component
// of a graph, which has the name of the DynamoGraphDeployment that owns it or,
// where there is none, its own.
func FromComponentDeployment(dcd *v1alpha1.DynamoComponentDeployment, d Defaults) (*Graph, error) {
	parent := ParentGraph(dcd)
	g := &Graph{
		Name:       cmp.Or(parent, dcd.Name),
		Namespace:  dcd.Namespace,
		Discovery:  discovery(dcd.Spec.Annotations, d),
		Standalone: parent == "",
	}
	c, err := component(dcd.Spec.SharedSpec, dcd.Spec.BackendFramework, d)
	if err != nil {
		return nil, err
	}
	c.Name = cmp.Or(dcd.Spec.ServiceName, dcd.Name)
	c.ObjectName = dcd.Name
	c.Labels = join(dcd.Labels, c.Labels)
	g.add(c, dcd.Spec.SharedSpec)
	return g, nil
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

func (g *Graph) add(c Component, s v1alpha1.SharedSpec) {
	c.Graph = g.Name
	c.Namespace = g.Namespace
	c.DynamoNamespace = DynamoNamespace(g.Namespace, g.Name, s.GlobalDynamoNamespace)
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

func inherit(service, graph map[string]string) map[string]string {
	joined := maps.Clone(service)
	for _, key := range inherited {
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
func component(s v1alpha1.SharedSpec, framework v1alpha1.BackendFramework, d Defaults) (Component, error) {
	resources, err := readResources(s.Resources)
	if err != nil {
		return Component{}, err
	}
	role := RoleOf(string(s.ComponentType))
	c := Component{
		Discovery:    discovery(s.Annotations, d),
		Role:         role,
		Type:         string(s.ComponentType),
		SubType:      s.SubComponentType,
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
	}
	if c.Main != nil {
		c.Engine = chooseEngine(role, Engine(framework), c.Main.Command, c.Main.Args)
	} else {
		c.Engine = chooseEngine(role, Engine(framework), nil, nil)
	}
	c.Resources.GPUs = cmp.Or(c.Resources.GPUs, gpusOf(c.Main))
	c.Mounts = readMounts(s.VolumeMounts, c.Engine)
	return c, nil
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
